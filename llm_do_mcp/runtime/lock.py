"""`approvals.lock`: what a person approved once, as a file that is reviewed and then allows exactly that.

Each entry names a worker, a function and the arguments, and is bound to the code of both: the hash of the worker
(`project/identity.py`) and of the tool's code. An argument is kept as it was (a long text, and one that holds a secret,
by its digest), unless whoever wrote the file widened it to a pattern. The order is fixed and every text stands on one
line, so that two versions compare well; what could mislead a reader (direction marks, invisible characters) is escaped.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from llm_do_mcp.errors import ProjectError, RunError, UsageError
from llm_do_mcp.project import commandline
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.policy import ANY, PATHS, path_pattern
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import Redactor
from llm_do_mcp.runtime.store import Event
from llm_do_mcp.runtime.tree import question_of
from llm_do_mcp.sandbox import names, patterns

NAME = "approvals.lock"
CLIENT = "(client)"
"""In place of a worker's id: a call that a client made itself."""

WHOLE_CHARS = 1_000
"""A longer text is kept by its digest."""
SHOWN_CHARS = 60

HEAD = """\
# What a person approved, for --approvals locked. Review it like code: whatever is listed runs without being asked.
# Written by `llm-do approvals lock RUN`. An argument is exactly so (is, json, sha256), or fits a pattern (like).
version: 1
approvals:
"""

Argument = Mapping[str, JSON]
"""How one argument has to be: `{is: text}`, `{json: text}`, `{sha256: hex, characters: n}` or `{like: glob}`."""


@dataclass(frozen=True)
class Entry:
    """One approval.

    Args:
        worker: The id of the worker that asked, or `CLIENT`.
        worker_code: Hash of what it amounts to (`project/identity.py`), "" for a client.
        function: Canonical name.
        function_code: Hash of the code behind it, "" where that is this package.
        arguments: By their names.
    """

    worker: str
    worker_code: str
    function: str
    function_code: str
    arguments: Mapping[str, Argument]

    @property
    def place(self) -> tuple[str, ...]:
        """What orders entries, and tells an entry from its newer version."""
        return (self.worker, self.function, json.dumps(self.arguments, sort_keys=True))

    def covers(self, entry: Entry) -> bool:
        """Whether whatever another entry allows is allowed by this one; of two different patterns neither covers."""
        return (self.worker, self.function) == (entry.worker, entry.function) and not self.differences(entry)

    def differences(self, entry: Entry) -> list[str]:
        """In what a call, as the entry that would allow exactly it, is not what this one allows; empty where it is."""
        found = []
        if entry.worker_code != self.worker_code:
            what = f"worker {self.worker}, something that it includes, or its manifest"
            found.append(f"{what} has changed since ({_versions(self.worker_code, entry.worker_code)})")
        if entry.function_code != self.function_code:
            versions = _versions(self.function_code, entry.function_code)
            found.append(f"the code of {self.function}, tools.python or tools.env has changed since ({versions})")
        for name in sorted({*self.arguments, *entry.arguments}):
            wanted, given = self.arguments.get(name), entry.arguments.get(name)
            if not _fits(wanted, given, self.function, name):
                found.append(f"{name} is {_shown(given)}, approved is {_shown(wanted)}")
        return found


def exact(function: str, value: JSON) -> dict[str, Argument]:
    """Arguments as the entry that allows exactly these has them."""
    given = value if isinstance(value, dict) else {"": value}
    return {
        name: _exactly(names.one_spelling(v) if _is_path(function, name) and isinstance(v, str) else v)
        for name, v in given.items()
    }


def entry_of(question: Question) -> Entry:
    """The entry that would allow exactly what a question is about."""
    worker = question.chain[-1] if question.chain else CLIENT
    return Entry(worker, question.worker_code, question.function, question.function_code, question.exact)


def approved(events: Iterable[Event]) -> list[tuple[Entry, Answer]]:
    """What a person approved in a run, and the answers: not what a lock file had allowed already."""
    found = []
    for event in events:
        if event.kind == "ask" and event.state == "answered":
            question, answer = question_of(event), Answer(**event.data["answer"])
            if question.kind == "approval" and answer.approves and answer.by != NAME:
                found.append((entry_of(question), answer))
    return found


