"""Exact functions for the calculator."""

from __future__ import annotations

import math


def factorial(n: int) -> int:
    """The product of all whole numbers from 1 to n.

    Args:
        n: From 0 to 1,000.
    """
    if not 0 <= n <= 1000:
        raise ValueError(f"n is {n}; it can be 0 to 1,000")
    return math.factorial(n)


def prime_factors(number: int) -> list[int]:
    """The primes whose product a number is, the smallest first.

    Args:
        number: 2 or more.
    """
    if number < 2:
        raise ValueError(f"{number} has no prime factors; give 2 or more")
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


def _hidden() -> str:
    return "no tool: its name begins with _"
