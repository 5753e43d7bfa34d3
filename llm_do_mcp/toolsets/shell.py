"""The `shell` toolset: single commands, for which no shell is ever started.

The line is parsed into words (`project/commandline.py`). The first of the author's rules that matches the words says
whether the command runs, asks or is refused; these rules are part of the run's policy like any other, so that what
another source refuses stays refused. The same rule says which folders the words may lead into. That is a check of what
is typed, not isolation: a program that was allowed may read, write and connect as the server itself may.

A command gets a bare environment, no input, a limited time and room for its output, and it ends together with all that
it started (`launch.py`). It is never repeated by itself after a crash: the person is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from llm_do_mcp.errors import FunctionFailed, InvalidInput, ProjectError, SandboxError
from llm_do_mcp.project import commandline
from llm_do_mcp.project.commandline import BadCommand
from llm_do_mcp.project.names import slug
from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call
from llm_do_mcp.runtime.policy import Decision, Rule
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets import shell_programs
from llm_do_mcp.toolsets.launch import Command, Ended
from llm_do_mcp.toolsets.shell_paths import Reach

if TYPE_CHECKING:
    from llm_do_mcp.project.settings import Shell, ShellDefault, ShellRule

SHELL = "shell"
SECONDS = 300.0
"""How long a command may take."""
MOST_BYTES = 16_000
"""How much of each of a command's outputs is kept."""
MOST_PRINTED = 16_000_000
"""How much a command may print on each of them: one that prints more is ended."""
MOST_CHARS = 20_000
"""How long a command line may be."""

_BY_DESCRIPTOR = os.path.isdir("/proc/self/fd")
"""Whether a program can be started in a folder that we hold open."""


