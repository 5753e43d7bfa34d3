"""Calls: what a tool may do while it runs, its context, many at once, and how they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.errors import Diverged, FunctionFailed, Refused, ToolHostDied
from llm_do_mcp.toolhost.client import ToolHost
from tests.toolhost.conftest import Serve, is_gone_within, write

pytestmark = pytest.mark.anyio

needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by pidfd, which is Linux's")


class Started:
    """Waits until a tool has logged something: it is running then."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._event = anyio.Event()

    async def log(self, text: str) -> None:
        self.lines.append(text)
        self._event.set()

    async def wait(self) -> str:
        with anyio.fail_after(10):
            await self._event.wait()
        return self.lines[0]


@pytest.mark.proves("A058")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('bad\\nid')", "tools.py:5: ValueError: bad id"),
        ("raise SystemExit(3)", "tools.py:5: SystemExit: 3"),
        ("raise KeyboardInterrupt", "tools.py:5: KeyboardInterrupt"),
        ("raise GeneratorExit", "tools.py:5: GeneratorExit"),
        ("raise BaseException('base')", "tools.py:5: BaseException: base"),
        ("raise StopIteration", "tools.py:5: "),
        ("raise asyncio.CancelledError", "tools.py:5: CancelledError"),
        ("return recurse()", "tools.py:3: RecursionError: maximum recursion depth exceeded"),
        ("open('/etc/hostname/x')", "tools.py:5: NotADirectoryError"),
        ("raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()", "tools.py:5: Odd: (its text could"),
        ("raise ValueError('x' * 100_000)", "(100,000 characters)"),
        ("raise ValueError('\\udcff')", "tools.py:5: ValueError: \\xff"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_whatever_a_tool_raises_is_one_line_and_the_next_call_works(
    serve: Serve, kind: str, body: str, error: str
) -> None:
    source = f"import asyncio\ndef recurse():\n    return recurse()\n{kind} bad() -> str:\n    {body}\n"
    host = serve({"tools.py": source + "async def good() -> str:\n    return 'good'\n__all__ = ['bad', 'good']\n"})
    with pytest.raises(FunctionFailed) as raised:
        await host.call("tools.py", "bad", {})
    assert error in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 2_200
    assert not isinstance(raised.value, ToolHostDied)
    assert await host.call("tools.py", "good", {}) == "good"


@pytest.mark.proves("A058")
async def test_errors_do_not_show_where_the_project_lies(serve: Serve, tmp_path: Path) -> None:
    host = serve({"tools.py": "def bad() -> str:\n    return open(__file__ + '/x').read()\n"})
    with pytest.raises(FunctionFailed) as raised:
        await host.call("tools.py", "bad", {})
    assert str(tmp_path) not in str(raised.value)


@pytest.mark.proves("A058", "TOOLHOST-TIMEOUT")
@pytest.mark.parametrize(
    "body", ["for _ in range(10**12): pass", "time.sleep(3600)", "re.match('(a+)+$', 'a' * 60 + 'b')"]
)
async def test_a_tool_that_does_not_end_is_stopped_while_our_loop_goes_on(serve: Serve, body: str) -> None:
    host = serve(
        {
            "tools.py": f"""
            import os, re, time
            def bad() -> str:
                {body}
            def pid() -> int:
                return os.getpid()
            """
        }
    )
    before = await host.call("tools.py", "pid", {})
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await anyio.sleep(0.005)
            longest = max(longest, time.monotonic() - began)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        with pytest.raises(
            FunctionFailed, match=r"^tools\.py.*: `bad` was still running after 0\.6 s; it was stopped$"
        ):
            await host.call("tools.py", "bad", {}, timeout=0.6)
        group.cancel_scope.cancel()
    assert longest < 0.4  # a blocked loop would have stood still for all of the 0.6 s
    assert await host.call("tools.py", "pid", {}) != before


@pytest.mark.proves("TOOLHOST-TIMEOUT")
async def test_a_late_tool_is_told_where_it_was(serve: Serve) -> None:
    source = (
        "import asyncio, time\ndef f() -> None:\n    time.sleep(600)\nasync def g() -> None:\n    while True: pass\n"
    )
    host = serve({"tools.py": source}, cancel_grace=0.1)
    with pytest.raises(FunctionFailed, match=r"^tools\.py:3: `f` was still running after 0\.2 s"):
        await host.call("tools.py", "f", {}, timeout=0.2)
    with pytest.raises(FunctionFailed, match=r"^tools\.py:5: `g` was still running after 0\.2 s"):
        await host.call("tools.py", "g", {}, timeout=0.2)


@pytest.mark.proves("TOOLHOST-TIMEOUT")
async def test_the_clock_of_a_call_stands_still_while_it_waits_for_another(serve: Serve) -> None:
    source = "from llm_do_mcp import ToolContext\ndef f(c: ToolContext) -> str:\n    return c.call('slow')\n"
    host = serve({"tools.py": source})

    async def slow(name: str, input: Any) -> str:
        await anyio.sleep(0.5)
        return "done"

    assert await host.call("tools.py", "f", {}, on_call=slow, timeout=0.3) == "done"


@pytest.mark.proves("TOOLHOST-SEPARATE")
async def test_a_server_over_stdio_keeps_its_output_directory_and_signals(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "project/tools.py": """
            import os, signal, subprocess, sys
            def rude() -> str:
                print("printed")
                os.write(1, b"written")
                subprocess.run(["sh", "-c", "echo from a child"])
                os.chdir("/")
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.killpg(0, signal.SIGWINCH)
                os.umask(0)
                return "done"
            def where() -> str:
                return os.getcwd()
            def suicide() -> str:
                os.killpg(0, signal.SIGINT)
                os.killpg(0, signal.SIGTERM)
                return "survived"
            """,
            "server.py": """
            import anyio, os, sys
            from llm_do_mcp.errors import ToolHostDied
            from llm_do_mcp.toolhost.client import ToolHost

            async def main():
                host = ToolHost("project")
                before = os.getcwd()
                assert await host.call("tools.py", "rude", {}) == "done"
                assert await host.call("tools.py", "where", {}) == os.path.abspath("project")
                try:
                    await host.call("tools.py", "suicide", {})
                except ToolHostDied as died:
                    print(died)
                assert os.getcwd() == before
                await host.aclose()

            anyio.run(main)
            """,
        },
    )
    done = await anyio.run_process([sys.executable, "server.py"], cwd=tmp_path, env=_own_path(), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == (
        "tools.py: the tool host ended while `suicide` ran (killed by SIGTERM); its effect is unknown\n"
    )
    assert b"printed" in done.stderr and b"written" in done.stderr and b"from a child" in done.stderr


@pytest.mark.proves("TOOLHOST-DIED")
@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("os._exit(3)", "exit status 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("os.closerange(3, 100)", "killed by SIGKILL"),
        ("[os.write(n, b'garbage ' * 100) for n in range(3, 100) if is_pipe(n)]", "killed by SIGKILL"),
        ("fork_and_exit()", "exit status 9"),
    ],
)
async def test_a_process_that_dies_says_so_and_the_next_call_has_a_new_one(serve: Serve, body: str, how: str) -> None:
    source = f"""
    import os, signal, stat, time
    def is_pipe(n):
        try:
            os.write(n, b"")
            return stat.S_ISFIFO(os.fstat(n).st_mode)
        except OSError:
            return False
    def fork_and_exit():
        if os.fork() == 0:
            os.setsid()  # leaves the group, and holds the pipes open
            time.sleep(5)
            os._exit(0)
        os._exit(9)
    def bad() -> str:
        {body}
        time.sleep(600)
    def good() -> str:
        return "good"
    __all__ = ["bad", "good"]
    """
    host = serve({"tools.py": source})
    with pytest.raises(ToolHostDied) as raised:
        await host.call("tools.py", "bad", {}, timeout=10)
    assert str(raised.value) == f"tools.py: the tool host ended while `bad` ran ({how}); its effect is unknown"
    assert await host.call("tools.py", "good", {}) == "good"


