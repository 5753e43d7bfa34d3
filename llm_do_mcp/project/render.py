"""Templates into text, in a child process of ours that can be killed.

Jinja's sandbox keeps a template from reaching anything; it does not keep it from running for ever or from asking for
all the memory there is. So templates are rendered in a child with limits on time, memory and output. It is started
when the first template needs it, kept for the next one, and dropped as soon as something went wrong in it. It holds
none of the project's Python (that is the tool host's) and ends by itself when its pipe closes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread

from llm_do_mcp.errors import InvalidInput, TemplateFailed
from llm_do_mcp.project import template
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.load import Project
from llm_do_mcp.project.worker import Template
from llm_do_mcp.toolhost import frames

MAX_CHARACTERS = 1_000_000
MAX_MEMORY = 512 * 2**20
START_SECONDS = 60.0
KEPT = 2
"""Children that wait for the next template; more are started while they are needed at once."""
LOOKED_AT_ONCE = 50
"""Workers whose templates are looked at in one go."""

_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
_START = """\
import sys, json
ours, *others = json.loads(sys.argv[1])
sys.path.insert(0, ours)
sys.path.extend(others)
from llm_do_mcp.project.render_child import main
main(json.loads(sys.argv[2]))
"""


@dataclass(frozen=True)
class Rendered:
    """A worker's texts for one call.

    Args:
        instructions, prompt, fragments, system_fragments: The texts.
        included: Every file that the templates could have included, whatever the input: its path with a hash of what
            it holds, or a name that leads to none with "".
    """

    instructions: str
    prompt: str | None
    fragments: tuple[str, ...]
    system_fragments: tuple[str, ...]
    included: Mapping[str, str] = field(default_factory=dict)

    def asked(self, value: Any) -> str:
        """What the worker is asked: its prompt, and where it has none its input, as it is."""
        if self.prompt is not None:
            return self.prompt
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Renderer:
    """Renders templates, for any number of projects.

    Args:
        seconds: What one call's templates may take; the start of a child is not counted.
        max_characters: What one template may give.
        max_memory: Bytes that a child may have, where the platform can limit them.
    """

    def __init__(
        self, *, seconds: float = 5.0, max_characters: int = MAX_CHARACTERS, max_memory: int = MAX_MEMORY
    ) -> None:
        self._seconds, self._max_characters, self._max_memory = seconds, max_characters, max_memory
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._closed = False

    async def render(
        self, project: Project, worker: Worker, value: Any, params: Mapping[str, Any] | None = None
    ) -> Rendered:
        """The worker's instructions, prompt and fragments for one call.

        Args:
            project: The worker's project.
            worker: The worker.
            value: The input: a text, or a mapping whose fields become variables.
            params: The parameters that the caller gives.

        Raises:
            InvalidInput: A parameter that is missing or not known, two variables of one name, or an input that is not
                JSON.
            TemplateFailed: With file and line: an undefined variable, forbidden access, or a limit that was met.
        """
        variables = template.variables(worker, value, params)
        templates = _templates(worker)
        texts = [given.text for given in templates]
        included: Mapping[str, str] = {}
        jinja = [index for index, one in enumerate(templates) if _is_jinja(one)]
        if jinja:
            request = self._request(project, worker, [templates[index] for index in jinja], variables)
            reply = await anyio.to_thread.run_sync(self._ask, worker.path, request, abandon_on_cancel=True)
            for index, text in zip(jinja, reply["texts"], strict=True):
                texts[index] = text
            included = reply["included"]
        instructions, rest = texts[0], texts[1:]
        prompt = None if worker.prompt is None else rest.pop(0)
        count = len(worker.fragments)
        return Rendered(instructions, prompt, tuple(rest[:count]), tuple(rest[count:]), included)

    def problems(self, project: Project, workers: Sequence[Worker]) -> list[TemplateFailed]:
        """What is wrong with workers' templates whatever their input: syntax, and files that they name. Blocks.

        Args:
            project: The workers' project.
            workers: The workers.
        """
        asked = [worker for worker in workers if any(map(_is_jinja, _templates(worker)))]
        batches = (asked[start : start + LOOKED_AT_ONCE] for start in range(0, len(asked), LOOKED_AT_ONCE))
        return [problem for batch in batches for problem in self._problems(project, batch)]

    def _problems(self, project: Project, workers: Sequence[Worker]) -> list[TemplateFailed]:
        look = [_asked(project, worker, [*filter(_is_jinja, _templates(worker))]) for worker in workers]
        request = self._frame(workers[0], {"look": look, "templates": [], "variables": {}})
        try:
            reply = self._ask(workers[0].path, request)
        except TemplateFailed as error:
            if len(workers) == 1:
                return [error]
            return [problem for worker in workers for problem in self._problems(project, [worker])]
        return [TemplateFailed(**problem) for problem in reply["problems"]]

    def close(self) -> None:
        """End all children; what is being rendered fails."""
        with self._lock:
            self._closed = True
            children = [*self._idle, *self._busy]
            self._idle.clear()
        for child in children:
            child.end()

    def _request(
        self, project: Project, worker: Worker, templates: Sequence[Template], variables: Mapping[str, Any]
    ) -> bytes:
        return self._frame(worker, {"look": None, **_asked(project, worker, templates), "variables": variables})

    def _frame(self, worker: Worker, asked: Mapping[str, Any]) -> bytes:
        try:
            return frames.encode({**asked, "max_characters": self._max_characters, "seconds": self._seconds})
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"worker {worker.id}: the input cannot be carried as JSON ({error})") from error

    def _ask(self, path: str, request: bytes) -> frames.Frame:
        """Have a child answer. Blocks, at most for the limit and a child's start."""
        child = self._take()
        reply = None
        try:
            reply = child.ask(request, self._seconds) if child.start() else None
        finally:
            self._put_away(child, keep=reply is not None and "error" not in reply and not child.timed_out)
        if reply is None:
            if self._closed:
                raise TemplateFailed("the renderer was closed", path=path)
            if not child.ready:
                raise TemplateFailed("the process that renders templates could not be started", path=path)
            over = f"took longer than {self._seconds:g} s and was stopped; look for an endless or huge loop"
            message = over if child.timed_out else "ended the process that renders it; look for what needs much memory"
            raise TemplateFailed(f"the template {message}", path=path)
        if "error" in reply:
            raise TemplateFailed(**reply["error"])
        return reply

    def _take(self) -> _Child:
        with self._lock:
            if self._closed:
                raise TemplateFailed("the renderer was closed")
            child = None
            while child is None and self._idle:
                child = self._idle.pop()
                if not child.lives():
                    child.end()
                    child = None
            try:
                child = child or _Child(self._max_memory)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise TemplateFailed(f"the process that renders templates could not be started: {reason}") from None
            self._busy.add(child)
            return child

    def _put_away(self, child: _Child, *, keep: bool) -> None:
        with self._lock:
            self._busy.discard(child)
            keep = keep and not self._closed and len(self._idle) < KEPT
            if keep:
                self._idle.append(child)
        if not keep:
            child.end()


