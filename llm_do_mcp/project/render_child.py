"""The process that renders templates: Jinja in its strictest sandbox, under limits. Started by `render`, nothing else.

It reads a request, renders its templates once, answers, and waits for the next; at the end of its input it ends. It
has no network, writes no file, and opens files only through the sandbox's opener, below the project's folder.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, BinaryIO

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from llm_do_mcp.errors import FileMissing, ProjectError, SandboxError
from llm_do_mcp.project.files import MAX_FILE_BYTES, decode
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.toolhost import frames

_NAMES_SHOWN = 20


def main(max_memory: int) -> None:
    """Serve requests until the input ends.

    Args:
        max_memory: Bytes of address space that this process may have, where the platform can limit them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us by closing the pipe
    _limit_memory(max_memory)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with open(os.devnull, "w") as nowhere:
        _send(sink, {})
        while (request := frames.read(source)) is not None:
            # A second watch beside the parent's, for the case that the parent is gone: it needs no interpreter.
            faulthandler.dump_traceback_later(request["seconds"] + 1, exit=True, file=nowhere)
            reply = _answer(request)
            faulthandler.cancel_dump_traceback_later()
            _send(sink, reply)


def _send(sink: BinaryIO, frame: frames.Frame) -> None:
    sink.write(frames.encode(frame))
    sink.flush()


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit, macOS may refuse it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    rendering = _Rendering(request)
    try:
        texts = [rendering.text(index) for index in range(len(request["templates"]))]
        return {"texts": texts, "included": rendering.included()}
    except Exception as error:
        return {"error": rendering.explain(error)}


class _TooLong(Exception):
    """A template gave more text than is allowed."""


class _Rendering:
    """The templates of one request."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._templates: list[dict[str, Any]] = request["templates"]
        self._variables: dict[str, Any] = request["variables"]
        self._max_characters: int = request["max_characters"]
        self._current = 0
        self._folders = _Folders(request["root"], request["folders"])
        self._places: dict[str, tuple[str, int]] = {}
        self._environment = ImmutableSandboxedEnvironment(
            loader=_Loader(self._folders, self._places),
            undefined=_undefined(self._variables),
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.globals.pop("lipsum")  # only good for filling memory
        self._environment.globals["file"] = self._folders.text

    def text(self, index: int) -> str:
        """One template, rendered once: what it inserts is text and is never rendered again."""
        self._current = index
        given = self._templates[index]
        name = f"<template {index}>"
        self._places[name] = (given["path"], given["line"] - 1)
        self._folders.note(self._environment.parse(given["text"], name, name))
        code = self._environment.compile(given["text"], name, name)
        template = self._environment.template_class.from_code(
            self._environment, code, self._environment.make_globals(None)
        )
        pieces, size = [], 0
        for piece in template.generate({name: v for name, v in self._variables.items() if name != "file"}):
            size += len(piece)
            if size > self._max_characters:
                raise _TooLong(f"gives more than {self._max_characters:,} characters, the most that is allowed")
            pieces.append(piece)
        return "".join(pieces)

    def included(self) -> dict[str, str]:
        """Every file that the templates could include, or those that they include, whatever the input: path and hash.

        A name that leads to no file is there as well: it may lead to one tomorrow.
        """
        found: dict[str, str] = {}
        seen: set[str] = set()
        while names := self._folders.names() - seen:
            seen |= names
            for name in names:
                try:
                    text, path = self._folders.find(name)
                except (TemplateNotFound, SecurityError, SandboxError):
                    found[name] = ""
                    continue
                found[path] = hashlib.sha256(text.encode()).hexdigest()
                with contextlib.suppress(TemplateSyntaxError, RecursionError):  # a text that is inserted as it is
                    self._folders.note(self._environment.parse(text))
        return found

    def explain(self, error: Exception) -> dict[str, Any]:
        """What went wrong, in one line, with the file and line of the template."""
        if isinstance(error, TemplateSyntaxError):
            found = (error.filename or error.name, error.lineno)
        else:
            found = self._innermost(error.__traceback__)
        path, before = self._places.get(found[0] or "", (self._templates[self._current]["path"], 0))
        line = found[1] + before if found[0] in self._places else None
        return {"message": _message(error), "path": path, "line": line}

    def _innermost(self, trace: TracebackType | None) -> tuple[str | None, int]:
        """The template's line that was being rendered. Jinja rewrites tracebacks so that they name it."""
        found: tuple[str | None, int] = (None, 0)
        while trace is not None:
            if (name := trace.tb_frame.f_code.co_filename) in self._places:
                found = (name, trace.tb_lineno)
            trace = trace.tb_next
        return found


