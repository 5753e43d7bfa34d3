"""The alias `attachments/`: the files that came with a worker's call, as a read-only folder of its sandbox.

A worker that can list, read, search or pass on files finds them there. What lies in the folder are the very bytes that
the run's journal holds: copies, made when the run begins or goes on, in a private folder below the system's folder for
temporary files, and removed when it ends. The file that was attached may change or go meanwhile, and no link leads out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import count

from llm_do_mcp.project.settings import ATTACHMENTS
from llm_do_mcp.runtime.definition import Attachment
from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.sandbox.names import fold
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.sandbox.root import DEFAULT_MAX_FILE_BYTES, Root

FOLDER = "llm-do-attached-"
"""What the name of the folder begins with in which a process keeps those of its runs."""


def root_of(attachments: Sequence[Attachment]) -> tuple[Root, ...]:
    """The folder of a call's attachments, as its definition has it; none where there are none.

    Where it lies is known when the run is bound: each process that takes the run up has a folder of its own.
    """
    if not attachments:
        return ()
    largest = max(file.size for file in attachments)
    nowhere = os.path.join(os.path.realpath(tempfile.gettempdir()), FOLDER)
    return (Root(ATTACHMENTS, nowhere, max_file_bytes=max(DEFAULT_MAX_FILE_BYTES, largest)),)


def named_apart(attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """Attachments with names of their own, on every file system: the second `deck.pdf` becomes `2/deck.pdf`."""
    taken: set[str] = set()
    found = []
    for file in attachments:
        name = file.name
        if fold(name) in taken:
            folder = next(str(number) for number in count(2) if str(number) not in taken)
            taken.add(folder)
            name = f"{folder}/{name}"
        taken.add(fold(name))
        found.append(replace(file, name=name))
    return tuple(found)


class Attached:
    """The folders of the runs of this process.

    Args:
        handles: The open roots through which runs read.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._base: str | None = None

    @contextlib.asynccontextmanager
    async def laid_out(self, run: Run) -> AsyncIterator[None]:
        """Have the attachments of a run lie in its folder, where one of its functions can reach it."""
        definition = run.definition
        if not any(map(_reaches, definition.functions)):
            yield
            return
        files = [(file.name, await run.tree.blob(file.blob)) for file in definition.attachments]
        folder = self._folder(run)
        try:
            await in_thread(_write, folder, files)
            yield
        finally:
            self._handles.forget(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def placed(self, declaration: Declaration, run: Run) -> Declaration:
        """A function of a run that knows where the folder lies."""
        if not _reaches(declaration):
            return declaration
        here = {"path": self._folder(run)}
        roots = [{**root, **here} if root["alias"] == ATTACHMENTS else root for root in declaration.options["roots"]]
        return replace(declaration, options={**declaration.options, "roots": roots})

    def close(self) -> None:
        """Remove all folders."""
        if self._base is not None:
            shutil.rmtree(self._base, ignore_errors=True)

    def _folder(self, run: Run) -> str:
        if self._base is None:  # it is for its user alone
            self._base = os.path.realpath(tempfile.mkdtemp(prefix=FOLDER))
        place = hashlib.sha256(f"{run.tree.row.id}/{run.path}".encode()).hexdigest()
        return os.path.join(self._base, place[:32])


def _reaches(declaration: Declaration) -> bool:
    return any(root["alias"] == ATTACHMENTS for root in declaration.options.get("roots", ()))


def _write(folder: str, files: Sequence[tuple[str, bytes]]) -> None:
    os.mkdir(folder)
    with Directory.open(folder, label=ATTACHMENTS) as directory:
        for name, data in files:
            directory.write_atomic(name, data)
