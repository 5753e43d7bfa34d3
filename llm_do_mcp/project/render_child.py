"""The process that renders templates: Jinja in its strictest sandbox, under limits. Started by `render`, nothing else.

It reads a request, renders its templates once, answers, and waits for the next; at the end of its input it ends. It
has no network, writes no file, and opens files only through the sandbox's opener, below the folders of the project and
its libraries (`render_files`).
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import TracebackType
from typing import Any, BinaryIO

from jinja2 import StrictUndefined, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.project.render_files import Folders, Loader
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
    if request["look"] is not None:
        renderings = (_Rendering({**request, **asked}) for asked in request["look"])
        return {"problems": [problem for rendering in renderings for problem in rendering.problems()]}
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
        self._folders = Folders(request["homes"], request["home"])
        self._places: dict[str, tuple[str, int]] = {}
        self._always: dict[str, list[tuple[str, int]]] = {}
        self._environment = _Environment(
            self._folders,
            loader=Loader(self._folders, self._places),
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

    def problems(self) -> list[dict[str, Any]]:
        """What is wrong with the templates as they stand, and with what they include by name. Nothing is rendered."""
        found: list[dict[str, Any]] = []
        for index, given in enumerate(self._templates):
            self._current = index
            name = f"<template {index}>"
            self._places[name] = (given["path"], given["line"] - 1)
            self._look(given["text"], name, name, found)
        for source, edges in self._always.items():
            for target, line in edges:
                if self._leads_to(target, source):
                    how = "" if source == target else f" through {target}"
                    message = f"the template always includes itself{how}, so it never ends; put it behind an `if`"
                    found.append({"message": message, "path": source, "line": line})
        return found

    def _leads_to(self, start: str, end: str) -> bool:
        """Whether a template, whatever the input, includes another, or is it."""
        seen, waiting = set[str](), [start]
        while waiting:
            if (path := waiting.pop()) not in seen:
                seen.add(path)
                waiting += [target for target, _ in self._always.get(path, ())]
        return end in seen

    def _look(self, text: str, name: str, file: str, found: list[dict[str, Any]]) -> None:
        path, before = self._places[file]
        try:
            tree = self._environment.parse(text, name, file)
            self._folders.note(tree)
            needed = [*self._folders.spelled_out(tree)]
            if unknown := [*self._unknown(tree)]:
                found += [{"message": message, "path": path, "line": line + before} for message, line in unknown]
            else:
                self._environment.compile(tree, name, file)  # some mistakes are seen only here
        except Exception as error:
            found.append(self.explain(error))
            return
        for one in needed:
            try:
                joined = self._folders.joined(one.name, name)
                inside, there = self._folders.find(joined)
            except (TemplateNotFound, SecurityError, SandboxError) as error:
                if not self._folders.lack:
                    found.append({"message": _message(error), "path": path, "line": one.line + before})
                continue
            if one.always:
                self._always.setdefault(path, []).append((there, one.line + before))
            if one.is_template and there not in self._places:
                self._places[there] = (there, 0)
                self._look(inside, joined, there, found)

    def _unknown(self, tree: nodes.Template) -> Iterator[tuple[str, int]]:
        """The filters and tests of a template that there are not, with their lines.

        Jinja itself sees to those in a branch when that is rendered, since a template may ask first whether there is
        one: those that it asks about are left out.
        """
        known = {nodes.Filter: self._environment.filters, nodes.Test: self._environment.tests}
        asked = {
            test.node.value
            for test in tree.find_all(nodes.Test)
            if test.name in ("filter", "test") and isinstance(test.node, nodes.Const)
        }
        for kind, names in known.items():
            for node in tree.find_all(kind):
                if node.name not in names and node.name not in asked:
                    close = get_close_matches(node.name, names, 1)
                    instead = f"did you mean {close[0]!r}?" if close else "there are Jinja's own"
                    yield f"there is no {kind.__name__.lower()} {node.name!r}; {instead}", node.lineno

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


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's strictest sandbox, in which a name means what it means where it stands."""

    def __init__(self, folders: Folders, **options: Any) -> None:
        super().__init__(**options)
        self._folders = folders

    def join_path(self, template: str, parent: str) -> str:
        return self._folders.joined(template, parent)


def _message(error: Exception) -> str:
    match error:
        case RecursionError():
            text = (
                "nested too deeply; look for what includes or calls itself, or for an expression of thousands of terms"
            )
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