@pytest.mark.proves("TOOLHOST-DIED")
async def test_a_process_that_is_killed_between_calls_is_not_noticed(serve: Serve) -> None:
    host = serve({"tools.py": "import os\ndef pid() -> int:\n    return os.getpid()\n"})
    seen = set()
    for _ in range(5):
        pid = await host.call("tools.py", "pid", {})
        seen.add(pid)
        os.kill(pid, signal.SIGKILL)  # the next call may well find it dying
    assert len(seen) == 5


CONTEXT = """
import asyncio
from llm_do_mcp import ToolContext, tool
from llm_do_mcp.errors import Refused

def plain(context: ToolContext, name: str) -> str:
    for n in range(3):
        context.log(f"line {n}")
    context.progress(1, 2, "half")
    return context.call(name, {"from": str(context.project_root.name), "tuple": (1, 2)})

async def awaited(context: ToolContext, name: str) -> list[str]:
    return await asyncio.gather(*(context.call(name, n) for n in range(20)))

def asks(context: ToolContext) -> str:
    return context.ask("Really?")

def careful(context: ToolContext) -> str:
    try:
        return context.call("forbidden")
    except Refused as error:
        return f"refused: {error}"

def careless(context: ToolContext) -> str:
    try:
        return context.call("forbidden")
    except Exception:
        raise

def swallows(context: ToolContext) -> str:
    try:
        context.call("stops")
    except Exception:
        pass
    return "went on"

def chatty(context: ToolContext) -> str:
    for n in range(5_000):
        context.log("x" * 20_000)
        context.progress(n)
    context.progress(5_000, 5_000)
    return "done"

def late(context: ToolContext, second: ToolContext) -> str:
    return ""

def bad_input(context: ToolContext) -> str:
    return context.call("x", b"x")
"""


