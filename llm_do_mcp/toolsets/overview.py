"""What the policy comes to: the answer for each function, with the rule that gives it, and rules that mean nothing.

Most answers depend on what a call is done to. So each function is looked at once for each place that it reaches (an
alias, a worker): the answer there in general, and the rules that make exceptions below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llm_do_mcp.project import commandline
from llm_do_mcp.project.settings import ATTACHMENTS
from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.runtime.policy import ANY, PATHS, STRENGTH, SUBJECT, Caller, Decision, Rule, default
from llm_do_mcp.sandbox.names import BadName
from llm_do_mcp.toolsets.rules import may_touch


@dataclass(frozen=True)
class Said:
    """What one rule says of a part of what a function can be done to."""

    subject: str
    decision: Decision
    source: str


@dataclass(frozen=True)
class Standing:
    """The answer for a function.

    Args:
        function: Canonical name.
        shown: The name its caller sees.
        subject: What it is done to: `alias/**`, a worker's id, or "" for whatever.
        decision, source: The answer in general, and what gives it.
        exceptions: Where the answer is another one.
    """

    function: str
    shown: str
    subject: str
    decision: Decision
    source: str
    exceptions: tuple[Said, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `llm-do list --policy --json` has it."""
        return {**vars(self), "exceptions": [vars(said) for said in self.exceptions]}


def standing(
    rules: Sequence[Rule], declaration: Declaration, caller: Caller, workers: Iterable[str] = ()
) -> tuple[Standing, ...]:
    """The answers for a function, one for each place that it reaches.

    Args:
        rules: The policy.
        declaration: The function.
        caller: Who would call it.
        workers: Ids of the workers that it may call.
    """
    about = [rule for rule in rules if rule.speaks_of(declaration, caller)]
    found = tuple(_at(place, about, declaration) for place in _places(declaration, workers))
    # A search never asks: it leaves out what may not be read without asking.
    left_out = declaration.options.get("left_out", {}).items()
    said = tuple(Said(f"{alias}/**", "deny", f"left out: {why}") for alias, why in left_out)
    return tuple(replace(one, exceptions=(*one.exceptions, *said)) for one in found)


def answers(rules: Sequence[Rule], declaration: Declaration, caller: Caller) -> set[Decision]:
    """The answers that there are for calls of a function."""
    found = standing(rules, declaration, caller)
    return {place.decision for place in found} | {said.decision for place in found for said in place.exceptions}


def idle(rules: Iterable[Rule], declarations: Sequence[Declaration], caller: Caller) -> Iterable[Rule]:
    """The rules that match no call there could be. What denies a risk is none of them: it may well find nothing."""
    for rule in rules:
        about = (declaration for declaration in declarations if rule.speaks_of(declaration, caller))
        places = ((one, place) for one in about for place in (*_places(one, ()), *_given_with(one, caller)))
        reached = (_touches(rule, declaration, place) for declaration, place in places)
        if rule.risk is None and not any(reached):
            yield rule


def _at(place: str, about: Sequence[Rule], declaration: Declaration) -> Standing:
    whole = [rule for rule in about if _covers(rule, declaration, place)]
    whole.sort(key=lambda rule: STRENGTH.index(rule.decision))
    decision, source = (whole[0].decision, whole[0].source) if whole else default(declaration)
    weaker = STRENGTH if not whole else STRENGTH[: STRENGTH.index(decision)]
    exceptions = [
        Said(rule.subject or ANY, rule.decision, rule.source)
        for rule in about
        if rule not in whole
        and (rule.decision in weaker or rule.subject in whole[0].unless)
        and (rule.decision != decision or decision == "deny")  # one that refuses is never left out
        and _touches(rule, declaration, place)
    ]
    subject = f"{place}/**" if declaration.name.startswith(PATHS) else place
    return Standing(declaration.name, declaration.shown, subject, decision, source, tuple(exceptions))


def _places(declaration: Declaration, workers: Iterable[str]) -> Sequence[str]:
    options = declaration.options
    if declaration.name.startswith(PATHS):
        writes = declaration.name == "files.write"
        return [root["alias"] for root in options["roots"] if not writes or root["mode"] != "ro"]
    if declaration.name == "worker.call":
        return [options["lock"]] if options["lock"] else [*workers] or list(options["allowed"])
    return [""]


def _given_with(declaration: Declaration, caller: Caller) -> Sequence[str]:
    """The folder that a function reaches besides, in a call with attachments."""
    reads = declaration.name in ("files.list", "files.read")
    return [ATTACHMENTS] if reads and caller == "worker" else []


def _covers(rule: Rule, declaration: Declaration, place: str) -> bool:
    """Whether a rule speaks of every call that is done to a place."""
    if rule.subject in (None, ANY):
        return True
    assert rule.subject is not None
    if declaration.name == "worker.call":
        return rule.fits(declaration.name, place)
    if not declaration.name.startswith(PATHS):
        return False
    try:
        pattern = rule.paths()
    except BadName:
        return False
    return pattern == ("**",) or (pattern[1:] == ("**",) and may_touch(rule, place))


def _is_folder_only(rule: Rule) -> bool:
    """Whether a rule speaks of nothing but an alias itself, which is no file."""
    return rule.subject not in (None, ANY) and len(rule.paths()) == 1 and rule.paths() != ("**",)


def _touches(rule: Rule, declaration: Declaration, place: str) -> bool:
    """Whether a rule speaks of some call that is done to a place."""
    if declaration.name.startswith(PATHS):
        return may_touch(rule, place) and not (declaration.name != "files.list" and _is_folder_only(rule))
    if declaration.name == "worker.call":
        return _covers(rule, declaration, place) or set(place) & set("*?[") != set()
    if declaration.name == "shell" and rule.subject not in (None, ANY):
        assert rule.subject is not None
        return not any(commandline.covers(earlier, rule.subject) for earlier in rule.unless)
    return rule.subject in (None, ANY) or declaration.name in SUBJECT