@dataclass(frozen=True)
class Lock:
    """The entries of a lock file."""

    entries: tuple[Entry, ...] = ()

    def names(self, worker: str, function: str) -> bool:
        """Whether a function of a worker is in it at all."""
        return any((entry.worker, entry.function) == (worker, function) for entry in self.entries)

    def difference(self, question: Question) -> str | None:
        """Why the lock does not allow what a question is about, in one line; None where it does."""
        asked = entry_of(question)
        named = [e for e in self.entries if (e.worker, e.function) == (asked.worker, asked.function)]
        if not named:
            return f"nothing of {asked.function} is approved for worker {asked.worker}"
        nearest = min((entry.differences(asked) for entry in named), key=len)
        if not nearest:
            return None
        others = f" (the nearest of {len(named)} entries)" if len(named) > 1 else ""
        return "; ".join(nearest) + others

    def merged(self, new: Iterable[Entry]) -> Lock:
        """This lock with further entries.

        What was approved for other code of the same worker or function makes room, and so does what a wider entry
        covers: neither could decide anything any more.
        """
        new = tuple(new)
        codes = {(e.worker, e.function): (e.worker_code, e.function_code) for e in new}
        workers = {e.worker: e.worker_code for e in new}
        kept = [
            e
            for e in self.entries
            if workers.get(e.worker, e.worker_code) == e.worker_code
            and codes.get((e.worker, e.function), (e.worker_code, e.function_code)) == (e.worker_code, e.function_code)
        ]
        whole = {entry.place: entry for entry in (*kept, *new)}
        return Lock(
            tuple(
                entry
                for _, entry in sorted(whole.items())
                if not any(_replaces(other, entry) for other in whole.values())
            )
        )

    def without_secrets(self, redact: Redactor) -> Lock:
        """The same, allowing the same, with the digest of each argument that holds a secret: other people read it."""
        return Lock(tuple(_without_secrets(entry, redact) for entry in self.entries))

    def text(self) -> str:
        """The file."""
        return HEAD + "".join(map(_lines, self.entries)) if self.entries else HEAD.rstrip("\n") + " []\n"


def widened(entry: Entry, function: str, argument: str, glob: str) -> Entry | None:
    """An entry with one of its arguments as a pattern; None where it has no such argument, or one that does not fit.

    Args:
        entry: As it was approved.
        function: Glob on the functions that are meant.
        argument: Its name.
        glob: What it may be: of a path or command as in rules (`notes/*.md`, `git log *`), of other texts fnmatch.

    Raises:
        UsageError: A pattern that no path, or no command, could fit.
    """
    try:
        if glob == ANY:
            pass
        elif _is_path(entry.function, argument):
            path_pattern(glob)
        elif _is_command(entry.function, argument):
            commandline.pattern(glob)
    except (names.BadName, commandline.BadCommand) as error:
        raise UsageError(f"--pattern {argument}={glob}: {error}") from None
    given = entry.arguments.get(argument)
    wanted: Argument = {"like": glob}
    if given is None or not fnmatchcase(entry.function, function) or not _fits(wanted, given, entry.function, argument):
        return None
    return replace(entry, arguments={**entry.arguments, argument: wanted})


def parse(text: str, path: str = NAME) -> Lock:
    """A lock file's text.

    Raises:
        ProjectError: With the place of what is wrong.
    """
    from llm_do_mcp.project import strictyaml
    from llm_do_mcp.project.checked import check
    from llm_do_mcp.project.lockfile import LockFile

    file = check(LockFile, strictyaml.load(text, path=path))
    return Lock(
        tuple(
            Entry(
                worker=entry.worker,
                worker_code=entry.worker_code,
                function=entry.function,
                function_code=entry.function_code,
                arguments={name: argument.plain() for name, argument in entry.arguments.items()},
            )
            for entry in file.approvals
        )
    )


def read(root: str) -> Lock | None:
    """The lock of a project; None where it has none.

    Raises:
        ProjectError: It cannot be read, or something in it cannot be used.
    """
    from llm_do_mcp.project.files import ProjectFiles, decode

    files = ProjectFiles(root)
    return parse(decode(files.read_bytes(NAME), NAME)) if files.kind(NAME) is not None else None


