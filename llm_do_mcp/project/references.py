"""References to workers, as text: which forms there are, which id each means, and where that id's file may lie.

Nothing is opened here. The forms are an id (`reports/summarizer`), a path with or without suffix from the project's
root (`workers/reports/summarizer`, `./workers/reports/summarizer.worker`) and `lib:id`. A path never leads out of the
workers' folder: what lies in a data folder is not a worker because somebody names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from llm_do_mcp.errors import InvalidReference
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.paths import join, parent

MAIN = "main"
BUILT_IN = "pkg"
"""The library that every project has."""
MAIN_FILE = "main.worker"
SUFFIXES = (".worker", ".yaml", ".yml")
FOLDER_FILES = tuple(f"worker{suffix}" for suffix in SUFFIXES)
"""The names of a worker's file in the directory form."""

FORMS = "write an id (reports/summarizer), ./workers/reports/summarizer.worker, or lib:id"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_LIBRARY = re.compile(r"[a-z0-9_-]+\Z")
_MAX_LENGTH = 200


@dataclass(frozen=True)
class Single:
    """A worker's file outside the workers' folder, for which a project was opened.

    Args:
        path: Its path.
        beside: Whether the `.worker` files beside it are known as well, though no list shows them.
    """

    path: str
    beside: bool = False

    def knows(self, path: str) -> bool:
        """Whether a file is a worker, since this one is."""
        beside = self.beside and parent(path) == parent(self.path) and path.endswith(SUFFIXES[0])
        return beside or path == self.path


@dataclass(frozen=True)
class Reference:
    """What a reference says.

    Args:
        text: As it was written.
        id: The worker's id in its project or library.
        library: The library's name, or None for the project that the reference is used in.
        path: The worker's file, where the reference names one.
        is_path: Whether it starts at the root of where it is used, and is looked for nowhere else.
    """

    text: str
    id: str
    library: str | None = None
    path: str | None = None
    is_path: bool = False


def parse(text: str, workers_root: str, single: Single | None = None) -> Reference:
    """Read a reference.

    Args:
        text: The reference.
        workers_root: The folder of the workers.
        single: The worker's file outside that folder that the project was opened for.

    Raises:
        InvalidReference: It is of no allowed form.
    """
    if not text or len(text) > _MAX_LENGTH or not text.isprintable():
        raise _invalid(text, FORMS)
    library, colon, rest = text.partition(":")
    if not colon:
        return _inside(text, text, workers_root, single)
    if not _LIBRARY.match(library) or ":" in rest:
        raise _invalid(text, "a library's worker is written lib:id, the library in a-z, 0-9, _ and -")
    inside = _inside(rest, text, workers_root)
    return Reference(text, inside.id, library, inside.path)


def _inside(inside: str, text: str, workers_root: str, single: Single | None = None) -> Reference:
    """Read a reference without its library; the whole of it is for messages."""
    path = inside.removeprefix("./")
    if ".." in path.split("/"):
        raise _invalid(text, "'..' is not allowed; paths start at the project's root")
    if path.startswith(("/", "~")):
        raise _invalid(text, "absolute paths are not allowed; paths start at the project's root")
    if path.endswith(SUFFIXES):
        identifier = id_of(path, workers_root, single)
        if identifier is None:
            raise _invalid(text, f"workers lie in {workers_root}/, under names of letters, digits, _ and -")
        return Reference(text, identifier, path=path, is_path=True)
    identifier = path.removeprefix(f"{workers_root}/")
    if not is_id(identifier):
        raise _invalid(text, FORMS)
    return Reference(text, identifier, is_path=inside.startswith("./"))


def is_glob(text: str) -> bool:
    """Whether a reference may mean more than one worker."""
    return any(character in text for character in "*?[")


def as_glob(text: str, workers_root: str) -> str | None:
    """A glob on ids, however it is written (`re*`, `./workers/re*.worker`, `utils:*`); None for what is no glob."""
    if not is_glob(text):
        return None
    library, colon, path = text.rpartition(":")
    pattern = path.removeprefix("./").removeprefix(f"{workers_root}/")
    return f"{library}{colon}{_stem(pattern) or pattern}"


def covers(pattern: str, identifier: str) -> bool:
    """Whether an id, or a glob on ids, means a worker. A glob without a library's name means none of a library."""
    return (":" in pattern) == (":" in identifier) and fnmatchcase(identifier, pattern)


def is_id(text: str) -> bool:
    """Whether a text can be a worker's id."""
    return all(_NAME.match(part) for part in text.split("/"))


def id_of(path: str, workers_root: str, single: Single | None = None) -> str | None:
    """The id of the worker in a file, or None where no worker can lie.

    Args:
        path: Relative to the project, in normal form.
        workers_root, single: As for `parse`.
    """
    if path == MAIN_FILE:
        return MAIN
    stem = _stem(path)
    if stem is None:
        return None
    if single is None or not single.knows(path):
        if not stem.startswith(f"{workers_root}/"):
            return None
        stem = stem.removeprefix(f"{workers_root}/")
        if path.rpartition("/")[2] in FOLDER_FILES and "/" in stem:
            stem = stem.rpartition("/")[0]
    return stem if is_id(stem) else None


def candidates(identifier: str, workers_root: str, single: Single | None = None) -> tuple[str, ...]:
    """The files that a worker may have, relative to its project or library."""
    inside = join(workers_root, identifier)
    files = [f"{inside}{suffix}" for suffix in SUFFIXES] + [f"{inside}/{name}" for name in FOLDER_FILES]
    if identifier == MAIN:
        files.insert(0, MAIN_FILE)
    if single is not None:
        is_it = id_of(single.path, workers_root, single) == identifier
        path = single.path if is_it else f"{identifier}{SUFFIXES[0]}"
        if path not in files and id_of(path, workers_root, single) == identifier:
            files.insert(0, path)
    return tuple(files)


def folder_of(path: str, workers_root: str) -> str | None:
    """A worker's own folder, which only the directory form has."""
    folder, _, name = path.rpartition("/")
    return folder if name in FOLDER_FILES and folder.startswith(f"{workers_root}/") else None


def _stem(path: str) -> str | None:
    """A path without a worker's suffix, or None where it has none."""
    return next((path.removesuffix(suffix) for suffix in SUFFIXES if path.endswith(suffix)), None)


def _invalid(text: str, instead: str) -> InvalidReference:
    return InvalidReference(f"{quoted(text)} is not a reference to a worker; {instead}")
