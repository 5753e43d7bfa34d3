"""What a loop adds to each turn of its model: ours, journal included, beside `pydantic-ai`'s, which keeps none.

Both have the same model on loopback do the same work: read a small file in each turn. Beside them the bare SDK has the
same conversation, in one piece and streamed (as ours is, so that a long answer cannot time out); what a loop takes
longer than its bare SDK is what it adds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.model import PATH, TOOL, running, task

MODEL = "claude-haiku-4-5"
TURNS = 20
SYSTEM = "You look after a note."
DESCRIPTION = "Read a text file."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
FILES = {
    "project.yaml": "name: noted\nmodel: anthropic:{model}\n",
    "main.worker": "---\ntoolsets: {{filesystem: {{}}}}\nsandbox: {{paths: {{in: {{root: ./in, mode: ro}}}}}}\n---\n"
    "{system}\n",
    PATH: "One line of a note.\n" * 10,
}

Loop = Callable[[], Awaitable[Any]]


async def _bare(client: Any, root: Path, *, streamed: bool) -> None:
    """The least that has this conversation: the SDK, and the file."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task(TURNS)}]
    tools = [{"name": TOOL, "description": DESCRIPTION, "input_schema": SCHEMA}]
    options: dict[str, Any] = {"model": MODEL, "max_tokens": 4096, "system": SYSTEM, "tools": tools}
    while True:
        if streamed:
            async with client.messages.stream(messages=messages, **options) as stream:
                reply = await stream.get_final_message()
        else:
            reply = await client.messages.create(messages=messages, **options)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": (root / call.input["path"]).read_text()}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def peer(client: Any, root: Path) -> Any:
    """The agent of `pydantic-ai` that has the same work.

    Raises:
        ImportError: It is not installed.
    """
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async def read_file(path: str) -> str:
        """Read a text file."""
        return (root / path).read_text()

    model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
    return Agent(model, instructions=SYSTEM, tools=[read_file])


def _pydantic_ai(client: Any, root: Path) -> dict[str, Loop]:
    """Its loop, as it is by default and streamed; nothing where it is not installed."""
    try:
        agent = peer(client, root)
    except ImportError:
        return {}

    async def whole() -> None:
        result = await agent.run(task(TURNS), usage_limits=None)
        assert len(result.all_messages()) == 2 * TURNS

    async def heard(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    async def streamed() -> None:
        result = await agent.run(task(TURNS), event_stream_handler=heard)
        assert len(result.all_messages()) == 2 * TURNS

    return {"pydantic-ai": whole, "pydantic-ai, streamed": streamed}


async def measure(pairs: int) -> dict[str, list[float]]:
    """Milliseconds a turn, by loop; in each pair every loop runs once."""
    with tempfile.TemporaryDirectory(prefix="llm-do-bench-") as folder, running() as address:
        os.environ["ANTHROPIC_BASE_URL"] = address
        os.environ["ANTHROPIC_API_KEY"] = "unused"
        return await _measure(Path(folder), pairs)


def write_project(root: Path) -> None:
    """Write the project with the one worker."""
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content if name == PATH else content.format(model=MODEL, system=SYSTEM))


@contextlib.asynccontextmanager
async def ours(root: Path) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
    """Our loop in this process: what runs the project's worker with an input, and gives what came of it."""
    from llm_do_mcp.project.load import load_project
    from llm_do_mcp.runtime.engine import Done, Engine
    from llm_do_mcp.toolsets.workbench import Workbench

    bench = Workbench(load_project(root))
    engine = Engine(root / ".llm-do", bench.body)

    async def run(given: str) -> Done:
        begun = await engine.start("main", await bench.define(bench.project.worker("main"), given, {}))
        done = await engine.advance(begun)
        assert isinstance(done, Done) and done.status == "done", done
        return done

    try:
        yield run
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()


async def _measure(root: Path, pairs: int) -> dict[str, list[float]]:
    from anthropic import AsyncAnthropic

    write_project(root)
    client = AsyncAnthropic()
    async with client, ours(root) as run:
        return await _rounds(root, client, run, pairs)


async def _rounds(root: Path, client: Any, run: Callable[[str], Awaitable[Any]], pairs: int) -> dict[str, list[float]]:
    async def journaled() -> None:
        done = await run(task(TURNS))
        assert done.account["calls"] == TURNS - 1, done

    loops: dict[str, Loop] = {
        "bare SDK": lambda: _bare(client, root, streamed=False),
        "bare SDK, streamed": lambda: _bare(client, root, streamed=True),
        "ours, streamed, with journal": journaled,
        **_pydantic_ai(client, root),
    }
    took: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(pairs + 1):
        for name, loop in loops.items():
            began = time.perf_counter()
            await loop()
            if number:  # the first round warms up
                took[name].append(1000 * (time.perf_counter() - began) / TURNS)
    return took


def report(pairs: int) -> bool:
    """Print what the loops take and add; whether ours adds no more than the other does."""
    took = asyncio.run(measure(pairs))
    print(f"\na turn of a scripted model over HTTP, in conversations of {TURNS} turns (median of {pairs})")
    print(f"{'':30}{'whole':>11}{'added':>11}")

    def added(name: str) -> list[float]:
        base = "bare SDK, streamed" if "streamed" in name else "bare SDK"
        return [whole - bare for whole, bare in zip(took[name], took[base], strict=True)]

    for name, figures in took.items():
        over = "" if name.startswith("bare") else f"{median(added(name)):8.2f} ms"
        print(f"{name:30}{median(figures):8.2f} ms{over}")
    others = [name for name in took if name.startswith("pydantic-ai")]
    if not others:
        print("pydantic-ai is not installed (the dependency group `bench`): nothing to compare with")
        return True
    mine = added("ours, streamed, with journal")
    met = True
    for other in others:
        ratio = median(mine) / median(added(other))
        held = ratio <= 1.0
        met = met and held
        print(f"ours adds {ratio:.2f} of what {other} adds (target: at most 1.00){'' if held else '   missed'}")
    return met


if __name__ == "__main__":
    sys.exit(0 if report(int(sys.argv[1]) if len(sys.argv) > 1 else 15) else 1)
