"""The workers that workers have made in this session.

A session is this process. What was made is what a person approved, kept here; a copy lies in a private folder below the
system's folder for temporary files, for people to look at, and goes with the session. The journal of the run that made
it has it as well, so that the run goes on with it after a crash.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do_mcp.project.bounds import Bounds, within
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.tree import Tree
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.opener import Directory

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project

CREATE = "worker.create"
FOLDER = "llm-do-generated-"
"""What the name of a session's folder begins with."""


@dataclass(frozen=True)
class Made:
    """A worker that another worker made.

    Args:
        name: Its id.
        file: Its file.
        bounds: What it can have at most.
        rules: What its maker was refused, or asked about: so is it.
    """

    name: str
    file: str
    bounds: Bounds
    rules: tuple[Rule, ...]

    def worker(self, project: Project) -> Worker:
        """The worker, in a project.

        Raises:
            ProjectError: Something in its file cannot be used.
        """
        return within(self.bounds, project.unlisted(self.name, self.file))

    def to_json(self) -> dict[str, Any]:
        rules = [dict(vars(rule)) for rule in self.rules]
        return {"name": self.name, "file": self.file, "bounds": self.bounds.to_json(), "rules": rules}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Made:
        return cls(data["name"], data["file"], Bounds.from_json(data["bounds"]), rules_from(data["rules"]))


def rules_from(data: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Rules as a record has them."""
    return tuple(Rule(**{**rule, "unless": tuple(rule["unless"])}) for rule in data)


class Generated:
    """A session's workers."""

    def __init__(self) -> None:
        self._made: dict[str, Made] = {}
        self._folder: str | None = None

    def find(self, name: str) -> Made | None:
        """The worker of a name, in whatever case: files are kept on all file systems."""
        return self._made.get(names.fold(name))

    def rules(self, worker: Worker) -> tuple[Rule, ...]:
        """What holds for a worker because it was made by another."""
        made = self.find(worker.id) if worker.made_by is not None else None
        return () if made is None else made.rules

    def add(self, made: Made, tree: Tree) -> str:
        """Have a worker from now on. Blocks.

        Returns:
            The key under which the tree's journal has it.

        Raises:
            SandboxError: The session's folder cannot be written.
        """
        data = json.dumps(made.to_json()).encode()
        digest = hashlib.sha256(data).hexdigest()
        self._write(made)
        self._made[names.fold(made.name)] = made
        tree.keep(digest, data)
        return digest

    async def restore(self, tree: Tree) -> None:
        """Have what a run made before this process took it up."""
        done = [event.data for event in tree.events.values() if event.kind == CREATE and event.state == "done"]
        for made in {output["worker"]: output["record"] for output in done}.values():  # the last of each name
            again = Made.from_json(json.loads(await tree.blob(made)))
            self._made.setdefault(names.fold(again.name), again)

    def close(self) -> None:
        """Remove the session's folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, made: Made) -> None:
        self._folder = self._folder or tempfile.mkdtemp(prefix=FOLDER)  # which is for its user alone
        with Directory.open(self._folder, label="generated") as folder:
            folder.write_atomic(f"{made.name}.worker", made.file.encode())
