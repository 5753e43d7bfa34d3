"""What may be set: `[tool_envelope]` in `llmc.toml`, or `tool_envelope:` in a project's manifest.

The command finds `llmc.toml` in its working directory or the nearest folder above it; without such a section it has the
defaults, and keeps no log. A key that is not known is an error that names the nearest one: a limit that is misspelt
would be no limit.
"""

from __future__ import annotations

import os

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "llmc.toml"
SECTION = "tool_envelope"
AGENT_BUDGETS = {
    "gemini-shell": 900_000,
    "claude-dc": 180_000,
    "qwen-local": 28_000,
    "human-cli": 50_000,
    "default": 16_000,
}
"""Characters of an answer, by the id of the agent."""
HUMAN = "human-cli"
TELEMETRY = ".llmc/te_telemetry.jsonl"
KEPT = f"llm-do-te-{os.getuid()}" if hasattr(os, "getuid") else "llm-do-te"
"""The name of the folder in which a user's sessions keep what was left out of answers."""


class _FromZero(int):
    """What a whole number is that may be 0 too."""


_LIMITS = {"max_output_chars": int, "timeout_ms": int}
_KEYS: dict[str, Any] = {
    "enabled": bool,
    "workspace": {"root": str, "respect_gitignore": bool, "allow_outside_root": bool},
    "telemetry": {"enabled": bool, "path": str},
    "coach": {"enabled": bool, "explore": float, "seed": _FromZero},
    "grep": {"preview_matches": int, **_LIMITS},
    "cat": {"preview_lines": int, **_LIMITS},
    "find": {"preview_matches": int, **_LIMITS},
    "agent_budgets": {"*": int},
}
_WORDS = {
    bool: "true or false",
    str: "a text",
    int: "a whole number from 1 on",
    _FromZero: "a whole number from 0 on",
    float: "a number from 0 to 1",
}


class Settings:
    """What was set; see the README for what each key means.

    Args:
        given: The section as data; None where nothing is set, and so no log is kept.
        base: The folder that paths in it are relative to; "" if there is none, and then no log is kept either.
        source: What errors call it.

    Raises:
        TeError: `invalid_config`, with the key.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, base: str = "", source: str = SECTION) -> None:
        is_set, given = given is not None, given or {}
        _check(given, _KEYS, source)
        workspace, telemetry, coach = (given.get(name, {}) for name in ("workspace", "telemetry", "coach"))
        self.enabled: bool = given.get("enabled", True)
        self.root: str | None = None
        """The folder that may be searched, instead of the working directory; the file's own unless it says another."""
        if "root" in workspace:
            self.root = os.path.realpath(os.path.join(base, os.path.expanduser(workspace["root"])))
        self.respect_gitignore: bool = workspace.get("respect_gitignore", True)
        self.allow_outside_root: bool = workspace.get("allow_outside_root", False)
        self.base = base
        self.telemetry: str | None = None
        """The file of the log, below `base`; or None."""
        if is_set and base and telemetry.get("enabled", True):
            self.telemetry = telemetry.get("path", TELEMETRY)
            if not may_be_log(self.telemetry):
                raise TeError("invalid_config", f"{source}.telemetry.path must be a .jsonl file below {FILE}'s folder")
        self.coach: bool = coach.get("enabled", False)
        self.explore: float = coach.get("explore", 0.2)
        self.seed: int | None = coach.get("seed")
        self._budgets: Mapping[str, int] = {**AGENT_BUDGETS, **given.get("agent_budgets", {})}
        self._commands: dict[str, Mapping[str, int]] = {name: given.get(name, {}) for name in ("grep", "cat", "find")}

    def budget(self, agent: str) -> int:
        """Characters that an answer to this agent may have."""
        return self._budgets.get(agent, self._budgets["default"])

    def most(self, command: str, budget: int) -> int:
        """The budget, or what the command's answers may have at most, if that is less."""
        return min(budget, self._commands.get(command, {}).get("max_output_chars", budget))

    def seconds(self, command: str, seconds: float) -> float:
        """The time given, or what the command may take at most, if that is less."""
        return min(seconds, self._commands.get(command, {}).get("timeout_ms", seconds * 1000) / 1000)

    def preview(self, command: str) -> int | None:
        """Lines of each section of an answer at most, or None."""
        limits = self._commands.get(command, {})
        return limits.get("preview_lines", limits.get("preview_matches"))


def may_be_log(path: str) -> bool:
    """Whether a log may be there: a project that was only looked at must not have us write into other files."""
    return path.endswith(".jsonl") and ".." not in path.split("/") and not os.path.isabs(path)


def load(folder: str) -> Settings:
    """The settings of the nearest `llmc.toml` from a folder upward; the defaults where there is none.

    Raises:
        TeError: `invalid_config`: it cannot be read, or holds what is not known.
    """
    base = folder
    while not os.path.isfile(os.path.join(base, FILE)):
        base, below = os.path.dirname(base), base
        if base == below:
            return Settings()
    import tomllib

    try:
        with open(os.path.join(base, FILE), "rb") as file:
            section = tomllib.load(file).get(SECTION)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TeError("invalid_config", f"{FILE}: {one_line(str(reason))}") from error
    settings = Settings(section, base, f"{FILE}: {SECTION}")
    if section is not None and settings.root is None:
        settings.root = os.path.realpath(base)
    return settings


def _check(given: object, keys: Mapping[str, Any], where: str) -> None:
    """Hold a table against the keys it may have, each with a type or a table of its own; `*` stands for any key."""
    if not isinstance(given, dict):
        raise TeError("invalid_config", f"{where} must be a table")
    for name, value in given.items():
        place = f"{where}.{one_line(name, 40)}"
        expected = keys.get(name, keys.get("*"))
        if expected is None:
            from difflib import get_close_matches

            near = get_close_matches(name, keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(keys)}"
            raise TeError("invalid_config", f"{place} is not known; {hint}")
        if isinstance(expected, dict):
            _check(value, expected, place)
        elif not _fits(value, expected):
            raise TeError("invalid_config", f"{place} must be {_WORDS[expected]}")


def _fits(value: object, expected: type) -> bool:
    if isinstance(value, bool) or expected is bool:
        return isinstance(value, bool) and expected is bool
    if issubclass(expected, int):
        return isinstance(value, int) and value >= (0 if expected is _FromZero else 1)
    if expected is float:
        return isinstance(value, int | float) and 0 <= value <= 1
    return isinstance(value, str) and bool(value) and "\0" not in value