def _message(error: Exception) -> str:
    match error:
        case RecursionError():
            text = "templates or expressions nest without end; look for a template that includes itself"
        case MemoryError():
            text = "the template needs more memory than is allowed"
        case _TooLong():
            text = f"the template {error}"
        case SecurityError():
            text = f"not allowed in a template: {error}"
        case TemplateNotFound() | TemplateSyntaxError():
            text = error.message or str(error)
        case SandboxError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error}" if type(error).__module__ == "builtins" else str(error)
    line = " ".join(text.split())
    return line if len(line) <= 500 else f"{line[:500]}…"


def _undefined(variables: Mapping[str, Any]) -> type[StrictUndefined]:
    """Undefined values that raise when they are used, and name what there is instead."""

    class Undefined(StrictUndefined):
        __slots__ = ()

        @property
        def _undefined_message(self) -> str:
            message = super()._undefined_message
            owner = variables if self._undefined_obj is missing else self._undefined_obj
            if self._undefined_hint or not isinstance(owner, Mapping):
                return message
            names = sorted(map(str, owner))
            more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
            return f"{message}; known: {', '.join(names[:_NAMES_SHOWN]) or 'nothing'}{more}"

    return Undefined


class _Folders:
    """The folders that a worker's templates include from, and the names that they spell out.

    A name that a template computes may come from a caller: it is looked up only where that is allowed.
    """

    def __init__(self, root: str, folders: list[tuple[str, bool]]) -> None:
        self._folders = folders
        self._constants: set[str] = set()
        self._computes = False
        self._root = root

    def note(self, tree: nodes.Template) -> None:
        """Remember the names that a template spells out, and whether it may compute others."""
        referenced = set(meta.find_referenced_templates(tree))
        spelled = [name for call in tree.find_all(nodes.Call) if (name := _file_named(call)) is not None]
        self._constants.update(spelled, (name for name in referenced if name is not None))
        # `file` anywhere else than before a name that is spelled out could be given any name.
        uses = sum(node.name == "file" for node in tree.find_all(nodes.Name))
        self._computes |= None in referenced or uses > len(spelled)

    def names(self) -> set[str]:
        """All names that templates could look up: those spelled out, and where some are computed whatever they find."""
        names = set(self._constants)
        for folder, for_computed in self._folders if self._computes else ():
            if for_computed:
                with contextlib.suppress(SandboxError):
                    below = Directory.open(self._root).open_directory(folder).walk()
                    names.update("/".join(found.parts) for found in below if found.kind in ("file", "link"))
        return names

    def text(self, name: str) -> str:
        """The text of a file, as `file("name")` inserts it."""
        return self.find(name)[0]

    def find(self, name: str) -> tuple[str, str]:
        """The text and the path of the first file of a name.

        Raises:
            TemplateNotFound: There is none; says where was looked.
            SecurityError: The name is not allowed, whatever lies there.
        """
        computed = name not in self._constants
        folders = [folder for folder, for_computed in self._folders if for_computed or not computed]
        where = ", ".join(f"{folder}/" for folder in folders)
        if complaint := _complaint(name):
            raise SecurityError(f"{name!r} {complaint}; names are looked for in {where}")
        for folder in folders:
            with contextlib.suppress(FileMissing):
                data, whole = Directory.open(self._root).open_directory(folder).read(name, MAX_FILE_BYTES)
                path = f"{folder}/{name}"
                if not whole:
                    raise TemplateNotFound(name, f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
                try:
                    return decode(data, path), path
                except ProjectError as error:
                    raise TemplateNotFound(name, f"{path} is {error.message}") from None
        kind = " (a computed name)" if computed else ""
        raise TemplateNotFound(name, f"there is no {name!r}{kind} in {where}")


def _file_named(call: nodes.Call) -> str | None:
    """The name in `file("name")`, where it is spelled out."""
    if isinstance(call.node, nodes.Name) and call.node.name == "file" and call.args:
        argument = call.args[0]
        if isinstance(argument, nodes.Const) and isinstance(argument.value, str):
            return argument.value
    return None


def _complaint(name: object) -> str | None:
    """What is wrong with a name, whatever lies there."""
    if not isinstance(name, str) or not name.isprintable() or not name:
        return "is not the name of a file"
    if ":" in name:
        return "names a library, and this project has none"
    parts = name.split("/")
    if name.startswith(("/", "~")) or "\\" in name or ".." in parts:
        return "is not inside the template folders"
    return "is hidden, and is not read" if any(part.startswith(".") for part in parts) else None


class _Loader(BaseLoader):
    """Included templates. Each is noted under its path, so that errors can name it."""

    def __init__(self, folders: _Folders, places: dict[str, tuple[str, int]]) -> None:
        self._folders, self._places = folders, places

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        text, path = self._folders.find(template)
        self._places[path] = (path, 0)
        self._folders.note(environment.parse(text, template, path))
        return text, path, lambda: True
