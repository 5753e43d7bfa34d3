"""The same measurements through the SDK's own client, as a host would see them: its cost is in both columns."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.bench.wire import Era
from tests.bench.workload import ECHO, ECHO_ARGUMENTS, READ, READ_ARGUMENTS


async def pair(bare: list[str], ours: list[str], era: Era, calls: int) -> dict[str, tuple[float, float]]:
    """One pair: both servers started, then called in turns.

    Returns:
        Milliseconds, bare and ours, by what was measured: "start" and "call".
    """
    starts, clients = [], []
    async with AsyncExitStack() as stack:
        for command in (bare, ours):
            began = time.perf_counter()
            transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
            mode = "legacy" if era == "2025-11-25" else "auto"
            client = await stack.enter_async_context(Client(transport, mode=mode))
            await client.list_tools()
            starts.append(1000 * (time.perf_counter() - began))
            clients.append(client)
        spent = [0.0, 0.0]
        for turn in range(calls + 1):
            for index, (name, arguments) in enumerate(((ECHO, ECHO_ARGUMENTS), (READ, READ_ARGUMENTS))):
                began = time.perf_counter()
                result = await clients[index].call_tool(name, arguments)
                assert not result.is_error, result
                spent[index] += (time.perf_counter() - began) if turn else 0.0  # the first call warms up
    return {
        "start": (starts[0], starts[1]),
        "call": (1000 * spent[0] / calls, 1000 * spent[1] / calls),
    }
