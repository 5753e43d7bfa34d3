"""The project as it is on disk at this moment, and what it publishes.

Nothing here watches the files (`news.py` does, for clients that want to be told): whoever is about to list or to begin
something looks first. A look compares what loading had read with what is there (`project/seen.py`); only where
something differs is the project loaded anew. Runs that have begun go on with the bench that they began with. What is
wrong with a worker's Python shows when that is first looked at, for a run: what is published is made anew then, without
the worker.

An edit can break the whole project: a mistake in the manifest, two tools of one name. Then everything stays as it was
last, except that nothing new is begun: `wrong` says what has to be mended, and each look tries again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar

import anyio

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.serving.surface import Published
from llm_do_mcp.toolsets.workbench import Workbench

_STILL = ContextVar("still", default=False)


class Present:
    """Follows a project's files.

    Args:
        bench: The project as it is now.
        publish: What a bench's project publishes.

    Raises:
        ProjectError: It cannot be published.
    """

    def __init__(self, bench: Workbench, publish: Callable[[Workbench], Mapping[str, Published]]) -> None:
        self.bench = bench
        self.tools = publish(bench)
        self._unusable = set(bench.unusable)
        self.wrong: LlmDoError | None = None
        self._publish = publish
        self._looking = anyio.Lock()

    @staticmethod
    @contextlib.contextmanager
    def still() -> Iterator[None]:
        """While the block runs, its looks do nothing: what was seen last is what there is."""
        before = _STILL.set(True)
        try:
            yield
        finally:
            _STILL.reset(before)

    async def look(self) -> None:
        """See to it that `bench` and `tools` are those of the files as they are now, or that `wrong` says why not."""
        if _STILL.get():
            return
        async with self._looking:
            if self.wrong is not None or self.bench.project.changed():
                await in_thread(self._take, lambda: self.bench.of(self.bench.project.again()))
            elif self._unusable != set(self.bench.unusable):
                await in_thread(self._take, lambda: self.bench)

    def _take(self, make: Callable[[], Workbench]) -> None:
        try:
            bench = make()
            unusable, tools = set(bench.unusable), self._publish(bench)
            self.bench, self.tools, self._unusable, self.wrong = bench, tools, unusable, None
        except LlmDoError as error:
            self.wrong = error
