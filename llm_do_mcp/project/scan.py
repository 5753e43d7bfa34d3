"""Which workers a project has, for lists and globs. To call a worker nobody scans: its id says where its file lies.

What a list does not show (`.llm-doignore`, `workers.exclude`) can still be called by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from llm_do_mcp.errors import AmbiguousWorker, ProjectError
from llm_do_mcp.leftovers import SKIPPED
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.manifest import WorkersSection
from llm_do_mcp.project.references import FOLDER_FILES, MAIN, MAIN_FILE, SUFFIXES, Single, folder_of, id_of
from llm_do_mcp.sandbox import names, patterns

IGNORE_FILE = ".llm-doignore"
RESOURCES = frozenset({"templates", "tools", "schemas"})
"""Folders of a worker in the directory form that hold no workers."""


@dataclass(frozen=True)
class Scan:
    """What a scan found.

    Args:
        workers: id → file, sorted by id; the first where more than one file claims it, which its loading tells of.
        problems: Files that cannot be workers, and ids that differ in case only, which are workers nowhere.
    """

    workers: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[ProjectError, ...] = ()


def scan(files: ProjectFiles, section: WorkersSection, single: Single | None) -> Scan:
    """Look for workers.

    Args:
        files: The project's files.
        section: Where to look, and what to show.
        single: The worker's file outside the workers' folder that the project was opened for.
    """
    shown = _shown(files, section)
    claims: dict[str, list[tuple[str, str]]] = {}
    problems: list[ProjectError] = []
    named = (MAIN_FILE,) if single is None else (MAIN_FILE, single.path)
    for path in _worker_files(files, section.root, named):
        if path not in named and not shown(path):
            continue
        identifier = id_of(path, section.root, single)
        if identifier is None:
            shown_name = quoted(path.rpartition("/")[2])
            problems.append(ProjectError(f"{shown_name}: names of workers have letters, digits, _ and -", path=path))
        else:
            claims.setdefault(names.fold(identifier), []).append((identifier, path))
    workers: dict[str, str] = {}
    for claimed in claims.values():
        (identifier, path), *others = claimed
        if all(other == identifier for other, _ in others):
            workers[identifier] = path
            continue
        every = ", ".join(path for _, path in claimed)
        message = f"more than one file for worker {identifier!r}, where case does not count: {every}; rename one"
        problems.append(AmbiguousWorker(message, path=path))
    return Scan(dict(sorted(workers.items(), key=lambda item: (item[0] != MAIN, item[0]))), tuple(problems))


def _worker_files(files: ProjectFiles, root: str, named: tuple[str, ...]) -> list[str]:
    """Every file that is a worker by its name and place."""
    walked = files.walk(root, lambda parts: parts[-1] not in SKIPPED)
    below = ["/".join(found.parts) for found in walked if found.kind not in ("directory", "unreadable")]
    homes = {folder for path in below if (folder := folder_of(path, root))}
    found = [path for path in dict.fromkeys(named) if files.kind(path) == "file"]
    return found + [path for path in below if path.endswith(SUFFIXES) and not _is_resource(path, homes)]


def _is_resource(path: str, homes: set[str]) -> bool:
    """Whether a file belongs to a worker in the directory form, and is none itself."""
    folder, _, name = path.rpartition("/")
    if folder in homes and not name.endswith(".worker") and name not in FOLDER_FILES:
        return True
    while folder:
        folder, _, name = folder.rpartition("/")
        if name in RESOURCES and folder in homes:
            return True
    return False


def _shown(files: ProjectFiles, section: WorkersSection) -> Callable[[str], bool]:
    """Whether lists and globs show a worker's file."""
    include = [patterns.parse(pattern) for pattern in section.include]
    exclude = [patterns.parse(pattern) for pattern in section.exclude]
    hidden = ignored(files, IGNORE_FILE)

    def shown(path: str) -> bool:
        parts = path.removeprefix(f"{section.root}/").split("/")
        return (
            any(patterns.matches(pattern, parts) for pattern in include)
            and not any(patterns.matches(pattern, parts) for pattern in exclude)
            and not hidden(path)
        )

    return shown


def ignored(files: ProjectFiles, file: str) -> Callable[[str], bool]:
    """Whether a file of gitignore's form, such as `.llm-doignore`, names a path.

    Raises:
        ProjectError: A line of it is no pattern.
    """
    if files.kind(file) is None:
        return lambda path: False
    from pathspec import GitIgnoreSpec

    lines = decode(files.read_bytes(file), file).splitlines()
    for number, line in enumerate(lines, 1):
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            raise ProjectError(f"{quoted(line)} is no pattern of gitignore's", path=file, line=number) from None
    return GitIgnoreSpec.from_lines(lines).match_file
