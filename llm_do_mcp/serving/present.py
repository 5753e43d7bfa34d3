"""The project as it is on disk at this moment, and what it publishes.

Nothing watches the files: whoever is about to list or to begin something looks first. A look compares what loading had
read with what is there (`project/seen.py`); only where something differs is the project loaded anew. Runs that have
begun go on with the bench that they began with.

An edit can break the whole project: a mistake in the manifest, two tools of one name. Then everything stays as it was
last, except that nothing new is begun: `wrong` says what has to be mended, and each look tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.serving.surface import Published
from llm_do_mcp.toolsets.workbench import Workbench


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
        self.wrong: LlmDoError | None = None
        self._publish = publish
        self._looking = anyio.Lock()

    async def look(self) -> None:
        """See to it that `bench` and `tools` are those of the files as they are now, or that `wrong` says why not."""
        async with self._looking:
            if self.wrong is not None or self.bench.project.changed():
                await in_thread(self._load)

    def _load(self) -> None:
        try:
            bench = self.bench.of(self.bench.project.again())
            self.bench, self.tools, self.wrong = bench, self._publish(bench), None
        except LlmDoError as error:
            self.wrong = error
