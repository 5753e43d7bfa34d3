"""Several projects as one MCP server: each with its own runs, policy and process for tools, all behind one list.

The names of a project's tools begin with its own name; what follows runs is there once, and finds the project that a
run belongs to. Everything else is done by the servers of the projects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, RequestStateSecurity
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    Completion,
    CompletionArgument,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    Tool,
)
from pydantic import AnyUrl

from llm_do_mcp.errors import ProjectError, RunError
from llm_do_mcp.runtime.question import Question
from llm_do_mcp.runtime.state import request_state_keys
from llm_do_mcp.runtime.store import RunRow
from llm_do_mcp.serving.caller import caller
from llm_do_mcp.serving.completions import completed
from llm_do_mcp.serving.connection import MODERN
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.news import Lists, News
from llm_do_mcp.serving.reading import Reference, completes
from llm_do_mcp.serving.resources import RUN
from llm_do_mcp.serving.server import CACHED, FRESH_MS, STATE_TTL_S, ProjectServer, instructions
from llm_do_mcp.serving.state import LazyCodec
from llm_do_mcp.serving.surface import FOLLOWING
from llm_do_mcp.serving.tasks import Request, Tasks

NAME = "llm-do"


class SeveralProjects(HardenedServer):
    """Serves several projects.

    Args:
        servers: Of the projects, made with `beside=True`.

    Raises:
        ProjectError: Two of their tools would have one name.
    """

    def __init__(self, servers: Sequence[ProjectServer]) -> None:
        from llm_do_mcp import __version__

        _apart(servers)
        self._servers = tuple(servers)
        keys = servers[0].engine.folder
        lists: Lists = {"tools": self.list_tools, "prompts": self.list_prompts, "resources": self.list_resources}
        self._news = News(lists, self._still, self._stirred, self._traced, self._grows)
        super().__init__(
            NAME,
            version=__version__,
            instructions="\n\n".join(f"{one.project.name}: {instructions(one.bench)}" for one in servers),
            request_state_security=RequestStateSecurity(
                codec=LazyCodec(lambda: request_state_keys(keys)), ttl=STATE_TTL_S
            ),
            log_level="WARNING",
            cache_hints={method: CacheHint(FRESH_MS) for method in CACHED},
            subscriptions=self._news.bus,
            extensions=[Tasks(self)],
        )
        self._news.attach(self._lowlevel_server)
        completes(self, self._complete)

    # ---- the SDK's seams

    async def list_tools(self) -> list[Tool]:
        """The tools of all projects, in their order; those that follow runs last."""
        listed = [tool for server in self._servers for tool in await server.list_tools()]
        following = {tool.name: tool for tool in listed if tool.name in FOLLOWING}
        return [*(tool for tool in listed if tool.name not in FOLLOWING), *following.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a published tool.

        Raises:
            MCPError: There is no such tool.
        """
        state = context.request_state if context is not None and context.protocol_version == MODERN else None
        run = arguments.get("run_id") if name in FOLLOWING else None
        server = await self._server_of(name, json.loads(state)["run"] if state is not None else run)
        return await server.call_tool(name, arguments, context)

    async def list_prompts(self) -> list[Prompt]:
        """The exported workers of all projects."""
        return [prompt for server in self._servers for prompt in await server.list_prompts()]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult:
        """A worker's instructions; raises `MCPError`."""
        return await (await self._server_of(name, None)).get_prompt(name, arguments, context)

    async def list_resources(self) -> list[Resource]:
        """What can be read of the projects without asking for one file or run."""
        return [resource for server in self._servers for resource in await server.list_resources()]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """The forms of addresses; that of runs is there once."""
        forms = [form for server in self._servers for form in await server.list_resource_templates()]
        return list({form.uri_template: form for form in forms}.values())

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """What is at an address; raises `MCPError`."""
        return await (await self._at(str(uri))).read_resource(uri, context)

    async def _complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        if isinstance(reference, PromptReference):
            return await (await self._server_of(reference.name, None)).reading.complete(reference, argument)
        if reference.uri != RUN:
            return await (await self._at(reference.uri)).reading.complete(reference, argument)
        found = [await server.reading.complete(reference, argument) for server in self._servers]
        return completed((value for one in found for value in one.values), argument.value)

    # ---- runs as tasks, see `tasks.py`

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        """Begin a worker's run for a client that will ask how it stands."""
        return await (await self._server_of(params.name, None)).begin(params, request)

    async def stands(self, run: str, request: Request) -> tuple[RunRow, CallToolResult | Sequence[Question] | None]:
        """How a run stands."""
        return await (await self._server_of("", run)).stands(run, request)

    async def answered(self, run: str, responses: Mapping[str, Any], request: Request) -> None:
        """Pass on a person's answers."""
        await (await self._server_of("", run)).answered(run, responses, request)

    async def stop(self, run: str) -> None:
        """Stop a run and all below it."""
        await (await self._server_of("", run)).stop(run)

    # ---- which project

    async def _at(self, uri: str) -> ProjectServer:
        """The server of an address; where none has it, the first, which says so."""
        for server in self._servers:
            with contextlib.suppress(RunError):
                if uri.startswith(server.reading.base) or await server.traced(uri) is not None:
                    return server
        return self._servers[0]

    async def _server_of(self, name: str, run: object) -> ProjectServer:
        """The server of a call; where none has the tool or the run, the first, which says so."""
        if isinstance(run, str):
            for server in self._servers:
                if await server.engine.belongs(run, caller().principal):
                    return server
        for server in self._servers:
            if server.offers(name):
                return server
        if name:
            await self.list_tools()  # an edit may have brought it
        return next((server for server in self._servers if server.offers(name)), self._servers[0])

    # ---- how it runs

    def guard(self) -> None:
        """Keep secrets of all projects out of what the process logs."""
        for server in self._servers:
            server.guard()

    def leave(self) -> None:
        """Whoever asked is gone."""
        for server in self._servers:
            server.leave()

    def end(self) -> None:
        """The server is about to end."""
        self._news.end()
        for server in self._servers:
            server.end()

    async def aclose(self) -> None:
        """Let go of all that the servers hold."""
        self._news.end()
        await asyncio.gather(*(server.aclose() for server in self._servers))
        await self._news.aclose()

    # ---- news

    @contextlib.contextmanager
    def _still(self) -> Iterator[None]:
        with contextlib.ExitStack() as all_:
            for server in self._servers:
                all_.enter_context(server.still())
            yield

    async def _stirred(self) -> None:
        tasks = [asyncio.ensure_future(server.stirred()) for server in self._servers]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _traced(self, uri: str) -> str | None:
        return await (await self._at(uri)).traced(uri)

    async def _grows(self, run: str) -> bool:
        driver = next((server for server in self._servers if server.engine.drives(run)), None)
        return driver is not None and await driver.engine.grows(run)


def _apart(servers: Sequence[ProjectServer]) -> None:
    """See to it that no two projects publish one name.

    Raises:
        ProjectError: Two do.
    """
    owners: dict[str, str] = {}
    for server in servers:
        for tool in server.tools:
            root = server.project.root
            if tool not in FOLLOWING and (other := owners.setdefault(tool, root)) != root:
                raise ProjectError(
                    f"two tools would be called {tool!r}, of the projects {other} and {root}; give one of them "
                    "another `name` in its project.yaml"
                )
