"""One root with a world around it, in front of every back end that runs on this system."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.sandbox.backend import Backend
from llm_do_mcp.sandbox.files import Handles, Sandbox
from llm_do_mcp.sandbox.finalpath import OpenThenVerify
from llm_do_mcp.sandbox.root import Root

if sys.platform != "win32":
    from llm_do_mcp.sandbox.descriptors import Beneath, NameByName

SECRET = "SECRET"

HANDLES = ("openat2", "name by name")
"""The back ends that promise not to be misled by anyone who moves files meanwhile."""


def backend_named(name: str) -> Backend[Any]:
    if name == "openat2":
        if sys.platform == "win32" or not Beneath.works():
            pytest.skip("the kernel has no openat2")
        return Beneath()
    if name == "name by name":
        if sys.platform == "win32":
            pytest.skip("Windows opens nothing relative to a directory")
        return NameByName()
    if sys.platform == "win32":
        return OpenThenVerify()
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not tell the path of an open file")
    return OpenThenVerify(lambda fd: os.readlink(f"/proc/self/fd/{fd}"))


@pytest.fixture(params=[*HANDLES, "open then verify"])
def backend(request: pytest.FixtureRequest) -> Backend[Any]:
    return backend_named(request.param)


@pytest.fixture(params=HANDLES)
def handles(request: pytest.FixtureRequest) -> Backend[Any]:
    return backend_named(request.param)


@dataclass(frozen=True)
class World:
    """A root, and beside it what must never be read or changed."""

    root: Path
    outside: Path
    backend: Backend[Any]

    def sandbox(self, *, handles: Handles | None = None, waits: bool = True, **changes: Any) -> Sandbox:
        values: dict[str, Any] = {"alias": "in", "path": str(self.root), "mode": "rw", **changes}
        return Sandbox([Root(**values)], handles=handles, backend=self.backend, waits=waits)

    @contextlib.contextmanager
    def usual_and_hasty(self, **changes: Any) -> Iterator[tuple[Sandbox, Sandbox]]:
        """A sandbox, and one that does not wait, which share the open root."""
        with (
            contextlib.closing(Handles()) as handles,
            self.sandbox(handles=handles, **changes) as usual,
            self.sandbox(handles=handles, waits=False, **changes) as hasty,
        ):
            yield usual, hasty

    def around(self) -> dict[str, str]:
        """All files outside the root with their content."""
        base = self.root.parent
        files = (path for path in base.rglob("*") if path.is_file() and self.root not in path.parents)
        return {str(path.relative_to(base)): path.read_text() for path in files}


def make_world(base: Path, backend: Backend[Any]) -> World:
    root, outside = base / "root", base / "outside"
    for folder in (root / "sub" / "deep", outside, base / "root-evil"):
        folder.mkdir(parents=True)
    (root / "file.txt").write_text("INSIDE")
    (root / "sub" / "file.txt").write_text("INSIDE")
    (root / "sub" / "deep" / "file.txt").write_text("INSIDE")
    for folder in (outside, base / "root-evil", base):
        (folder / "file.txt").write_text(SECRET)
    return World(root, outside, backend)


@pytest.fixture
def world(tmp_path: Path, backend: Backend[Any]) -> World:
    return make_world(tmp_path, backend)


@pytest.fixture
def held_world(tmp_path: Path, handles: Backend[Any]) -> World:
    """A world before the back ends that hold handles."""
    return make_world(tmp_path, handles)


Operation = Callable[[Sandbox, str], object]
OPERATIONS: dict[str, Operation] = {
    "read_text": lambda sandbox, path: sandbox.read_text("in", path),
    "read_bytes": lambda sandbox, path: sandbox.read_bytes("in", path, 1_000_000),
    "list": lambda sandbox, path: sandbox.list("in", under=path),
    "present": lambda sandbox, path: sandbox.present("in", path),
    "write_text": lambda sandbox, path: sandbox.write_text("in", path, "written"),
}
"""Every operation that takes a path, so that one table is run over all of them."""

READING = ("read_text", "read_bytes")


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions mean nothing to root: be nobody for a while where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)