@pytest.mark.proves("TOOLHOST-CONTEXT")
async def test_a_context_calls_asks_logs_and_tells_progress(serve: Serve, tmp_path: Path) -> None:
    host = serve({"tools.py": CONTEXT})
    logs: list[str] = []
    progress: list[tuple[float, float | None, str]] = []

    async def call(name: str, input: Any) -> Any:
        return f"{name} {input}"

    async def ask(question: str) -> Any:
        return f"{question} yes"

    async def log(text: str) -> None:
        logs.append(text)

    async def tell(done: float, total: float | None, message: str) -> None:
        progress.append((done, total, message))

    result = await host.call("tools.py", "plain", {"name": "w"}, on_call=call, on_log=log, on_progress=tell)
    assert result == f"w {{'from': '{tmp_path.name}', 'tuple': [1, 2]}}"
    assert logs == ["line 0", "line 1", "line 2"] and progress == [(1, 2, "half")]
    assert await host.call("tools.py", "asks", {}, on_ask=ask) == "Really? yes"
    assert await host.call("tools.py", "awaited", {"name": "w"}, on_call=call) == [f"w {n}" for n in range(20)]
    (module,) = await host.describe(["tools.py"])
    assert [broken.name for broken in module.broken] == ["late"]


@pytest.mark.proves("TOOLHOST-CONTEXT")
async def test_a_context_without_callbacks_refuses_and_a_bad_input_is_an_error(serve: Serve) -> None:
    host = serve({"tools.py": CONTEXT})
    with pytest.raises(FunctionFailed, match=r"FunctionFailed: other functions cannot be called from here$"):
        await host.call("tools.py", "plain", {"name": "w"})
    with pytest.raises(FunctionFailed, match=r"FunctionFailed: nobody can be asked from here$"):
        await host.call("tools.py", "asks", {})
    with pytest.raises(FunctionFailed, match="result is of type bytes"):
        await host.call("tools.py", "bad_input", {})


