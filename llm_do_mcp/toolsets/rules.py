"""The policy of a worker, and of clients: every place that can set it, compiled into one list of rules.

| where it is written | what it becomes |
| --- | --- |
| `approvals` of manifest and worker | the rule as it stands |
| `tool_rules.<function>` | `allowed: false` denies; `approval_required` asks or allows |
| `_approval_config.<function>.pre_approved` of a toolset, `custom.<function>.pre_approved` | allows; `false` asks |
| `read_approval`, `write_approval` of a sandbox | asks, or allows, for the files under its alias |
| `sandbox.network_enabled: false` | denies functions of network risk |
| `toolsets.shell` | its rules, each for the commands that none before it speaks of, and its default for the rest |

Functions may be named as policy does (`files.write`), as a worker's model sees them (`write_file`), or as clients do
(`files_notes_write_text`, which is of the files under `notes` only). A library's worker can say what asks and what is
refused; what runs without asking is for the project to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from llm_do_mcp.project.names import file_tool
from llm_do_mcp.runtime.policy import ANY, Caller, Decision, Rule, names_alias, path_pattern
from llm_do_mcp.sandbox import patterns
from llm_do_mcp.sandbox.names import BadName, shown
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets import shell

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.project.settings import ApprovalRule, PreApproval

CANONICAL = {
    "list_files": "files.list",
    "read_file": "files.read",
    "write_file": "files.write",
    "worker_call": "worker.call",
    "llm_worker_call": "worker.call",
    "worker_create": "worker.create",
}
"""Names that a worker's model sees, by what policy calls them."""

OF_TOOLSET = {
    "filesystem": ("files.list", "files.read", "files.write"),
    "delegation": ("worker.call", "worker.create"),
    "shell": ("shell",),
    "te": ("te",),
}
"""The functions of each toolset; a tool's own name is that of a function of the project's Python."""

_BUILT_IN = {name for functions in OF_TOOLSET.values() for name in functions}


def of_worker(project: Project, worker: Worker, own_names: Mapping[str, str]) -> tuple[Rule, ...]:
    """The policy for what a worker calls.

    Args:
        project: For the manifest: its approvals come first in the worker's.
        worker: Whose.
        own_names: Workers that it calls as tools of their own name: name → id.
    """
    shared = len(project.manifest.approvals)
    manifest = _approvals(worker.approvals[:shared], "the manifest")
    own = _of_files(worker, worker.approvals[shared:], own_names, libraries=bool(project.libraries))
    if worker.library is not None:  # it can make the policy stricter; what it would allow is the project's to say
        own = [rule for rule in own if rule.decision != "allow"]
    found = (*manifest, *own, *of_roots(worker.roots))
    return (*found, *_of_overlaps(found, worker.roots, worker.roots))


def _of_files(
    worker: Worker, approvals: Iterable[ApprovalRule], own_names: Mapping[str, str], *, libraries: bool
) -> list[Rule]:
    """What a worker's own file says, and what of it the manifest's toolsets and sandbox say in its place."""
    whose = f"worker {worker.id}"
    found = [*_approvals(approvals, whose)]
    for name, setting in worker.tool_rules.items():
        source = _of_tool_rules(name, worker)
        if not setting.allowed:
            found += _named(name, own_names, "deny", source, libraries)
        elif setting.approval_required is not None:
            found += _named(name, own_names, "ask" if setting.approval_required else "allow", source, libraries)
    for toolset, functions in OF_TOOLSET.items():
        settings = getattr(worker.toolsets, toolset)
        for name, approval in ({} if settings is None else settings.approval_config).items():
            source = f"toolsets.{toolset}._approval_config.{name} of {whose}"
            rules = _named(name, own_names, _pre(approval), source, libraries)
            named = [rule for rule in rules if rule.function in functions]
            found += named or [Rule(f"{toolset}/{name}", _pre(approval), source=source)]
    for name, approval in (worker.toolsets.custom or {}).items():
        if approval.model_fields_set:
            source = f"toolsets.custom.{name}.pre_approved of {whose}"
            found.append(_python(name, _pre(approval), source, libraries))
    if not worker.network_enabled:
        found.append(Rule("*", "deny", source=f"sandbox.network_enabled: false of {whose}", risk="network"))
    if worker.toolsets.shell is not None:
        found += shell.rules(worker.toolsets.shell, whose)
    return found


def without_effect(worker: Worker, own_names: Mapping[str, str], *, libraries: bool) -> tuple[Rule, ...]:
    """What a worker's `tool_rules` say that changes nothing, as `allowed: true` does: there may be no such function."""
    found: list[Rule] = []
    for name, setting in worker.tool_rules.items():
        if setting.allowed and setting.approval_required is None:
            found += _named(name, own_names, "allow", _of_tool_rules(name, worker), libraries)
    return tuple(found)


def _of_tool_rules(name: str, worker: Worker) -> str:
    return f"tool_rules.{name} of worker {worker.id}"


def of_client(project: Project, roots: Sequence[Root]) -> tuple[Rule, ...]:
    """The policy for what an MCP client calls."""
    found = (*_approvals(project.manifest.approvals, "the manifest"), *of_roots(roots))
    unpublished = [root for root in project.roots if root.alias not in {published.alias for published in roots}]
    return (*found, *_of_overlaps((*found, *of_roots(unpublished)), (*roots, *unpublished), roots))


def of_roots(roots: Sequence[Root]) -> Iterator[Rule]:
    """What the roots' `read_approval` and `write_approval` say."""
    for root in roots:
        everything = f"{root.alias}/**"
        if root.read_approval:
            for function in ("files.list", "files.read"):
                yield Rule(function, "ask", everything, source=f"read_approval of sandbox {root.alias}")
        if root.mode != "ro" and root.write_approval is not None:
            decision: Decision = "ask" if root.write_approval else "allow"
            yield Rule("files.write", decision, everything, source=f"write_approval of sandbox {root.alias}")


