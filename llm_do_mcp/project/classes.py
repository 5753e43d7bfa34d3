"""Classes as schemas: pydantic models, dataclasses and TypedDicts in the project's Python.

Only the tool host can say what a class describes. So a module is imported there once, by a process that ends with it,
and what it said is kept with the hashes of all project files that the import executed: as long as those are the same,
nothing of the project's Python is run again.

What is kept lies in the state folder, once there is one: loading a project makes none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import InvalidReference, ProjectError
from llm_do_mcp.project import schema
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.hosting import Hosting

if TYPE_CHECKING:
    from llm_do_mcp.toolhost.descriptions import SchemaModule

UNSEEN: schema.Schema = {"type": "object"}
"""What stands for a class that nobody was asked about."""
CACHE_FILE = "schemas.json"
FORMS = "write schemas/report.json, schemas.py:Report, or my_project.schemas.Report"

_NAME = r"[^\W\d]\w*"
_IN_FILE = re.compile(rf"(.+\.py):({_NAME})\Z")
_IN_MODULE = re.compile(rf"({_NAME}(?:\.{_NAME})*)\.({_NAME})\Z")


def in_file(reference: str) -> tuple[str, str] | None:
    """The file and the class of `schemas.py:Report`; None for what is not of that form."""
    found = _IN_FILE.match(reference)
    return (found[1], found[2]) if found else None


def in_module(reference: str) -> tuple[str, str]:
    """The module, as the tool host knows it, and the class of `my_project.schemas.Report`.

    Raises:
        InvalidReference: It is not of that form.
    """
    found = _IN_MODULE.match(reference)
    if found is None:
        raise InvalidReference(f"{quoted(reference)} names no schema; {FORMS}")
    return f"{found[1]}:{found[2]}", found[2]


class ClassSchemas:
    """The schemas of a project's classes. Asking for one may take as long as an import: not for an event loop.

    Args:
        hosting: How the project's Python is run.
        folder: The state folder, which need not be there; None where nothing is kept.
        asks: False where only what is kept is told, and nothing is imported.
    """

    def __init__(self, hosting: Hosting, folder: str | None, *, asks: bool = True) -> None:
        self._hosting = hosting
        self._asks = asks
        self._file = None if folder is None else os.path.join(folder, CACHE_FILE)
        self._known: dict[str, SchemaModule] = {}

    def schema(self, module: str, name: str) -> schema.Schema:
        """What a class describes, fit to be published; `UNSEEN` where that is not known and nobody may be asked.

        Args:
            module: As the tool host knows it: `schemas.py`, or `my_project.schemas:Report`.
            name: The class.

        Raises:
            ProjectError: The module cannot be imported, has no such class, or it has no schema that can be published.
        """
        found = self._module(module)
        if found is None:
            return UNSEEN
        if found.error is not None:
            raise ProjectError(f"no schema {name!r}: {found.error}")
        if name in found.broken:
            raise ProjectError(f"{module}: the class {name!r} cannot be a schema: {found.broken[name]}")
        if name not in found.schemas:
            known = ", ".join(found.schemas) or "none"
            raise ProjectError(f"{module}: there is no class {name!r}; there are: {known}")
        try:
            return schema.published(schema.checked(found.schemas[name]))
        except ValueError as error:
            raise ProjectError(f"{module}: the class {name!r} cannot be a schema: {error}") from None

    def _module(self, module: str) -> SchemaModule | None:
        if (known := self._known.get(module)) is None:
            known = self._kept(module) or (self._fetched(module) if self._asks else None)
            if known is not None:
                self._known[module] = known
        return known

    def _fetched(self, module: str) -> SchemaModule:
        """What the tool host says, in a process of its own that sees the module as it is now."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        async def ask() -> SchemaModule:
            host = self._hosting.open()
            try:
                return await host.schemas(module)
            finally:
                await host.aclose()

        with ThreadPoolExecutor(1) as thread:  # this thread may have an event loop already
            found = thread.submit(asyncio.run, ask()).result()
        current = self._is_current(found.files)  # reads them: their content matters from now on
        if found.error is None and found.files and current:
            self._keep(found)
        return found

    # ---- what is kept

    def _kept(self, module: str) -> SchemaModule | None:
        from llm_do_mcp.toolhost.descriptions import SchemaModule

        try:
            found = SchemaModule(**self._entries()[module])
        except (KeyError, TypeError):
            return None
        return found if found.files and self._is_current(found.files) else None

    def _is_current(self, files: dict[str, str]) -> bool:
        try:
            return all(hashlib.sha256(self._hosting.read(path)).hexdigest() == digest for path, digest in files.items())
        except (ProjectError, KeyError):  # one is gone, or its library
            return False

    def _entries(self) -> dict[str, Any]:
        """Module → what is kept of it. A file that another version wrote, or that is damaged, is as good as none."""
        if self._file is None:
            return {}
        try:
            with open(self._file, encoding="utf-8") as file:
                kept = json.load(file)
            return dict(kept["modules"]) if kept["for"] == self._whose() else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _keep(self, found: SchemaModule) -> None:
        if self._file is None or not os.path.isdir(os.path.dirname(self._file)):
            return
        kept = {"for": self._whose(), "modules": {**self._entries(), found.path: asdict(found)}}
        draft = f"{self._file}.{secrets.token_hex(6)}"
        with contextlib.suppress(OSError):  # a state folder that cannot be written: it is asked again next time
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(kept, file)
            os.replace(draft, self._file)

    def _whose(self) -> list[str]:
        """What else the schemas depend on: our version and the interpreter."""
        from llm_do_mcp import __version__

        return [__version__, self._hosting.section.python or sys.version]
