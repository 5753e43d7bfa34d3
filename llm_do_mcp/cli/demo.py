"""`llm-do demo`: the example project, end to end, the way an MCP client uses it.

The server is a real child process over stdio and the client is the SDK's own: what is seen here is what Claude Desktop
or an IDE sees. With a key (or a base URL) for the Messages API a real model does the work; without one a script does,
and every result says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE, FAILED
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import RunError, UsageError
from llm_do_mcp.runtime.account import NO_MODEL

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

EXAMPLE = "pitchdeck_eval"
MODEL = "anthropic:claude-haiku-4-5"
SCRIPT = "scripted:scripted/model.yaml"
REQUEST = "Evaluate all decks and rank them."


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do demo",
        "Serve the example to a real MCP client, and show all that happens.",
        notes=("A model does the work where ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set, else a script.",),
        examples={"llm-do demo": "", "llm-do demo --yes": ""},
        environment=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "LLM_DO_MODEL"),
        more="Try it",
    )
    made.add_argument("--yes", action="store_true", help="approve every question; so does a demo without a terminal")
    made.add_argument("--project", metavar="PROJECT", help="another project (default: the example that came along)")
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do demo`."""
    from mcp.shared.exceptions import MCPError

    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.serving.surface import publish
    from llm_do_mcp.toolsets.workbench import Workbench

    options = parser().parse_intermixed_args(given)
    project = load(options.project or str(_example()))
    if project.entry is None:
        raise UsageError(f"{project.given} has no entry worker to call")
    project.worker(project.entry)
    publish(Workbench(project))  # what would stop the server is said before there is one
    try:
        return asyncio.run(_demo(project, ask=terminal.has_person() and not options.yes))
    except* MCPError:
        pass
    raise RunError("the server has ended before it had answered")


def _example() -> Path:
    """The example: of a clone in place, of an installed package as a copy in the working directory."""
    import llm_do_mcp

    package = Path(llm_do_mcp.__file__).parent
    clone = package.parent / "projects" / EXAMPLE
    if clone.is_dir():
        return clone
    installed, copy = package / "projects" / EXAMPLE, Path.cwd() / EXAMPLE
    if not copy.exists():
        if not installed.is_dir():
            raise UsageError("the example did not come with this installation; name a project with --project")
        shutil.copytree(installed, copy)
    return copy


async def _demo(project: Project, *, ask: bool) -> int:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.types import ElicitRequestFormParams, ElicitResult

    from llm_do_mcp.runtime.hint import of_project

    has_model = bool(os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_BASE_URL"))
    chosen = os.environ.get("LLM_DO_MODEL") or (MODEL if has_model else SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name.startswith("ANTHROPIC_")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "llm_do_mcp.cli.serve", project.given],
        env={**environment, "LLM_DO_MODEL": chosen},
    )
    began = time.monotonic()

    allowed: set[tuple[str, ...]] = set()

    def told(line: str) -> None:
        terminal.say(f"{time.monotonic() - began:6.1f} s  {line}")

    async def answer(context: Any, params: Any) -> ElicitResult:
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        decisions = params.requested_schema["properties"]["decision"]["enum"]
        if not ask:
            told(f"approved without asking: {params.message.splitlines()[0]}")
            return ElicitResult(action="accept", content={"decision": decisions[0]})
        given = await terminal.ask(params.message, decisions, skip=lambda: _kind(params.message) in allowed)
        if given is None or given.silence is not None:
            return ElicitResult(action="cancel")
        if given.decision == "run":
            allowed.add(_kind(params.message))
        return ElicitResult(action="accept", content={"decision": given.decision, "note": given.note})

    async def told_progress(progress: float, total: float | None, message: str | None) -> None:
        told(message or "")

    terminal.say(f"llm-do-mcp {project.given}")
    why = "" if has_model else f" ({NO_MODEL}: no ANTHROPIC_API_KEY, no ANTHROPIC_BASE_URL)"
    terminal.say(f"model: {chosen}{why}")
    if not ask:
        terminal.say("approvals: every question is approved without asking (--yes, or no terminal)")
    async with Client(stdio_client(server), elicitation_callback=answer) as client:
        tools = (await client.list_tools()).tools
        terminal.say(f"\nconnected, protocol {client.protocol_version}; {len(tools)} tools:")
        for tool in tools:
            terminal.say(f"  {tool.name:30} {shorten(tool.description or '', 86, placeholder=' …')}")
        entry = tools[0].name
        terminal.say(f"\ncalling {entry}: {REQUEST}")
        result = await client.call_tool(entry, {"input": REQUEST}, progress_callback=told_progress)
        while result.is_error and _is_open(result):
            run = _account(result)["id"]
            result = await client.call_tool("run_wait", {"run_id": run}, progress_callback=told_progress)
    account = _account(result)
    print("\n".join(block.text for block in result.content if block.type == "text"))
    if account:  # else nothing was run
        terminal.say("\nwritten:")
        for path in account["files_changed"]:
            terminal.say(f"  {path}")
        terminal.say(f"record:  {of_project(project, None)('trace', account['id'])}")
    return FAILED if result.is_error else DONE


def _kind(message: str) -> tuple[str, ...]:
    """What two questions of one batch have in common when "for the rest of this run" means both."""
    head, asker, function, *_ = message.splitlines()
    return (head.rpartition(" ")[2].partition("/")[0], asker, function.partition("  ")[0])


def _account(result: Any) -> dict[str, Any]:
    account: dict[str, Any] = (result.meta or {}).get("llm-do/run", {})
    return account


def _is_open(result: Any) -> bool:
    return _account(result).get("status") in ("running", "waiting")