@pytest.mark.proves("TOOLHOST-CONTEXT")
async def test_what_an_inner_call_raises_reaches_the_tool_or_stops_it(serve: Serve) -> None:
    host = serve({"tools.py": CONTEXT})

    async def call(name: str, input: Any) -> Any:
        if name == "stops":
            raise Diverged("another step")
        raise Refused("`forbidden` was refused")

    assert await host.call("tools.py", "careful", {}, on_call=call) == "refused: `forbidden` was refused"
    with pytest.raises(FunctionFailed, match=r"^tools\.py:\d+: Refused: `forbidden` was refused$"):
        await host.call("tools.py", "careless", {}, on_call=call)
    with pytest.raises(Diverged, match="another step"):
        await host.call("tools.py", "swallows", {}, on_call=call)

    async def unserialisable(name: str, input: Any) -> Any:
        return object()

    with pytest.raises(TypeError):
        await host.call("tools.py", "careful", {}, on_call=unserialisable)


@pytest.mark.proves("TOOLHOST-CONTEXT")
async def test_a_callback_that_fails_stops_the_tool_and_is_raised(serve: Serve) -> None:
    host = serve({"tools.py": CONTEXT})

    async def broken(*told: Any) -> None:
        raise ConnectionError("the client is gone")

    for callback in ("on_log", "on_progress"):
        with pytest.raises(ConnectionError, match="the client is gone"):
            await host.call("tools.py", "plain", {"name": "never"}, on_call=never, **{callback: broken})


@pytest.mark.proves("TOOLHOST-CONTEXT")
async def test_a_chatty_tool_floods_nobody(serve: Serve) -> None:
    host = serve({"tools.py": CONTEXT})
    logs: list[str] = []
    progress: list[float] = []

    async def log(text: str) -> None:
        logs.append(text)

    async def tell(done: float, total: float | None, message: str) -> None:
        progress.append(done)

    began = time.monotonic()
    await host.call("tools.py", "chatty", {}, on_log=log, on_progress=tell)
    assert len(logs) == 1_000 and len(logs[0]) == 10_000
    assert logs[-1] == "(after 999 lines, the rest of this call's log is dropped)"
    assert progress[-1] == 5_000 and len(progress) <= (time.monotonic() - began) / 0.1 + 2


@pytest.mark.proves("TOOLHOST-NESTED")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_45_nested_calls_finish(serve: Serve, kind: str) -> None:
    wait = "context.call('down', depth - 1)"
    body = f"return 1 + {'await ' if kind == 'async' else ''}{wait}"
    source = f"""
    from llm_do_mcp import ToolContext
    {"async " if kind == "async" else ""}def down(context: ToolContext, depth: int) -> int:
        if depth == 0:
            return 0
        {body}
    """
    host = serve({"tools.py": source})

    async def call(name: str, depth: Any) -> Any:
        return await host.call("tools.py", name, {"depth": depth}, on_call=call)

    with anyio.fail_after(20):
        assert await call("down", 45) == 45


@pytest.mark.proves("TOOLHOST-PARALLEL")
async def test_60_slow_calls_do_not_hold_up_the_next(serve: Serve) -> None:
    source = """
    from llm_do_mcp import ToolContext
    def slow(context: ToolContext) -> str:
        context.log("began")
        return context.call("wait")
    def quick() -> str:
        return "quick"
    """
    host = serve({"tools.py": source})
    began = 0
    all_began, finish = anyio.Event(), anyio.Event()
    results: list[str] = []

    async def log(text: str) -> None:
        nonlocal began
        began += 1
        if began == 60:
            all_began.set()

    async def wait(name: str, input: Any) -> str:
        await finish.wait()
        return "slow"

    async def slow() -> None:
        results.append(await host.call("tools.py", "slow", {}, on_log=log, on_call=wait))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(slow)
            await all_began.wait()
            assert await host.call("tools.py", "quick", {}) == "quick"
            assert results == []
            finish.set()
    assert results == ["slow"] * 60


