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

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar

from llm_do_mcp.errors import LlmDoError, ProjectError
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.serving.surface import Published, worker_names
from llm_do_mcp.serving.watch import Looks
from llm_do_mcp.toolsets.workbench import Workbench

_STILL = ContextVar("still", default=False)


@contextlib.contextmanager
def still() -> Iterator[None]:
    """While the block runs, its looks do nothing: what was seen last is what there is."""
    before = _STILL.set(True)
    try:
        yield
    finally:
        _STILL.reset(before)


class Present:
    """Follows a project's files.

    Args:
        bench: The project as it is now.
        publish: What a bench's project publishes.
        beside: Other projects are served beside it.

    Raises:
        ProjectError: It cannot be published.
    """

    def __init__(
        self, bench: Workbench, publish: Callable[[Workbench], Mapping[str, Published]], *, beside: bool
    ) -> None:
        self.bench = bench
        self._publish, self._beside = publish, beside
        with self._named_in_errors():
            self.tools = publish(bench)
        self._unusable = set(bench.unusable)
        self.wrong: LlmDoError | None = None
        self._looking = asyncio.Lock()
        self._looks = Looks()

    async def look(self) -> None:
        """See to it that `bench` and `tools` are those of the files as they are now, or that `wrong` says why not."""
        if _STILL.get():
            return
        async with self._looking:
            project = self.bench.project
            if self.wrong is not None or self._looks.changed(project.folders, project.changed):
                await in_thread(self._take, lambda: self.bench.of(self.bench.project.again()))
            elif self._unusable != set(self.bench.unusable):
                await in_thread(self._take, lambda: self.bench)

    def offers(self, name: str) -> bool:
        """Whether a tool of this name is, or would be but for an error in its worker, published."""
        return name in self.tools or name in self._workers()

    async def named(self, name: str) -> Published | None:
        """The tool of a name, as it is now; None where there is none.

        Raises:
            LlmDoError: It would be published but for an error in its worker, which this is.
        """
        await self.look()
        if name not in self.tools and (missing := self._workers().get(name)) is not None:
            with self._named_in_errors():
                worker = self.bench.project.worker(missing)  # a broken one, which says what is wrong with it
                await self.bench.declarations(worker)  # so does this, or its Python has been mended meanwhile
            await self.look()
        return self.tools.get(name)

    def close(self) -> None:
        """Follow nothing any more."""
        self._looks.close()

    def _workers(self) -> Mapping[str, str]:
        """Name → id of each exported worker, also of those that are broken."""
        return worker_names(self.bench.project, beside=self._beside)

    def _take(self, make: Callable[[], Workbench]) -> None:
        try:
            with self._named_in_errors():
                bench = make()
                unusable, tools = set(bench.unusable), self._publish(bench)
            self.bench, self.tools, self._unusable, self.wrong = bench, tools, unusable, None
        except LlmDoError as error:
            self.wrong = error

    @contextlib.contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        """While the block runs, what is wrong with the project's files is told with its name, if it is one of several.

        Raises:
            ProjectError: As the block does.
        """
        try:
            yield
        except ProjectError as error:
            if not self._beside:
                raise
            raise ProjectError(f"{self.bench.project.name}: {error}") from None
