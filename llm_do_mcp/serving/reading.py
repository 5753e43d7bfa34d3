"""What clients read of a project besides tools: prompts, resources, and the values that an argument may have.

Nothing here acts: what is read of a sandbox goes through the gate as a call that nobody can be asked about.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    Prompt,
    PromptReference,
    Resource,
    ResourceLink,
    ResourceTemplate,
    ResourceTemplateReference,
)

from llm_do_mcp.errors import InvalidInput, LlmDoError, Refused
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import Done, Engine
from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.serving import completions, fields, prompts, resources
from llm_do_mcp.serving.caller import caller
from llm_do_mcp.serving.present import Present
from llm_do_mcp.serving.results import ERROR_CHARS
from llm_do_mcp.serving.surface import Published
from llm_do_mcp.toolsets.filesystem import declare_attach, declare_completion

Reference = PromptReference | ResourceTemplateReference
Complete = Callable[[Reference, CompletionArgument], Awaitable[Completion]]


class Reading:
    """Of one project.

    Args:
        engine: Has its runs, and drives what is read of a sandbox.
        present: The project as it is now.
        traced: The run whose trace is at an address; raises `RunError` for one that is not the caller's.
        beside: Other projects are served beside it.
    """

    def __init__(
        self, engine: Engine, present: Present, traced: Callable[[str], Awaitable[str | None]], *, beside: bool
    ) -> None:
        self._engine, self._present, self._traced, self._beside = engine, present, traced, beside

    @property
    def base(self) -> str:
        """How the project's addresses begin."""
        return resources.home(self._present.bench.project, beside=self._beside)

    async def prompts(self) -> list[Prompt]:
        """The exported workers, as far as the caller may call anything."""
        await self._present.look()
        project, tools = self._present.bench.project, self._present.tools
        return [prompts.listed(*each) for each in resources.exported(project, tools)] if _may_call() else []

    async def prompt(self, name: str, arguments: dict[str, str]) -> GetPromptResult:
        """A worker's instructions, for the host's own model.

        Raises:
            MCPError: There is no such prompt, its worker is broken, or it cannot be made with these arguments.
        """
        with self._refusing():
            found = await self._present.named(name)
            if found is None or not found.is_worker:
                raise InvalidInput(f"unknown prompt {cut(escape(name), 80)!r}; prompts/list names those there are")
            bench = self._present.bench
            worker = bench.project.worker(found.subject)
            return await prompts.rendered(bench, self._present.tools, found, worker, arguments)

    async def resources(self) -> list[Resource]:
        """What there is without asking for one file or run."""
        await self._present.look()
        listed = resources.listed(self._present.bench.project, self._present.tools, self.base)
        return list(listed) if _may_call() else []

    async def templates(self) -> list[ResourceTemplate]:
        """The forms of addresses of files and runs."""
        await self._present.look()
        return list(resources.templates(self._present.tools, self.base)) if _may_call() else []

    async def read(self, uri: str) -> ReadResourceContents:
        """What is at an address.

        Raises:
            MCPError: There is nothing that the caller may read.
        """
        with self._refusing():
            await self._present.look()
            if (run := await self._traced(uri)) is not None and uri == f"{resources.RUNS}{run}":
                trace = await self._engine.trace(run)
                assert trace is not None, "it is the caller's"
                return ReadResourceContents(json.dumps(trace.to_json(), default=vars), resources.JSON_TYPE)
            if (named := resources.file_named(uri, self.base)) is not None:
                return await self._file(*named)
            project, tools = self._present.bench.project, self._present.tools
            read = await in_thread(resources.text_of, project, tools, self.base, uri)
            if read is None:
                raise InvalidInput(f"nothing is at {cut(escape(uri), 200)}; resources/list names what there is")
            return ReadResourceContents(self._engine.redact.text(read[0]), read[1])

    def links(self, paths: Iterable[str]) -> list[ResourceLink]:
        """Links to files, as `alias/path`, of those that can be read by address."""
        readable = resources.aliases(self._present.tools)
        base = self.base
        return [
            ResourceLink(type="resource_link", uri=resources.file_address(base, path), name=path)
            for path in paths
            if path.partition("/")[0] in readable
        ]

    async def complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        """The values of an argument of a prompt, or in an address, that begin with what was typed."""
        with self._refusing():
            await self._present.look()
            return completions.completed(await self._values(reference, argument), argument.value)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Errors that a person can meet, as the protocol has them where no result can carry them."""
        try:
            if not _may_call():
                raise Refused("your token does not have the scope 'call' that it needs")
            yield
        except LlmDoError as error:
            text = cut(self._engine.redact.text(str(error)), ERROR_CHARS)
            raise MCPError(code=INVALID_PARAMS, message=text) from None

    async def _file(self, alias: str, path: str) -> ReadResourceContents:
        """A file of a published folder."""
        published = resources.aliases(self._present.tools).get(alias)
        if published is None or published.declaration is None:
            there = ", ".join(resources.aliases(self._present.tools)) or "none"
            raise InvalidInput(f"{cut(escape(alias), 80)}: no folder that is published; there are: {there}")
        roots = [Root.from_json(root) for root in published.declaration.options["roots"]]
        value = {"path": f"{alias}/{path}", "max_bytes": resources.MAX_BYTES}
        output = await self._at_once(declare_attach(roots, any_kind=True), value, published)
        return ReadResourceContents(*resources.shown(path, await self._engine.store.blob(output["blob"])))

    async def _at_once(self, declaration: Declaration, value: JSON, published: Published) -> JSON:
        """A call that nobody can be asked about: what would have to be, is refused."""
        definition = self._present.bench.define_call(declaration, value, published.rules, unattended=True)
        run = await self._engine.start(published.subject, definition, principal=caller().principal)
        done = await self._engine.advance(run)
        if not isinstance(done, Done):
            await self._engine.cancel(run, "nobody can be asked where something is read by address")
            raise Refused(f"reading this has to be approved first: call {published.name}")
        if done.status != "done":
            raise InvalidInput(done.error)
        return done.output

    async def _values(self, reference: Reference, argument: CompletionArgument) -> Iterable[str]:
        """Values of an argument: of many, at least the first that begin with what was typed."""
        if isinstance(reference, PromptReference):
            found = self._present.tools.get(reference.name)
            whole = found.input_schema if found is not None and found.is_worker else {}
            return fields.offered(whole.get("properties", {}).get(argument.name), whole)
        if reference.uri == resources.RUN and argument.name == "run_id":
            mine = caller().principal
            return [row.id for row in await self._engine.runs() if mine in ("", row.principal)]
        named = resources.file_named(reference.uri, self.base)
        listing = None if named is None or argument.name != "path" else self._listing(named[0])
        if listing is None or listing.declaration is None:
            return ()
        roots = [Root.from_json(root) for root in listing.declaration.options["roots"]]
        value = {"path": listing.alias, "begun": argument.value}
        # One more than is offered: whether there are more is told, and how many would take a look at all of them.
        paths: list[str] = await self._at_once(declare_completion(roots, completions.MAX_VALUES + 1), value, listing)
        return paths

    def _listing(self, alias: str) -> Published | None:
        tools = self._present.tools.values()
        return next((tool for tool in tools if (tool.function, tool.alias) == ("files.list", alias)), None)


def completes(server: MCPServer[None], complete: Complete) -> None:
    """Have a server answer what an argument's values are."""

    async def answer(reference: Reference, argument: CompletionArgument, _: CompletionContext | None) -> Completion:
        return await complete(reference, argument)

    server.completion()(answer)  # type: ignore[no-untyped-call]  # the SDK's decorator has no annotations


def _may_call() -> bool:
    return caller().may("call")