STOPPABLE = """
import os, time
from llm_do_mcp import ToolContext

def endless(context: ToolContext) -> None:
    context.log(str(os.getpid()))
    while True:
        pass

def obedient(context: ToolContext) -> None:
    context.log(str(os.getpid()))
    while not context.cancelled:
        time.sleep(0.001)
    open("obeyed", "w").close()

def waiting(context: ToolContext) -> None:
    context.log(str(os.getpid()))
    try:
        context.call("never")
    except Exception:
        open("wrongly caught", "w").close()
    finally:
        open("released", "w").close()

async def awaiting(context: ToolContext) -> None:
    context.log(str(os.getpid()))
    try:
        await context.call("never")
    finally:
        open("released", "w").close()

def writes_later(context: ToolContext) -> None:
    context.log(str(os.getpid()))
    time.sleep(2.5)
    open("effect", "w").close()

def brief(context: ToolContext, seconds: float) -> str:
    context.log(str(os.getpid()))
    time.sleep(seconds)
    return "finished"

def pid() -> int:
    return os.getpid()
"""


async def never(name: str, input: Any) -> Any:
    await anyio.sleep_forever()


async def cancelled_once_running(host: ToolHost, function: str) -> int:
    """Calls a function, cancels the call once it runs, and gives the process id that it ran in."""
    started = Started()

    async def call() -> None:
        await host.call("tools.py", function, {}, on_log=started.log, on_call=never)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        pid = int(await started.wait())
        group.cancel_scope.cancel()
    return pid


@needs_pidfd
@pytest.mark.proves("TOOLHOST-CANCEL")
@pytest.mark.parametrize("function", ["endless", "writes_later"])
async def test_a_cancelled_call_that_does_not_end_is_killed_before_the_caller_goes_on(
    serve: Serve, tmp_path: Path, function: str
) -> None:
    host = serve({"tools.py": STOPPABLE})
    began = time.monotonic()
    pid = await cancelled_once_running(host, function)
    assert time.monotonic() - began < 2
    assert is_gone_within(pid, 0.2)
    assert not (tmp_path / "effect").exists()
    assert await host.call("tools.py", "pid", {}) != pid


@pytest.mark.proves("TOOLHOST-CANCEL")
@pytest.mark.parametrize("function", ["obedient", "waiting", "awaiting"])
async def test_a_cancelled_call_that_ends_by_itself_costs_nobody_the_process(
    serve: Serve, tmp_path: Path, function: str
) -> None:
    host = serve({"tools.py": STOPPABLE}, cancel_grace=10)
    pid = await cancelled_once_running(host, function)
    assert (tmp_path / ("obeyed" if function == "obedient" else "released")).exists()
    assert not (tmp_path / "wrongly caught").exists()
    assert await host.call("tools.py", "pid", {}) == pid


@pytest.mark.proves("TOOLHOST-CANCEL", "TOOLHOST-DIED")
async def test_other_calls_in_a_process_that_must_be_killed_finish_or_are_told_why(serve: Serve) -> None:
    host = serve({"tools.py": STOPPABLE}, drain=1.0)
    outcomes: dict[float, str] = {}
    running = {seconds: Started() for seconds in (0.8, 600.0)}

    async def call(seconds: float) -> None:
        try:
            outcomes[seconds] = await host.call("tools.py", "brief", {"seconds": seconds}, on_log=running[seconds].log)
        except ToolHostDied as died:
            outcomes[seconds] = str(died)

    async with anyio.create_task_group() as group:
        for seconds in running:
            group.start_soon(call, seconds)
        for started in running.values():
            await started.wait()
        await cancelled_once_running(host, "endless")
    assert outcomes[0.8] == "finished"
    assert outcomes[600.0] == (
        "tools.py: the tool host ended while `brief` ran (`endless` of tools.py did not end); its effect is unknown"
    )


@needs_pidfd
@pytest.mark.proves("TOOLHOST-CLOSE")
async def test_after_closing_no_child_is_left_within_a_second(serve: Serve) -> None:
    source = """
    import os, subprocess, sys
    from llm_do_mcp import ToolContext
    def busy(context: ToolContext) -> None:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        context.log(f"{os.getpid()} {child.pid}")
        while True:
            pass
    """
    host = serve({"tools.py": source})
    started = Started()
    died: list[str] = []

    async def call() -> None:
        try:
            await host.call("tools.py", "busy", {}, on_log=started.log)
        except ToolHostDied as error:
            died.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        pids = (await started.wait()).split()
        began = time.monotonic()
        await host.aclose()
        assert time.monotonic() - began < 1
    assert all(is_gone_within(int(pid), 0.1) for pid in pids)
    assert died == ["tools.py: the tool host ended while `busy` ran (the server is stopping); its effect is unknown"]
    with pytest.raises(FunctionFailed, match="the tool host is closed"):
        await host.call("tools.py", "busy", {})


