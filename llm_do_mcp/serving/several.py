"""Several projects as one MCP server: each with its own runs, policy and process for tools, all behind one list.

The names of a project's tools begin with its own name; what follows runs is there once, and finds the project that a
run belongs to. Everything else is done by the servers of the projects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
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

from llm_do_mcp.serving.caller import caller
from llm_do_mcp.serving.completions import completed
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.reading import Reference
from llm_do_mcp.serving.resources import RUN
from llm_do_mcp.serving.rounds import State
from llm_do_mcp.serving.server import TRACE, ProjectServer, instructions
from llm_do_mcp.serving.state import CodecOfSeveral
from llm_do_mcp.serving.surface import FOLLOWING, RUN_WAIT
from llm_do_mcp.serving.tasks import Request, Standing, Tasks

NAME = "llm-do"


class SeveralProjects(HardenedServer):
    """Serves several projects.

    Args:
        servers: Of the projects, made with one `Names`, so that no two of them publish one name.
    """

    def __init__(self, servers: Sequence[ProjectServer]) -> None:
        self._servers = tuple(servers)
        told = "\n\n".join(f"{one.project.name}: {instructions(one.bench)}" for one in servers)
        self._codec = CodecOfSeveral([one.codec for one in servers])
        super().__init__(NAME, told, self._codec, Tasks(self))

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
        state = State.of(context)
        run = arguments.get("run_id") if name in FOLLOWING else None
        run = run if state is None else state.run
        server = await (self._with_run(run, name) if isinstance(run, str) else self._with_tool(name))
        self._codec.seals_with(server.codec)
        return await server.call_tool(name, arguments, context)

    def lasts(self, tool: str) -> bool:
        """Whether calls of a tool may take as long as a worker does, or a person who is asked."""
        return any(server.lasts(tool) for server in self._servers)

    def just_reads(self, tool: str) -> bool:
        """Whether calls of a tool read one file and ask nobody."""
        return any(server.just_reads(tool) for server in self._servers)

    async def list_prompts(self) -> list[Prompt]:
        """The exported workers of all projects."""
        return [prompt for server in self._servers for prompt in await server.list_prompts()]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult:
        """A worker's instructions; raises `MCPError`."""
        return await (await self._with_tool(name)).get_prompt(name, arguments, context)

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

    async def complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        """The values of an argument; of runs, those of all projects whose records can be read."""
        if isinstance(reference, PromptReference):
            return await (await self._with_tool(reference.name)).reading.complete(reference, argument)
        if reference.uri != RUN:
            return await (await self._at(reference.uri)).reading.complete(reference, argument)
        asked = (server.reading.complete(reference, argument) for server in self._servers)
        told = await asyncio.gather(*asked, return_exceptions=True)
        found = [one for one in told if isinstance(one, Completion)]
        lost = [one for one in told if not isinstance(one, Completion)]
        if not found:
            raise lost[0]
        values = (value for one in found for value in one.values)
        return completed(values, argument.value, more=bool(lost) or any(one.has_more for one in found))

    # ---- runs as tasks, see `tasks.py`

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        """Begin a worker's run for a client that will ask how it stands."""
        return await (await self._with_tool(params.name)).begin(params, request)

    async def stands(self, run: str, request: Request) -> Standing:
        """How a run stands."""
        return await (await self._with_run(run)).stands(run, request)

    async def answered(self, run: str, responses: Mapping[str, Any], request: Request) -> None:
        """Pass on a person's answers."""
        await (await self._with_run(run)).answered(run, responses, request)

    async def stop(self, run: str) -> None:
        """Stop a run and all below it."""
        await (await self._with_run(run)).stop(run)

    # ---- which project

    async def _at(self, uri: str) -> ProjectServer:
        """The server of an address; where none has it, the first, which says so."""
        if (trace := TRACE.fullmatch(uri)) is not None:
            return await self._with_run(trace[1])
        return next((server for server in self._servers if uri.startswith(server.reading.base)), self._servers[0])

    async def _with_tool(self, name: str) -> ProjectServer:
        """The server of a tool, or prompt; where none has it, the first, which says so."""
        if (server := self._offering(name)) is None:
            await self.list_tools()  # an edit may have brought it
            server = self._offering(name)
        return server or self._servers[0]

    def _offering(self, name: str) -> ProjectServer | None:
        return next((server for server in self._servers if server.offers(name)), None)

    async def _with_run(self, run: str, tool: str = RUN_WAIT) -> ProjectServer:
        """The server of a run, to be followed with a tool. Where none has it, one with the tool that says so.

        All are asked at once: the record of another project may be damaged, or have to be waited for. One that cannot
        be asked may have it, and says what is wrong.
        """
        if (driver := self._driver(run)) is not None:
            return driver
        mine = caller().principal
        asked = {asyncio.ensure_future(server.engine.belongs(run, mine)): server for server in self._servers}
        waiting = {*asked}
        try:
            while waiting:
                told, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in told:
                    if one.exception() is None and one.result():
                        return asked[one]
            unable = [server for one, server in asked.items() if one.exception() is not None]
            following = [server for server in self._servers if server.offers(tool)]
            return min(following or self._servers, key=lambda server: server not in unable)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    def _driver(self, run: str) -> ProjectServer | None:
        return next((server for server in self._servers if server.engine.drives(run)), None)

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
        self.news.end()
        for server in self._servers:
            server.end()

    async def aclose(self) -> None:
        """Let go of all that the servers hold."""
        self.news.end()
        await asyncio.gather(*(server.aclose() for server in self._servers))
        await self.news.aclose()

    # ---- news

    async def stirred(self) -> None:
        """Wait until files of one of them may have changed."""
        tasks = [asyncio.ensure_future(server.stirred()) for server in self._servers]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def traced(self, uri: str) -> str | None:
        """The run whose trace is at a URI."""
        return await (await self._at(uri)).traced(uri)

    async def grows(self, run: str) -> bool:
        """Wait until a run has come further; whether it still goes on here."""
        driver = self._driver(run)
        return driver is not None and await driver.engine.grows(run)
