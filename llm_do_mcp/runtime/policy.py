"""What may run without a person: a list of rules on canonical names and arguments.

Rules are compiled from every place that can set them (manifest and worker `approvals`, `tool_rules`, a root's
`write_approval`, …) into this one form. Of the rules that match a call, deny beats ask beats allow, however
specific they are; where none matches, the function's risk decides: what only reads runs, the rest asks. A call of
an allowed worker never asks by itself; what the worker then does may.

A rule's `subject` is matched with what a call is done to, in its one spelling. Of files that is a path `alias/path`,
and the pattern is one of names as in `sandbox/patterns.py`: `notes/*.md` is not `notes/a/b.md`, `notes/**` is. A rule
that refuses or asks also holds for names that some file system takes for the same (`NOTES.MD`), and where its last name
is written out (`notes`, `notes/private/`) for all that is in a folder of that name; one that allows holds for the very
name only. Of commands it is a pattern of words as in `project/commandline.py`, read to the stricter side.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from llm_do_mcp.project import commandline
from llm_do_mcp.project.names import slug
from llm_do_mcp.runtime.function import JSON, Declaration, Risk
from llm_do_mcp.sandbox import names, patterns

Decision = Literal["allow", "ask", "deny"]
Caller = Literal["client", "worker"]

STRENGTH: tuple[Decision, ...] = ("deny", "ask", "allow")
"""Decisions, the strongest first."""

ANY = "*"
"""The subject that means any, of whatever kind, as None does."""

SUBJECT = {
    "files.list": "path",
    "files.read": "path",
    "files.write": "path",
    "worker.call": "worker",
    "worker.create": "name",
    "shell": "command",
    "te": "command",
}
"""Which argument the `subject` of a rule is matched with."""

PATHS = "files."
"""How the names of functions begin whose subject is a path."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        function: Glob on the canonical name: `files.write`, `custom.*`.
        decision: What it says of a call it matches.
        subject: Pattern on what the call is done to (see `SUBJECT`), or None for any.
        caller: Only calls by a client, or only by a worker; None for either.
        source: Where a person finds it, for messages.
        risk: Only functions of this risk; None for all.
        unless: Patterns on commands that it leaves to other rules, in a list of which the first match counts.
    """

    function: str
    decision: Decision
    subject: str | None = None
    caller: Caller | None = None
    source: str = ""
    risk: Risk | None = None
    unless: tuple[str, ...] = ()

    def speaks_of(self, declaration: Declaration, caller: Caller) -> bool:
        """Whether the rule is about a function at all, whatever it is done to."""
        if not fnmatchcase(declaration.name, self.function):
            return False
        return self.caller in (None, caller) and self.risk in (None, declaration.risk)

    def fits(self, function: str, subject: str) -> bool:
        """Whether a call's subject is one that the rule names.

        Args:
            function: Canonical name of what is called; one that the rule speaks of.
            subject: What it is done to.
        """
        if any(commandline.fits(earlier, subject, strictly=True) for earlier in self.unless):
            return False
        if self.subject in (None, ANY):
            return True
        assert self.subject is not None
        if function == "shell":
            return commandline.fits(self.subject, subject, strictly=self.decision == "allow")
        if function.startswith(PATHS):
            return self._fits_path(subject)
        if function.startswith("worker.") and self.decision != "allow":
            return fnmatchcase(names.fold(subject), names.fold(self.subject))
        return function in SUBJECT and fnmatchcase(subject, self.subject)

    def paths(self) -> patterns.Pattern:
        """The subject of a rule about files, as names of which the first is the alias.

        Raises:
            BadName: It could match no path.
        """
        assert self.subject is not None
        wanted = path_pattern(self.subject)
        return wanted if self.decision == "allow" or set(wanted[-1]) & set("*?[") else (*wanted, "**")

    def _fits_path(self, path: str) -> bool:
        try:
            wanted = self.paths()
        except names.BadName:
            return False
        shown = [name for name in path.split("/") if name not in ("", ".")] or [""]
        if wanted[0] != "**" and names_alias(wanted, shown[0]):
            wanted = (shown[0], *wanted[1:])
        if self.decision == "allow":
            return patterns.matches(wanted, shown)
        # Names are compared as they are shown and as they are: only in the latter are invisible characters folded away.
        real = (shown[0], *map(names.real, shown[1:]))
        return any(patterns.matches(wanted, path, folded=True) for path in (shown, real))


def subject_of(declaration: Declaration, value: JSON) -> str:
    """What the call is done to: a path in its one spelling, a worker's id, a command; "" where there is none."""
    lock = declaration.options.get("lock") if declaration.name == "worker.call" else None
    found = lock or (value.get(SUBJECT.get(declaration.name, "")) if isinstance(value, dict) else None)
    return spelled(declaration.name, found) if isinstance(found, str) else ""


def spelled(function: str, subject: str) -> str:
    """What a call is done to, in the one spelling in which rules name it.

    Args:
        function: Canonical name of what is called.
        subject: As the call has it.
    """
    if function.startswith(PATHS):
        return names.one_spelling(subject)
    return _one_command(subject) if function == "te" else subject


def decide(
    rules: Sequence[Rule], declaration: Declaration, value: JSON, caller: Caller, *, subject: str | None = None
) -> tuple[Decision, str]:
    """The effective answer for a call, and the source of the rule that gave it.

    Args:
        rules: In any order.
        declaration: What is called.
        value: With what.
        caller: By whom.
        subject: What it is done to, where the function itself knows that better than its input says.
    """
    about = [rule for rule in rules if rule.speaks_of(declaration, caller)]
    if about and subject is None:
        subject = subject_of(declaration, value)
    matching = [rule for rule in about if rule.fits(declaration.name, subject or "")]
    for decision in STRENGTH:
        for rule in matching:
            if rule.decision == decision:
                return rule.decision, rule.source
    return default(declaration)


def default(declaration: Declaration) -> tuple[Decision, str]:
    """The answer for a call that no rule speaks of, and why."""
    if declaration.nested:
        return "allow", "default for calls of workers"
    return "allow" if declaration.risk == "read" else "ask", f"default for risk {declaration.risk}"


@lru_cache(maxsize=1024)
def path_pattern(pattern: str) -> patterns.Pattern:
    """A path rule's subject, as names of which the first is the alias.

    Raises:
        BadName: It could match no path.
    """
    return patterns.parse_aliased(pattern)


def names_alias(pattern: patterns.Pattern, alias: str) -> bool:
    """Whether a path rule may be about files under an alias, which it may name as the manifest does."""
    named = pattern[0]
    return named == "**" or fnmatchcase(alias, named) or (not set(named) & set("*?[") and slug(named) == alias)


def _one_command(line: str) -> str:
    """A command line with one blank between its words, so that blanks and quotes are no way around a rule."""
    try:
        return " ".join(shlex.split(line))
    except ValueError:
        return line