def _asked(project: Project, worker: Worker, templates: Sequence[Template]) -> dict[str, Any]:
    """Templates of a worker, and the folders that they can include from."""
    homes = template.homes(project, worker)
    return {
        "homes": {name: dict(vars(home)) for name, home in homes.items()},
        "home": worker.library or "",
        "templates": [dict(vars(one)) for one in templates],
    }


def _templates(worker: Worker) -> tuple[Template, ...]:
    """All texts of a worker: instructions, prompt where it has one, fragments."""
    prompts = () if worker.prompt is None else (worker.prompt,)
    return (worker.instructions, *prompts, *worker.fragments, *worker.system_fragments)


def _is_jinja(one: Template) -> bool:
    return not one.verbatim and template.has_jinja(one.text)


class _Child:
    """One process that renders, one request at a time."""

    def __init__(self, max_memory: int) -> None:
        command = [sys.executable, "-I", "-c", _START, json.dumps(_import_folders()), json.dumps(max_memory)]
        self.ready = self.timed_out = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def lives(self) -> bool:
        return self._process.poll() is None

    def start(self) -> bool:
        """Wait until it can be asked; that is not counted as time of the template."""
        self.ready = self.ready or self.ask(None, START_SECONDS) is not None
        return self.ready

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def ask(self, request: bytes | None, seconds: float) -> frames.Frame | None:
        """The reply (to None: the child's greeting), or None where the child ended or had to be ended."""
        timer = threading.Timer(seconds, self._stop)
        timer.daemon = True
        timer.start()
        try:
            if request is not None and self._process.stdin is not None:
                self._process.stdin.write(request)
                self._process.stdin.flush()
            return frames.read(self._process.stdout) if self._process.stdout is not None else None
        except (OSError, ValueError, frames.BrokenStream):  # it ended meanwhile, or was ended from another thread
            return None
        finally:
            timer.cancel()

    def _stop(self) -> None:
        self.timed_out = True
        self._process.kill()


def _import_folders() -> list[str]:
    """Where a child finds this package and Jinja, whatever this process was started with. Nothing is imported here."""
    import llm_do_mcp

    found = [os.path.dirname(os.path.abspath(llm_do_mcp.__path__[0]))]
    for name in ("jinja2", "markupsafe"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found.append(os.path.dirname(os.path.abspath(spec.submodule_search_locations[0])))
    return found