def write(root: str, lock: Lock) -> None:
    """Replace the lock of a project, as a whole or not at all.

    Raises:
        RunError: It would not fit into a file that can be read again.
        SandboxError: It cannot be written.
    """
    from llm_do_mcp.sandbox.opener import Directory

    text = lock.text()
    try:
        again = parse(text)
    except ProjectError as error:
        raise RunError(f"{NAME} was not written: it could not be read again ({error})") from None
    if again != lock:
        raise RunError(f"{NAME} was not written: it would be read as something else")
    with Directory.open(root, label=".") as folder:
        folder.write_atomic(NAME, text.encode())


def _exactly(value: JSON) -> Argument:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    exact: Argument = {"is" if isinstance(value, str) else "json": text}
    unfit = len(text) > WHOLE_CHARS or any(unicodedata.category(character) == "Cs" for character in text)
    return _digested(exact) if unfit else exact


def _digested(argument: Argument) -> Argument:
    """An argument by its digest; a pattern stays one."""
    text = argument.get("is", argument.get("json"))
    if not isinstance(text, str):
        return argument
    return {"sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), "characters": len(text)}


def _without_secrets(entry: Entry, redact: Redactor) -> Entry:
    def holds_one(argument: Argument) -> bool:
        return any(isinstance(text, str) and redact.text(text) != text for text in argument.values())

    arguments = {name: _digested(a) if holds_one(a) else a for name, a in entry.arguments.items()}
    return replace(entry, arguments=arguments)


def _replaces(other: Entry, entry: Entry) -> bool:
    """Whether an entry makes another one needless; of two that allow the same, the one with digests stays."""
    return other is not entry and other.covers(entry) and (not entry.covers(other) or other.place > entry.place)


def _fits(wanted: Argument | None, given: Argument | None, function: str, argument: str) -> bool:
    if wanted is None or given is None:
        return wanted == given or wanted == {"like": ANY}
    if "like" not in wanted:
        by_digest = "sha256" in wanted or "sha256" in given
        return _digested(wanted) == _digested(given) if by_digest else wanted == given
    glob = str(wanted["like"])
    if glob == ANY:
        return True
    text = given.get("is", given.get("json"))
    if not isinstance(text, str):
        return False
    if _is_command(function, argument):
        return commandline.fits(glob, text, strictly=True)
    if not _is_path(function, argument):
        return fnmatchcase(text, glob)
    try:
        return patterns.matches(path_pattern(glob), text.split("/"))
    except names.BadName:
        return False


def _is_path(function: str, argument: str) -> bool:
    return function.startswith(PATHS) and argument == "path"


def _is_command(function: str, argument: str) -> bool:
    return function == "shell" and argument == "command"


def _versions(approved: str, now: str) -> str:
    return f"approved {approved[:12] or 'none'}, now {now[:12] or 'none'}"


def _shown(argument: Argument | None) -> str:
    if argument is None:
        return "not given"
    if "sha256" in argument:
        return f"{argument['characters']} characters with sha256 {str(argument['sha256'])[:12]}"
    ((kind, text),) = argument.items()
    shown = cut(escape(str(text)), SHOWN_CHARS)
    return f"like {shown!r}" if kind == "like" else shown if kind == "json" else f"'{shown}'"


def _lines(entry: Entry) -> str:
    lines = [f"  - worker: {_quoted(entry.worker)}"]
    lines += [f"    worker_code: {_quoted(entry.worker_code)}"] if entry.worker_code else []
    lines += [f"    function: {_quoted(entry.function)}"]
    lines += [f"    function_code: {_quoted(entry.function_code)}"] if entry.function_code else []
    lines += ["    arguments:"] if entry.arguments else ["    arguments: {}"]
    for name, argument in sorted(entry.arguments.items()):
        parts = ", ".join(f"{kind}: {_quoted(v) if isinstance(v, str) else v}" for kind, v in argument.items())
        lines.append(f"      {_quoted(name)}: {{{parts}}}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text in double quotes, on one line, as YAML reads it."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escaped(char) for char in quoted)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
