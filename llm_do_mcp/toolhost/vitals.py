"""What all code of a tool host process stands on, and whether the project's code has broken it.

A tool can set `sys.excepthook` to None or empty `sys.modules`: it goes well for itself, and everybody after it fails in
ways that point at the wrong file. Replacing is left alone (a library may put another function in place of one of
Python's); only what is gone or of no use any more counts.
"""

from __future__ import annotations

import builtins
import sys
import threading


class Vitals:
    """What was there before any of the project's code ran. Made when our own import hooks are in place."""

    def __init__(self) -> None:
        self._builtins = {name for name, value in vars(builtins).items() if callable(value)}
        self._modules = tuple(sys.modules)
        self._finders = tuple(sys.meta_path)
        self._hooks = tuple(sys.path_hooks)
        self._path = tuple(sys.path)
        self._recursion = sys.getrecursionlimit()

    def broken(self) -> str | None:
        """What is broken, named as Python names it; None as long as all is well."""
        for module in (sys, threading):
            if not callable(module.excepthook):
                return f"`{module.__name__}.excepthook` is {module.excepthook!r}"
        if gone := [name for name in self._modules if name not in sys.modules]:
            return f"`sys.modules` has no {gone[0]!r} any more"
        if spoiled := [name for name in self._builtins if not callable(vars(builtins).get(name))]:
            return f"`builtins.{spoiled[0]}` is no function any more"
        for name, before, after in (
            ("sys.meta_path", self._finders, sys.meta_path),
            ("sys.path_hooks", self._hooks, sys.path_hooks),
            ("sys.path", self._path, sys.path),
        ):
            if any(entry not in after for entry in before):
                return f"`{name}` has lost what imports need"
        if sys.getrecursionlimit() < self._recursion:
            return f"`sys.setrecursionlimit` lowered the limit to {sys.getrecursionlimit()}"
        return None
