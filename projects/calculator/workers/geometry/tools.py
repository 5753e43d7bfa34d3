"""Functions of one worker, in its folder, in the other form: `register` is given the worker's agent."""

from __future__ import annotations

import math
from typing import Any


def register(agent: Any) -> None:
    """Register what the worker can call."""

    @agent.tool
    def circle_area(radius: float) -> float:
        """The area of a circle.

        Args:
            radius: In any unit; the area is in its square.
        """
        return round(math.pi * radius**2, 6)