@pytest.mark.proves("TOOLHOST-LAZY")
async def test_no_process_is_started_before_it_is_needed(tmp_path: Path) -> None:
    host = ToolHost(tmp_path, python="nowhere/python")
    await host.aclose()


@needs_pidfd
@pytest.mark.proves("TOOLHOST-ORPHAN")
@pytest.mark.parametrize("body", ["time.sleep(600)", "while True: pass", "re.match('(a+)+$', 'a' * 60 + 'b')"])
def test_a_tool_host_ends_with_a_server_that_was_killed(tmp_path: Path, body: str) -> None:
    write(
        tmp_path,
        {
            "tools.py": f"""
            import os, re, subprocess, time
            from llm_do_mcp import ToolContext
            def stuck(context: ToolContext) -> None:
                child = subprocess.Popen(["sleep", "600"])
                context.log(f"{{os.getpid()}} {{child.pid}}")
                {body}
            """,
            "server.py": """
            import anyio
            from llm_do_mcp.toolhost.client import ToolHost

            async def show(text):
                print(text, flush=True)

            async def main():
                await ToolHost(".").call("tools.py", "stuck", {}, on_log=show)

            anyio.run(main)
            """,
        },
    )
    command = [sys.executable, "server.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=_own_path(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pids = [int(pid) for pid in server.stdout.readline().split()]
        assert len(pids) == 2
        server.kill()
    assert all(is_gone_within(pid, 1.0) for pid in pids)


@pytest.mark.proves("TOOLHOST-EVALUATE")
async def test_any_function_can_be_evaluated_with_one_value(serve: Serve) -> None:
    source = """
    def reply(request):
        return {"text": request["x"] * 2}
    async def later(request):
        return request
    X = 1
    """
    host = serve({"models/scripted.py": source})
    assert await host.evaluate("models/scripted.py", "reply", {"x": "ab"}) == {"text": "abab"}
    assert await host.evaluate("models/scripted.py", "later", [1, None]) == [1, None]
    with pytest.raises(FunctionFailed, match=r"^models/scripted\.py:3: KeyError: 'x'$"):
        await host.evaluate("models/scripted.py", "reply", {})
    for name in ("X", "gone"):
        with pytest.raises(FunctionFailed, match=rf"^models/scripted\.py: no function `{name}`$"):
            await host.evaluate("models/scripted.py", name, {})


@pytest.mark.proves("TOOLHOST-EVALUATE")
async def test_a_request_with_a_large_document_arrives(serve: Serve) -> None:
    host = serve({"m.py": "def size(request):\n    return len(request['document'])\n"})
    assert await host.evaluate("m.py", "size", {"document": "x" * 43_000_000}) == 43_000_000


@pytest.mark.proves("TOOLHOST-AUTHOR")
def test_importing_the_package_loads_nothing_and_a_marked_function_stays_itself() -> None:
    program = """
    import sys
    before = set(sys.modules)
    import llm_do_mcp
    assert set(sys.modules) - before <= {"llm_do_mcp", "__future__"}, set(sys.modules) - before
    from llm_do_mcp import ToolContext, tool
    @tool(risk="write")
    def f(a: int) -> int: return a + 1
    assert f(1) == 2
    assert not {"pydantic", "anyio", "asyncio"} & set(sys.modules)
    try:
        tool(risk="harmless")
    except ValueError as error:
        assert str(error) == "unknown risk 'harmless'; it is one of read, write, network, destructive"
    else:
        raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, env=_own_path())


def _own_path() -> dict[str, str]:
    """An environment in which the package of this checkout is found."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
