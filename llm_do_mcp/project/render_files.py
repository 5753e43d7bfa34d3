"""What templates include, looked up in the process that renders them.

A name is looked for where the template that has it lives: a worker's template in its project, a library's in that
library, and after that in the `templates/` of what this depends on. `utils:x.jinja` is looked for in that library only.
A name that a template computes may come from a caller, so it reaches only folders that were made to be included from.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateNotFound, meta, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context

from llm_do_mcp.errors import FileMissing, ProjectError, SandboxError
from llm_do_mcp.project.files import MAX_FILE_BYTES, decode
from llm_do_mcp.sandbox.opener import Directory

_JOINT = "|"
"""Between the library that a name is used in ("" for the project) and the name, in the names that Jinja knows."""


@dataclass(frozen=True)
class Needed:
    """A file that a template names.

    Args:
        name, line: As it stands in the template.
        is_template: Whether it is rendered, and not inserted as it is.
        always: Whether it is rendered whatever the input.
    """

    name: str
    line: int
    is_template: bool
    always: bool


class Folders:
    """The folders that templates include from, and the names that they spell out.

    Args:
        homes: `template.Home` as data, by the library's name; that of the project is "".
        home: Where the templates of the request live.
    """

    def __init__(self, homes: Mapping[str, Mapping[str, Any]], home: str) -> None:
        self._homes, self._home = homes, home
        self._home_of: dict[str, str] = {}
        self._constants: set[str] = set()
        self._computes = False

    @property
    def lack(self) -> bool:
        """Whether what is not found may be in a library that could not be had."""
        return bool(self._homes[self._home]["lacks"])

    def note(self, tree: nodes.Template) -> None:
        """Remember the names that a template spells out, and whether it may compute others."""
        referenced, spelled = set(meta.find_referenced_templates(tree)), [name for name, _ in _files(tree)]
        self._constants.update(spelled, (name for name in referenced if name is not None))
        # `file` anywhere else than before a name that is spelled out could be given any name.
        uses = sum(node.name == "file" for node in tree.find_all(nodes.Name))
        self._computes |= None in referenced or uses > len(spelled)

    def names(self) -> set[str]:
        """All names that templates could look up, wherever those seen by now live, in the form of `joined`.

        They are those spelled out, and where some are computed whatever they could find.
        """
        homes = {self._home, *self._home_of.values()}
        names = {f"{home}{_JOINT}{name}" for home in homes for name in self._constants}
        for home in homes if self._computes else ():
            for place, folder in self._places(home, computed=True):
                with contextlib.suppress(SandboxError):
                    below = Directory.open(self._homes[place]["root"]).open_directory(folder).walk()
                    files = ("/".join(found.parts) for found in below if found.kind in ("file", "link"))
                    names.update(f"{home}{_JOINT}{name if place == home else f'{place}:{name}'}" for name in files)
        return names

    def spelled_out(self, tree: nodes.Template) -> Iterator[Needed]:
        """The files that a template cannot do without, as far as it spells out their names."""
        always = {id(node) for node in _always(tree)}
        for node in tree.find_all(nodes.Stmt):
            if not isinstance(node, nodes.Extends | nodes.Include | nodes.Import | nodes.FromImport):
                continue
            named, optional = node.template, isinstance(node, nodes.Include) and node.ignore_missing
            if isinstance(named, nodes.Const) and isinstance(named.value, str) and not optional:
                yield Needed(named.value, node.lineno, True, id(node) in always)
        yield from (Needed(name, line, False, False) for name, line in _files(tree))

    def joined(self, name: object, template: str | None) -> str:
        """The name by which Jinja knows what a template includes: one text may mean two files in two libraries.

        Raises:
            SecurityError: It is not the name of a file.
        """
        if not isinstance(name, str):
            raise SecurityError(f"{name!r} is not the name of a file")
        return f"{self._home_of.get(template or '', self._home)}{_JOINT}{name}"

    @pass_context
    def text(self, context: Context, name: object) -> str:
        """The text of a file, as `file("name")` inserts it."""
        return self.find(self.joined(name, context.name))[0]

    def find(self, joined: str) -> tuple[str, str]:
        """The text and the path of the first file of a name.

        Raises:
            TemplateNotFound: There is none; says where was looked.
            SecurityError: The name is not allowed, whatever lies there.
        """
        home, _, name = joined.partition(_JOINT)
        library, colon, inside = name.rpartition(":")
        computed = name not in self._constants
        if colon and library != home and library not in self._homes[home]["libraries"]:
            raise SecurityError(f"{name!r} names a library that is not among the dependencies")
        places = [(library, "templates")] if colon else [*self._places(home, computed=computed)]
        where = ", ".join(f"{_shown(place, folder)}/" for place, folder in places)
        if complaint := _complaint(inside):
            raise SecurityError(f"{name!r} {complaint}; names are looked for in {where}")
        for place, folder in places:
            found = self._read(place, folder, inside)
            if found is not None:
                self._home_of[joined] = place
                return found
        kind = " (a computed name)" if computed else ""
        hint = "" if colon or computed else self._beside(home, inside)
        raise TemplateNotFound(name, f"there is no {name!r}{kind} in {where}{hint}")

    def _beside(self, home: str, name: str) -> str:
        """A hint where the file lies in the root, from where nothing is included: workers may write there."""
        with contextlib.suppress(SandboxError):
            Directory.open(self._homes[home]["root"]).stat(name)
            return f"; {_shown(home, name)} is not read from where it lies, put it into templates/"
        return ""

    def _places(self, home: str, *, computed: bool) -> Iterator[tuple[str, str]]:
        """Where a name is looked for, in order: the library and the folder in it."""
        for folder, for_computed in self._homes[home]["folders"]:
            if for_computed or not computed:
                yield home, folder
        for library in self._homes[home]["libraries"]:
            yield library, "templates"

    def _read(self, place: str, folder: str, name: str) -> tuple[str, str] | None:
        """A file's text and its path as a person would name it; None where there is no such file."""
        home, path = self._homes[place], f"{folder}/{name}"
        locked = home["locked"]
        try:
            data, whole = Directory.open(home["root"]).open_directory(folder).read(name, MAX_FILE_BYTES)
        except FileMissing:
            if locked is not None and path in locked:
                raise _changed(place, path) from None
            return None
        except SandboxError as error:
            raise SandboxError(_shown(place, str(error))) from None
        shown = _shown(place, path)
        if not whole:
            raise TemplateNotFound(name, f"{shown} is larger than {MAX_FILE_BYTES:,} bytes")
        if locked is not None and locked.get(path) != hashlib.sha256(data).hexdigest():
            raise _changed(place, path)
        try:
            return decode(data, shown), shown
        except ProjectError as error:
            raise TemplateNotFound(name, f"{shown} is {error.message}") from None


