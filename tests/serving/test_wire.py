"""Messages over the two ends of a stdio connection, on descriptors of every kind."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from llm_do_mcp.serving.wire import CHUNK, Incoming, Outgoing

pytestmark = pytest.mark.anyio

KINDS = ("pipe", "socket")


@pytest.fixture(params=KINDS)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The descriptors to read from and to write to."""
    if request.param == "pipe":
        reading, writing = os.pipe()
    else:
        reading, writing = (end.detach() for end in socket.socketpair())
    # Where the loop blocks in a write, no timeout of the loop's ends it: losing the reader does.
    rescue = threading.Timer(10, os.close, (reading,))
    rescue.start()
    yield reading, writing
    rescue.cancel()
    for end in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(end)


async def _lines(file: int) -> list[str]:
    return [line async for line in Incoming(file)]


@pytest.mark.proves("WIRE-LINES")
async def test_lines_come_in_whole_however_they_are_cut_on_the_way(ends: tuple[int, int]) -> None:
    reading, writing = ends
    incoming = Incoming(reading)
    for part in (b'{"a', b'":1}\n{"b":2}\n\n{"c"', ":3}\nü".encode()[:-1]):
        os.write(writing, part)
    assert [await anext(incoming) for _ in range(4)] == ['{"a":1}\n', '{"b":2}\n', "\n", '{"c":3}\n']
    os.write(writing, "ü".encode()[-1:] + b"\xff")
    os.close(writing)
    assert await anext(incoming) == "ü\ufffd"
    with pytest.raises(StopAsyncIteration):
        await anext(incoming)


@pytest.mark.proves("WIRE-LINES")
async def test_a_long_line_comes_in_whole(ends: tuple[int, int]) -> None:
    reading, writing = ends
    line = "x" * (3 * CHUNK + 1) + "\n"

    def write() -> None:
        rest = (line + "end").encode()
        while rest:
            rest = rest[os.write(writing, rest) :]
        os.close(writing)

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, write)
        assert await _lines(reading) == [line, "end"]


@pytest.mark.proves("WIRE-LINES")
async def test_lines_come_in_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_bytes(b"one\r\ntwo\rstill two\nthree")
    file = os.open(path, os.O_RDONLY)
    try:
        assert await _lines(file) == ["one\r\n", "two\rstill two\n", "three"]
    finally:
        os.close(file)


def _never() -> None:
    pytest.fail("somebody reads")


@pytest.mark.proves("WIRE-MESSAGES")
async def test_a_client_that_does_not_read_holds_up_its_own_messages_only(ends: tuple[int, int]) -> None:
    reading, writing = ends
    sent = [f"{number} {'x' * (200 if number % 3 else 300_000)}\n" for number in range(60)]
    outgoing = Outgoing(writing, _never)
    finished = 0

    async def send() -> None:
        nonlocal finished
        for message in sent:
            await outgoing.write(message)
            finished += 1
        os.close(writing)

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        # The first message fills the connection; the loop gets here all the same.
        await anyio.wait_readable(reading)
        assert finished < len(sent)
        assert "".join(await _lines(reading)) == "".join(sent)


@pytest.mark.proves("WIRE-MESSAGES")
@pytest.mark.parametrize("ends", ["pipe"], indirect=True)
async def test_short_messages_that_fill_a_pipe_do_not_block_the_loop(ends: tuple[int, int]) -> None:
    reading, writing = ends
    message, count = "x" * 999 + "\n", 200  # more than a pipe holds
    outgoing = Outgoing(writing, _never)

    async def send() -> None:
        for _ in range(count):
            await outgoing.write(message)
        os.close(writing)

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        await anyio.wait_readable(reading)
        assert await _lines(reading) == [message] * count