def declare(settings: Shell, roots: Sequence[Root], usual: Sequence[Root], path: str) -> tuple[Declaration, ...]:
    """The one function of this toolset.

    Args:
        settings: `toolsets.shell`.
        roots: The worker's.
        usual: Those of them that words may lead into where a rule names none.
        path: Its file, for messages.

    Raises:
        ProjectError: An alias that does not exist, or a rule whose commands would run where they may touch nothing.
    """
    everywhere = tuple(root.alias for root in usual)
    rules = []
    for number, rule in enumerate(settings.rules, 1):
        key = f"toolsets.shell, rule {number}"
        named = tuple(_alias(name, roots, f"{key}: sandbox_paths", path) for name in rule.sandbox_paths)
        folder = _folder(settings, named or everywhere, roots, path)
        if named and names.aliased(folder)[0] not in named:
            message = f"{key}: its commands run in {folder}, which is not in its sandbox_paths; add it"
            raise ProjectError(message, path=path)
        rules.append(_run_by(rule.pattern, folder, named or everywhere))
    folder = _folder(settings, everywhere, roots, path)
    return (
        Declaration(
            name=SHELL,
            shown=SHELL,
            description=_description(settings, folder, roots),
            input_schema={
                "type": "object",
                "properties": {
                    "command": {
                        "type": "string",
                        "maxLength": MOST_CHARS,
                        "description": "one program and its arguments, such as: git log -5 --format='%h %s'",
                    }
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            output_schema=RESULT,
            risk="destructive",
            toolset=SHELL,
            options={
                "rules": rules,
                "default": _run_by("", folder, everywhere),
                "roots": [root.to_json() for root in roots],
                "seconds": SECONDS,
                "most_bytes": MOST_BYTES,
                "most_printed": MOST_PRINTED,
            },
        ),
    )


def rules(settings: Shell, whose: str) -> tuple[Rule, ...]:
    """What the rules say, as policy: each speaks of the commands that no earlier one speaks of.

    Args:
        settings: `toolsets.shell`.
        whose: For messages: `worker main`.
    """
    found: list[Rule] = []
    earlier: list[str] = []
    for number, rule in enumerate(settings.rules, 1):
        source = f"toolsets.shell of {whose}, rule {number} (`{names.one_line(rule.pattern)}`)"
        pattern = commandline.opened(rule.pattern)
        found.append(Rule(SHELL, _decision(rule), pattern, source=source, unless=tuple(earlier)))
        earlier.append(pattern)
    if settings.default is not None:
        source = f"toolsets.shell of {whose}, default"
        found.append(Rule(SHELL, _decision(settings.default), source=source, unless=tuple(earlier)))
    return tuple(found)


def bind(declaration: Declaration, handles: Handles) -> Function:
    """The function, ready to run."""
    shell = _Shell(declaration.options, handles)

    async def execute(call: Call) -> JSON:
        return await shell.run(call.input["command"])

    async def preview(call: Call) -> Preview:
        order = shell.order(call.input["command"])
        if call.run.path + call.key not in call.run.tree.events:
            # What cannot run is not asked about. What may have run already is, however things look now.
            await in_thread(shell.check, order)
        rule = f"`{order.rule}`" if order.rule else "none matches"
        words = json.dumps(order.words, ensure_ascii=False)
        detail = f"Folder: {order.folder or 'an empty one of its own'}\nRule:   {rule}\nWords:  {words}"
        line = commandline.joined(order.words)
        return Preview("run the command", cut(line, 200), detail, scope=json.dumps([order.folder, *order.words]))

    def subject(value: JSON) -> str:
        line: str = value["command"]
        shell.order(line)  # what is no command is told so, whatever the policy would say of it
        return line

    return Function(declaration, execute, preview, subject)


@dataclass(frozen=True)
class Order:
    """What a command line asks for.

    Args:
        words: The program's name and its arguments.
        rule: The pattern of the rule that it falls under, or "".
        folder: Where it runs, as `alias/path`; "" for an empty folder of its own.
        reach: The aliases that its words may lead into.
    """

    words: tuple[str, ...]
    rule: str
    folder: str
    reach: tuple[str, ...]


@dataclass(frozen=True)
class Ready:
    """An order in the terms of the system: what is started, where, and the folder that was made for it."""

    program: str
    words: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    made: str


class _Shell:
    """Runs the commands of one declaration."""

    def __init__(self, options: Mapping[str, Any], handles: Handles) -> None:
        self._options, self._handles = options, handles
        self._roots = {root.alias: root for root in map(Root.from_json, options["roots"])}

    def order(self, line: str) -> Order:
        """What a line asks for.

        Raises:
            InvalidInput: It is not one command.
        """
        try:
            words = commandline.words(line)
        except BadCommand as error:
            raise InvalidInput(f"shell: {error}") from None
        wanted = ((commandline.pattern(commandline.opened(rule["pattern"])), rule) for rule in self._options["rules"])
        rule = next((rule for pattern, rule in wanted if pattern.matches(words)), self._options["default"])
        return Order(words, rule["pattern"], rule["folder"], tuple(rule["reach"]))

    def check(self, order: Order) -> None:
        """Refuse what would be refused when it is run."""
        with self._ready(order):
            pass

    async def run(self, line: str) -> JSON:
        """Run a command to its end, or to the end of its time."""
        order, seconds = self.order(line), self._options["seconds"]
        with contextlib.ExitStack() as stack:
            try:
                ready = await in_thread(stack.enter_context, self._ready(order), stop=_nothing)
                given = (ready.program, ready.words, ready.folder, ready.environment, ready.made)
                command = Command(*given, most=self._options["most_bytes"], flood=self._options["most_printed"])
                ended = await _ended(command, seconds)
            finally:
                with anyio.CancelScope(shield=True):
                    await in_thread(stack.close, stop=_nothing)
        if ended.problem:
            raise FunctionFailed(f"shell: {order.words[0]} cannot be started: {ended.problem}")
        result: dict[str, JSON] = {
            "exit_code": ended.exit_code,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
            "truncated": ended.left_out,
        }
        if ended.flooded:
            result["stopped"] = f"it printed more than {self._options['most_printed']} bytes; it may be half done"
        elif ended.exit_code is None:
            result["stopped"] = f"it took longer than {seconds:g} s, or was killed from outside; it may be half done"
        return result

    @contextlib.contextmanager
    def _ready(self, order: Order) -> Iterator[Ready]:
        """All that is checked and made before a command starts; what is made is removed at the end."""
        avoid = [root.path for root in self._roots.values()]
        folders = shell_programs.search_path(os.environ, avoid)
        program = shell_programs.program(order.words[0], folders, avoid)
        with tempfile.TemporaryDirectory(prefix="llm-do-shell-", ignore_cleanup_errors=True) as made:
            temporary = os.path.realpath(made)
            home, empty = os.path.join(temporary, "home"), os.path.join(temporary, "work")
            os.mkdir(home)
            os.mkdir(empty)
            with self._working_folder(order.folder, empty) as (path, opened):
                roots = [self._roots[alias] for alias in order.reach]
                reach = Reach(roots, self._roots, path, None if order.folder else empty, self._handles)
                words = (order.words[0], *reach.confined(order.words[0], order.words[1:]))
                environment = shell_programs.environment(os.environ, folders, home)
                yield Ready(program, words, opened, environment, temporary)

    @contextlib.contextmanager
    def _working_folder(self, folder: str, empty: str) -> Iterator[tuple[str, str]]:
        """The working folder's path, and a path that leads to it whatever takes its place meanwhile."""
        if not folder:
            yield empty, empty
            return
        alias, rel = names.aliased(folder)
        root = self._roots[alias]
        try:
            top = self._handles.of(root)
            with top.open_directory(rel) as directory:
                path = os.path.realpath(os.path.join(root.path, *top.parts(rel)))
                descriptor = directory.descriptor
                if descriptor is not None and not os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    raise SandboxError(f"{folder}: another folder took its place; start again")
                yield path, f"/proc/self/fd/{descriptor}" if descriptor is not None and _BY_DESCRIPTOR else path
        except SandboxError as error:
            raise InvalidInput(f"shell: its working folder {error}") from None
        except FileNotFoundError:
            raise InvalidInput(f"shell: its working folder {folder} is gone") from None


def _nothing() -> None:
    """What is made and removed is waited for, also where the call is cancelled meanwhile."""


async def _ended(command: Command, seconds: float) -> Ended:
    """Start a command and wait for its end, which is also the end of all that it started."""
    ended = asyncio.wrap_future(command.ended)
    try:
        await in_thread(command.start, stop=command.stop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await asyncio.shield(ended)
    finally:
        command.stop()
        with anyio.CancelScope(shield=True):
            await asyncio.wait((ended,))
    return ended.result()


def _decision(said: ShellRule | ShellDefault) -> Decision:
    if not said.allowed:
        return "deny"
    return "ask" if said.approval_required else "allow"


def _alias(name: str, roots: Sequence[Root], key: str, path: str) -> str:
    alias = slug(name)
    if alias not in {root.alias for root in roots}:
        known = ", ".join(root.alias for root in roots) or "none"
        raise ProjectError(f"{key}: there is no sandbox {names.one_line(name)!r}; there are: {known}", path=path)
    return alias


def _folder(settings: Shell, reach: Sequence[str], roots: Sequence[Root], path: str) -> str:
    """Where commands run: as `cwd` says, else in the first folder that they may touch, else in an empty one ("")."""
    if settings.cwd is None:
        return next(iter(reach), "")
    alias, rel = names.aliased(settings.cwd)
    alias = _alias(alias, roots, "toolsets.shell.cwd", path)
    try:
        parts = [part for part in names.components(rel) if part != "."]
    except names.BadName as error:
        raise ProjectError(f"toolsets.shell.cwd: {names.one_line(settings.cwd)!r}: {error}", path=path) from None
    return "/".join((alias, *parts))


def _run_by(pattern: str, folder: str, reach: Sequence[str]) -> dict[str, Any]:
    """How the commands of a rule are run: they may always touch the folder that the author chose for them."""
    own = (names.aliased(folder)[0],) if folder else ()
    return {"pattern": pattern, "folder": folder, "reach": list(dict.fromkeys((*own, *reach)))}


def _description(settings: Shell, folder: str, roots: Sequence[Root]) -> str:
    where = f"It runs in {folder}/" if folder else "It runs in an empty folder of its own"
    aliases = ", ".join(f"{root.alias}/" for root in roots)
    allowed = [rule.pattern for rule in settings.rules if rule.allowed]
    denied = [rule.pattern for rule in settings.rules if not rule.allowed]
    return " ".join(
        filter(
            None,
            (
                "Run one command: a program and its arguments, quoted as for a shell.",
                "No shell reads it: no pipes, redirections, variables or several commands, and globs are not expanded.",
                f"{where}; paths are relative to that" + (f", or begin with a folder: {aliases}." if aliases else "."),
                f"It may take {SECONDS:g} s and print {MOST_PRINTED // 1_000_000} MB.",
                f"Rules speak of: {'; '.join(allowed)}." if allowed else "",
                f"Refused: {'; '.join(denied)}." if denied else "",
                "" if settings.default is None or settings.default.allowed else "Everything else is refused.",
                "A person may be asked first. It is not isolated from the network or from the machine.",
            ),
        )
    )


RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "exit_code": {"type": ["integer", "null"], "description": "null where it was stopped"},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "truncated": {"type": "integer", "description": "how many bytes of its outputs are left out"},
        "stopped": {"type": "string", "description": "why it did not come to its end"},
    },
    "required": ["exit_code", "stdout", "stderr", "truncated"],
    "additionalProperties": False,
}
