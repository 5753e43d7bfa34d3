"""Functions for lengths. They are marked by `__all__`, and say nothing of their risk: so each call would ask."""

from __future__ import annotations

__all__ = ["in_metres"]

METRES = {"inch": 0.0254, "foot": 0.3048, "mile": 1609.344}


def in_metres(number: float, unit: str) -> float:
    """A length in metres.

    Args:
        number: How many of the unit.
        unit: inch, foot or mile.
    """
    if unit not in METRES:
        raise ValueError(f"no unit {unit!r}; there are {', '.join(METRES)}")
    return round(number * METRES[unit], 6)