class Loader(BaseLoader):
    """Included templates. Each is noted under its path, so that errors can name it."""

    def __init__(self, folders: Folders, places: dict[str, tuple[str, int]]) -> None:
        self._folders, self._places = folders, places

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        text, path = self._folders.find(template)
        self._places[path] = (path, 0)
        self._folders.note(environment.parse(text, template, path))
        return text, path, lambda: True


def _always(node: nodes.Node) -> Iterator[nodes.Node]:
    """The parts of a template that are rendered whatever the input."""
    yield node
    if not isinstance(node, nodes.If | nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block):
        for below in node.iter_child_nodes():
            yield from _always(below)


def _files(tree: nodes.Template) -> Iterator[tuple[str, int]]:
    """The names that a template gives to `file`, with their lines."""
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "file" and call.args:
            argument = call.args[0]
            if isinstance(argument, nodes.Const) and isinstance(argument.value, str):
                yield argument.value, call.lineno


def _shown(library: str, path: str) -> str:
    return f"{library}:{path}" if library else path


def _changed(library: str, path: str) -> SecurityError:
    how = "look at it, and accept it with `llm-do lib lock`"
    return SecurityError(f"library {library}: {path} is not what libs.lock has; {how}")


def _complaint(name: str) -> str | None:
    """What is wrong with a name, whatever lies there."""
    if not name.isprintable() or not name:
        return "is not the name of a file"
    parts = name.split("/")
    if name.startswith(("/", "~")) or "\\" in name or ".." in parts:
        return "is not inside the template folders"
    if "." in parts:
        return "has ./; a name starts at the template folders, wherever it is used"
    return "is hidden, and is not read" if any(part.startswith(".") for part in parts) else None