def _of_overlaps(rules: Iterable[Rule], roots: Sequence[Root], into: Iterable[Root]) -> Iterator[Rule]:
    """What is refused or asked for under one alias, for the same files under another whose folder overlaps.

    Args:
        rules: The policy.
        roots: All folders that it may speak of.
        into: Those for which rules are made.
    """
    strict = [rule for rule in rules if rule.decision != "allow" and rule.subject not in (None, ANY)]
    for other in into:
        for root in roots:
            overlap = None if root.alias == other.alias else _overlap(root.path, other.path)
            for rule in strict if overlap is not None else ():
                reads = _is_about(rule, "files.read", "read") or _is_about(rule, "files.list", "read")
                if not may_touch(rule, root.alias) or not (reads or _is_about(rule, "files.write", "write")):
                    continue
                if other.mode == "ro" and not reads:
                    continue
                above, below = overlap or ((), ())
                wanted = rule.paths()
                wanted = wanted if wanted[0] == "**" else (root.alias, *wanted[1:])
                for tail in patterns.tails(wanted, (root.alias, *below)):
                    subject = "/".join((other.alias, *map(patterns.literal, above), *tail))
                    source = f"{rule.source} (the folders {root.alias} and {other.alias} overlap)"
                    yield replace(rule, subject=subject, source=source)


def _overlap(folder: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names that lead down to a folder from another one, and the other way round; None where they are apart."""
    parts, others = (tuple(map(shown, path.rstrip(os.sep).split(os.sep))) for path in (folder, other))
    if parts[: len(others)] == others:
        return parts[len(others) :], ()
    return ((), others[len(parts) :]) if others[: len(parts)] == parts else None


def telling_apart(roots: Iterable[Root], rules: Sequence[Rule], caller: Caller) -> frozenset[str]:
    """The aliases of which the policy refuses, or asks for, some files and not others: none may have a second name."""
    strict = [
        rule
        for rule in rules
        if rule.decision != "allow" and rule.caller in (None, caller) and rule.subject not in (None, ANY)
        if _is_about(rule, "files.read", "read") or _is_about(rule, "files.list", "read")
    ]
    return frozenset(
        root.alias
        for root in roots
        for rule in strict
        if may_touch(rule, root.alias) and rule.paths() != ("**",) and rule.paths()[1:] != ("**",)
    )


def searchable(roots: Sequence[Root], rules: Sequence[Rule]) -> tuple[Root, ...]:
    """The roots of which a worker may read every file without asking."""
    found = restricted(roots, rules, "worker")
    return tuple(root for root in roots if root.alias not in found)


def restricted(roots: Iterable[Root], rules: Sequence[Rule], caller: Caller) -> dict[str, str]:
    """The roots of which not every file may be read without asking: alias → the source of the first such rule.

    A search takes no path that a rule could be held to; so where anything under an alias is refused or asks, the
    search leaves that alias out.
    """
    reading = [
        rule
        for rule in rules
        if rule.decision != "allow" and rule.caller in (None, caller) and _is_about(rule, "files.read", "read")
    ]
    found: dict[str, str] = {}
    for root in roots:
        for rule in reading:
            if may_touch(rule, root.alias):
                found.setdefault(root.alias, rule.source)
    return found


def may_touch(rule: Rule, alias: str) -> bool:
    """Whether a rule about files may be about one under an alias."""
    if rule.subject in (None, ANY):
        return True
    assert rule.subject is not None
    try:
        return names_alias(path_pattern(rule.subject), alias)
    except BadName:
        return False


def _is_about(rule: Rule, function: str, risk: str) -> bool:
    return fnmatchcase(function, rule.function) and rule.risk in (None, risk)


def _approvals(given: Iterable[ApprovalRule], whose: str) -> Iterator[Rule]:
    for number, rule in enumerate(given, 1):
        yield of_approval(rule, f"approvals of {whose}, rule {number}")


def of_approval(rule: ApprovalRule, source: str) -> Rule:
    """A rule of `approvals`, whose function may bear any of its names.

    Args:
        rule: As it is written.
        source: Where.
    """
    function, subject = _of_one_folder(rule.function) or (rule.function, rule.subject)
    return Rule(CANONICAL.get(function, function), rule.decision, subject, rule.caller, source)


def _of_one_folder(name: str) -> tuple[str, str] | None:
    """The function and the subject that clients know as one tool, `files_notes_write_text`."""
    named = file_tool(name)
    return (named[0], f"{named[1]}/**") if named else None


def _named(name: str, own_names: Mapping[str, str], decision: Decision, source: str, libraries: bool) -> list[Rule]:
    """A rule for a function under any of its names."""
    if (of_one := _of_one_folder(name)) is not None:
        function, subject = of_one
        return [Rule(function, decision, subject, source=source)]
    if name in CANONICAL or name in _BUILT_IN or set(name) & set(".*?["):
        return [Rule(CANONICAL.get(name, name), decision, source=source)]
    if name in own_names:
        return [Rule("worker.call", decision, own_names[name], source=source)]
    return [_python(name, decision, source, libraries)]


def _python(name: str, decision: Decision, source: str, libraries: bool) -> Rule:
    """A rule for a function of the project's Python. One of a library is allowed by its whole name only."""
    of_any = libraries and decision != "allow" and ":" not in name
    return Rule(f"custom*[.:]{name}" if of_any else f"custom.{name}", decision, source=source)


def _pre(approval: PreApproval) -> Decision:
    return "allow" if approval.pre_approved else "ask"
