"""What a project's modules may do while they are imported, and how they find each other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.errors import FunctionFailed
from tests.toolhost.conftest import Serve, write

pytestmark = pytest.mark.anyio

GOOD = """
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.mark.proves("A057")
@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\nraise RuntimeError('no\\nluck')", "bad.py:2: RuntimeError: no luck"),
        ("x = 1\n1 / 0", "bad.py:2: ZeroDivisionError: division by zero"),
        ("def broken(:\n  pass", "bad.py:1: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(4)", "bad.py:2: SystemExit: 4"),
        ("raise KeyboardInterrupt", "bad.py:1: KeyboardInterrupt"),
        ("import os\nos._exit(7)", "bad.py: the tool host ended while it was imported (exit status 7)"),
        ("import ctypes\nctypes.string_at(0)", "(killed by SIGSEGV)"),
        ("name = input('who? ')", "bad.py:1: EOFError: EOF when reading a line"),
        ("import sys\nsys.setrecursionlimit(200)\ndef f(): f()\nf()", "bad.py:3: RecursionError"),
        ("import json\njson.loads('{')", "bad.py:2: JSONDecodeError"),
        ("open('missing/file.txt')", "bad.py:1: FileNotFoundError"),
        ("raise RuntimeError('\\udcff')", "bad.py:1: RuntimeError: \\xff"),
    ],
)
async def test_a_module_that_fails_while_imported_is_one_line_and_the_others_work(
    serve: Serve, source: str, error: str
) -> None:
    host = serve({"bad.py": source, "tools.py": GOOD})
    good, bad, again = await host.describe(["tools.py", "bad.py", "tools.py"])
    assert bad.error is not None and error in bad.error and "\n" not in bad.error
    assert bad.error.startswith("bad.py") and bad.functions == ()
    assert good == again and good.error is None
    assert await host.call("tools.py", "add", {"a": 1, "b": 2}) == 3


@pytest.mark.proves("A057")
async def test_an_import_that_does_not_end_is_stopped_and_told_where(serve: Serve) -> None:
    host = serve(
        {"bad.py": "import time\n\nwhile True:\n    time.sleep(0.001)\n", "tools.py": GOOD}, import_timeout=0.5
    )
    bad, good = await host.describe(["bad.py", "tools.py"])
    late = "still importing after 0.5 s; it was stopped; it is tried again once its code has changed"
    assert bad.error in {f"bad.py:{line}: {late}" for line in (3, 4)}
    assert good.error is None


SLOW = """
import os, time
from llm_do_mcp import ToolContext
COUNT = []
def slow(context: ToolContext) -> int:
    context.log("began")
    context.call("wait")
    return os.getpid()
def pid() -> int:
    COUNT.append(1)
    return os.getpid()
def count() -> int:
    return len(COUNT)
"""


FATAL = {
    "exit": "import os\nos._exit(7)",
    "loop": "while True: pass",
    "spoil": "import sys\nsys.modules.clear()",
    "raise": "raise ValueError('no')",
}


@pytest.mark.proves("A057", "TOOLHOST-TRIAL")
@pytest.mark.parametrize("how", FATAL)
async def test_an_import_harms_no_call_that_is_under_way_and_is_not_tried_again(
    serve: Serve, tmp_path: Path, how: str
) -> None:
    marked = f"open('tried', 'a').write('x')\n{FATAL[how]}"
    host = serve({"tools.py": SLOW, "bad.py": marked}, import_timeout=1.0)
    began, finish = anyio.Event(), anyio.Event()
    results: list[int] = []

    async def log(text: str) -> None:
        began.set()

    async def wait(name: str, input: Any) -> None:
        await finish.wait()

    async def slow() -> None:
        results.append(await host.call("tools.py", "slow", {}, on_log=log, on_call=wait))

    async with anyio.create_task_group() as group:
        group.start_soon(slow)
        await began.wait()
        pid = await host.call("tools.py", "pid", {})
        errors = set()
        for _ in range(3):
            bad, good = await host.describe(["bad.py", "tools.py"])
            errors.add(bad.error)
            assert good.error is None and await host.call("tools.py", "pid", {}) == pid
        finish.set()
    assert results == [pid] and await host.call("tools.py", "count", {}) == 4
    (error,) = errors
    assert error is not None and error.startswith("bad.py")
    if how != "raise":  # what it lacked may be there by now
        assert (tmp_path / "tried").read_text() == "x"
    write(tmp_path, {"bad.py": f"{GOOD}\n__all__ = ['add']"})
    assert (await host.describe(["bad.py"]))[0].error is None
    assert await host.call("bad.py", "add", {"a": 1, "b": 2}) == 3


@pytest.mark.proves("TOOLHOST-TRIAL")
async def test_the_time_of_an_import_begins_when_its_turn_comes_whatever_else_is_imported(serve: Serve) -> None:
    files = {f"m{n}.py": f"import time\ntime.sleep(0.3)\n{GOOD}\n__all__ = ['add']" for n in range(6)}
    host = serve({**files, "tools.py": SLOW, "bad.py": "while True: pass"}, import_timeout=1.5)
    assert await host.call("tools.py", "count", {}) == 0
    errors: dict[str, str | None] = {}

    async def describe(path: str) -> None:
        (module,) = await host.describe([path])
        errors[path] = module.error

    async with anyio.create_task_group() as group:
        for path in ("bad.py", *files):
            group.start_soon(describe, path)
    assert errors.pop("bad.py") is not None and errors == dict.fromkeys(files)


@pytest.mark.proves("TOOLHOST-TRIAL")
@pytest.mark.parametrize("how", ["exit", "loop"])
async def test_who_calls_while_an_import_ends_the_first_process_is_served(serve: Serve, how: str) -> None:
    host = serve({"tools.py": SLOW, "bad.py": FATAL[how]}, import_timeout=1.0)
    (module,) = await host.describe(["tools.py"])
    assert module.error is None
    outcomes: list[Any] = []

    async def describe() -> None:
        outcomes.append((await host.describe(["bad.py"]))[0].error)

    async def call() -> None:
        outcomes.append(await host.call("tools.py", "count", {}))

    async with anyio.create_task_group() as group:
        group.start_soon(describe)
        for _ in range(5):
            group.start_soon(call)
    assert outcomes.count(0) == 5 and len(outcomes) == 6


@pytest.mark.proves("A057", "TOOLHOST-SEPARATE")
async def test_what_an_import_changes_in_its_process_does_not_reach_ours(
    serve: Serve, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here = os.getcwd()
    host = serve(
        {
            "tools.py": """
            import logging, os, sys, threading, time
            print("printed", flush=True)
            os.write(1, b"written")
            logging.basicConfig(stream=sys.stdout, level="INFO")
            logging.info("logged")
            os.chdir("/")
            os.environ["PATH"] = "nowhere"
            threading.Thread(target=time.sleep, args=(600,)).start()
            ballast = bytearray(1_000_000_000)

            def where() -> str:
                return os.getcwd()
            """
        }
    )
    assert await host.call("tools.py", "where", {}) == str(tmp_path)
    await host.aclose()
    out, err = capfd.readouterr()
    assert out == ""
    assert "printed" in err and "written" in err and "logged" in err
    assert os.getcwd() == here and os.environ["PATH"] != "nowhere"


@pytest.mark.proves("A059")
async def test_module_names_are_private(serve: Serve) -> None:
    files = {
        name: f"def me() -> str:\n    return {name!r}\n__all__ = ['me']\n" for name in ("json.py", "re.py", "mcp.py")
    }
    files |= {
        f"workers/{worker}/tools.py": f"def me() -> str:\n    import json, re\n    return json.dumps({worker!r})\n"
        for worker in ("a", "b", "my-worker")
    }
    host = serve(files)
    for name in ("json.py", "re.py", "mcp.py"):
        assert await host.call(name, "me", {}) == name
    for worker in ("a", "b", "my-worker"):
        assert await host.call(f"workers/{worker}/tools.py", "me", {}) == f'"{worker}"'


@pytest.mark.proves("A059")
async def test_a_module_imports_its_neighbours_relatively_and_the_root_by_name(serve: Serve) -> None:
    host = serve(
        {
            "shared.py": "WHO = 'root'",
            "workers/a/helper.py": "WHO = 'a'",
            "workers/b/helper.py": "WHO = 'b'",
            "workers/a/tools.py": """
                import shared
                from . import helper
                from ...shared import WHO

                def who() -> list[str]:
                    return [helper.WHO, shared.WHO, WHO]
            """,
            "workers/b/tools.py": "from .helper import WHO\n\ndef who() -> list[str]:\n    return [WHO]\n",
        }
    )
    assert await host.call("workers/a/tools.py", "who", {}) == ["a", "root", "root"]
    assert await host.call("workers/b/tools.py", "who", {}) == ["b"]


@pytest.mark.proves("A059")
async def test_a_missing_package_is_named_with_what_to_do(serve: Serve) -> None:
    host = serve({"tools.py": "import json\nimport pandoras.box\n", "w/tools.py": "import helper\n", "w/helper.py": ""})
    missing, neighbour = await host.describe(["tools.py", "w/tools.py"])
    assert missing.error is not None
    assert missing.error.startswith("tools.py:2: needs the package 'pandoras', which the interpreter of the tool host")
    assert missing.error.endswith("install it there, or name another interpreter in the manifest's tools.python")
    assert neighbour.error == (
        "w/tools.py:1: no module 'helper'; for the file beside this one write `from . import helper`"
    )


@pytest.mark.proves("A059")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("gone.py", "gone.py: no such file"),
        ("../tools.py", "a tool module is named by its path in the project"),
        ("/etc/passwd", "a tool module is named by its path in the project"),
        ("", "a tool module is named by its path in the project"),
        ("tools\0.py", "a tool module is named by its path in the project"),
        ("notes.txt", "a tool module is a .py file, or a folder with an __init__.py"),
        ("folder/", "a folder of tools needs an __init__.py"),
        ("v1.2/tools.py", "Python cannot import from a path with a dot in a name"),
        ("twice.py", "hidden by the package of the same name"),
    ],
)
async def test_a_path_that_is_no_module_is_an_error(serve: Serve, path: str, error: str) -> None:
    host = serve(
        {
            "notes.txt": "",
            "folder/x.py": "",
            "v1.2/tools.py": "",
            "twice.py": "",
            "twice/__init__.py": "",
        }
    )
    (module,) = await host.describe([path])
    assert module.error is not None and error in module.error


@pytest.mark.proves("TOOLHOST-EDITED")
async def test_describe_sees_edits_of_whatever_a_module_imports(serve: Serve, tmp_path: Path) -> None:
    host = serve({"helper.py": "N = 1", "tools.py": "import helper\n\ndef n() -> int:\n    return helper.N\n"})
    (before,) = await host.describe(["tools.py"])
    assert await host.call("tools.py", "n", {}) == 1
    write(tmp_path, {"helper.py": "N = 2"})  # same size, same second
    (after,) = await host.describe(["tools.py"])
    assert await host.call("tools.py", "n", {}, code_hash=after.code_hash) == 2
    assert before.code_hash != after.code_hash
    with pytest.raises(Exception, match=r"^tools\.py: its code is not the one that this call was meant for"):
        await host.call("tools.py", "n", {}, code_hash=before.code_hash)


@pytest.mark.proves("TOOLHOST-EDITED")
async def test_a_call_finishes_with_the_code_that_it_began_with(serve: Serve, tmp_path: Path) -> None:
    source = """
    from llm_do_mcp import ToolContext
    def version(context: ToolContext) -> int:
        context.call("edit")
        return 1
    """
    host = serve({"tools.py": source})
    nested: list[int] = []

    async def edit(name: str, input: Any) -> None:
        write(tmp_path, {"tools.py": "def version() -> int:\n    return 2\n"})
        await host.describe(["tools.py"])
        nested.append(await host.call("tools.py", "version", {}))

    assert await host.call("tools.py", "version", {}, on_call=edit) == 1
    assert nested == [2]


@pytest.mark.proves("TOOLHOST-EDITED")
async def test_a_module_that_failed_is_tried_again_when_described_again(serve: Serve, tmp_path: Path) -> None:
    host = serve({"tools.py": "from . import later\n\ndef n() -> int:\n    return later.N\n"})
    (before,) = await host.describe(["tools.py"])
    assert before.error is not None
    write(tmp_path, {"later.py": "N = 3"})
    (after,) = await host.describe(["tools.py"])
    assert after.error is None
    assert await host.call("tools.py", "n", {}) == 3


@pytest.mark.proves("TOOLHOST-HASH")
async def test_the_code_hash_covers_what_is_imported_and_nothing_else(serve: Serve, tmp_path: Path) -> None:
    files = {
        "other.py": "N = 1",
        "lib/__init__.py": "",
        "lib/deep.py": "from .deeper import N",
        "lib/deeper.py": "N = 1",
        "tools.py": "def n() -> int:\n    return 1\n",
        "w/tools.py": "from lib import deep\n\ndef n() -> int:\n    return deep.N\n",
    }
    host = serve(files)
    modules = ["tools.py", "w/tools.py"]
    first = [module.code_hash for module in await host.describe(modules)]
    assert [module.code_hash for module in await serve(files).describe(modules[::-1])] == first[::-1]
    write(tmp_path, {"other.py": "N = 2"})
    assert [module.code_hash for module in await host.describe(modules)] == first
    write(tmp_path, {"lib/deeper.py": "N = 2"})
    changed = [module.code_hash for module in await host.describe(modules)]
    assert changed[0] == first[0] and changed[1] != first[1]


LATER = {
    "import": "    import later\n    return later.who()",
    "from": "    from later import who\n    return who()",
    "import_module": "    import importlib\n    return importlib.import_module('later').who()",
    "relative": "    from importlib import import_module\n    return import_module('.later', __package__).who()",
    "dunder": "    return __import__('later').who()",
    "table": "    import importlib\n    return importlib.import_module({1: 'plugins.later'}[1]).who()",
    "star": "    space = {}\n    exec('from plugins import *', space)\n    return space['later'].who()\nimport plugins",
}
"""How a function comes to import a module only when it is called."""


@pytest.mark.proves("TOOLHOST-HASH")
@pytest.mark.parametrize("how", LATER)
async def test_what_is_imported_when_a_function_is_called_is_what_its_hash_covers(
    serve: Serve, tmp_path: Path, how: str
) -> None:
    place = "plugins/later.py" if how in ("table", "star") else "later.py"
    plugins = {"plugins/__init__.py": "__all__ = ['later']"}
    host = serve({"tools.py": f"def who() -> str:\n{LATER[how]}\n", place: "def who():\n    return 'old'", **plugins})
    (before,) = await host.describe(["tools.py"])
    with host.snapshot() as run:
        assert await run.describe(["tools.py"]) == (before,)
        write(tmp_path, {place: "def who():\n    return 'new'"})
        assert await run.call("tools.py", "who", {}, code_hash=before.code_hash) == "old", "what was hashed runs"
    (after,) = await host.describe(["tools.py"])
    assert after.code_hash != before.code_hash
    with pytest.raises(FunctionFailed, match="its code is not the one that this call was meant for"):
        await host.call("tools.py", "who", {}, code_hash=before.code_hash)
    assert await host.call("tools.py", "who", {}, code_hash=after.code_hash) == "new"
    assert (await host.describe(["tools.py"])) == (after,), "whether it was called or not"


@pytest.mark.proves("TOOLHOST-EDITED")
async def test_nothing_is_written_into_the_project(serve: Serve, tmp_path: Path) -> None:
    host = serve({"helper.py": "N = 1", "tools.py": "import helper\nfrom . import helper\n" + GOOD})
    await host.call("tools.py", "add", {"a": 1, "b": 2})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["helper.py", "tools.py"]


@pytest.mark.proves("TOOLHOST-AUTHOR")
async def test_the_author_imports_tool_under_a_bare_interpreter(serve: Serve, tmp_path: Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    bare = tmp_path / "bin" / "bare"
    write(tmp_path, {"bin/bare": f'#!/bin/sh\nexec "{base}" -S -I "$@"\n'})
    bare.chmod(0o755)
    source = """
    import sys
    from llm_do_mcp import ToolContext, tool
    from llm_do_mcp.errors import CallError

    @tool(risk="read", idempotent=True)
    def facts(context: ToolContext) -> dict[str, bool]:
        "What is there."
        return {
            "isolated": bool(sys.flags.isolated and sys.flags.no_site),
            "mcp": any("mcp" == name for name in sys.modules),
            "ours_on_path": any("toolhost" in path for path in sys.path),
        }
    """
    host = serve({"tools.py": source}, python="bin/bare")
    (module,) = await host.describe(["tools.py"])
    assert [(tool.name, tool.risk, tool.idempotent, tool.takes_context) for tool in module.functions] == [
        ("facts", "read", True, True)
    ]
    assert await host.call("tools.py", "facts", {}) == {"isolated": True, "mcp": False, "ours_on_path": False}


@pytest.mark.proves("TOOLHOST-INTERPRETER")
@pytest.mark.parametrize(
    ("python", "error"),
    [
        ("bin/none", "tools.python: no interpreter 'bin/none'; name a command, or a path from the project"),
        ("no-such-python-here", "tools.python: no interpreter 'no-such-python-here'"),
        ("bin/false", "tools.python: bin/false cannot run the tool host: it ended at once (exit status 1)"),
        ("bin/mute", "the tool host did not answer within 0.3 s of its start"),
        ("bin/old", "tools.python: bin/old cannot run the tool host: it is Python 3.8; the tool host needs 3.11"),
        ("bin/garbage", "tools.python: garbage: Exec format error"),
    ],
)
async def test_an_interpreter_that_cannot_be_used_is_told(
    serve: Serve, tmp_path: Path, python: str, error: str
) -> None:
    pretend = """
    import runpy, sys
    sys.version_info = (3, 8, 0, "final", 0)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    """
    host = serve(
        {
            "tools.py": GOOD,
            "bin/false": "#!/bin/sh\nexit 1\n",
            "bin/mute": "#!/bin/sh\nexec sleep 600\n",
            "bin/pretend.py": pretend,
            "bin/old": f'#!/bin/sh\nshift 2\nexec "{sys.executable}" "{tmp_path}/bin/pretend.py" "$@"\n',
            "bin/garbage": "\x7f",
        },
        python=python,
        start_timeout=0.3 if python == "bin/mute" else 10.0,
    )
    for program in (tmp_path / "bin").iterdir():
        program.chmod(0o755)
    (module,) = await host.describe(["tools.py"])
    assert module.error is not None and module.error.startswith(f"tools.py: {error}")
    with pytest.raises(Exception, match=r"^tools\.py: `add` cannot be run: ") as raised:
        await host.call("tools.py", "add", {"a": 1, "b": 2})
    assert error in str(raised.value)


@pytest.mark.proves("TOOLHOST-ENVIRONMENT")
async def test_the_environment_has_the_basics_and_what_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("CRM_TOKEN", "named")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.delenv("NOT_SET", raising=False)
    source = "import os\n\ndef environment() -> dict[str, str]:\n    return dict(os.environ)\n"
    host = serve({"tools.py": source}, env=["CRM_TOKEN", "NOT_SET"])
    found = await host.call("tools.py", "environment", {})
    assert found["CRM_TOKEN"] == "named" and found["LC_TIME"] == "C" and found["PATH"] == os.environ["PATH"]
    assert "ANTHROPIC_API_KEY" not in found and "NOT_SET" not in found and "PYTEST_CURRENT_TEST" not in found


PARTS = {
    "tools/__init__.py": "",
    "tools/marked.py": "from llm_do_mcp import tool\n@tool\ndef one() -> int: return 1\ndef helps() -> None: pass",
    "tools/listed.py": "from ._common import two\n__all__ = ['two']",
    "tools/_common.py": "def two() -> int: return 2",
    "tools/plain.py": "def plain() -> int: return 3",
}


@pytest.mark.proves("TOOLHOST-CONTRACTS")
async def test_a_package_that_says_nothing_offers_what_its_files_mark_and_list(serve: Serve, tmp_path: Path) -> None:
    host = serve(PARTS)
    (package,) = await host.describe(["tools"])
    assert [function.name for function in package.functions] == ["one", "two"] and package.error is None
    assert [await host.call("tools", name, {}) for name in ("one", "two")] == [1, 2]
    write(tmp_path, {"tools/_common.py": "def two() -> int: return 22"})
    (edited,) = await host.describe(["tools"])
    assert edited.code_hash != package.code_hash and await host.call("tools", "two", {}) == 22
    write(tmp_path, {"tools/more.py": PARTS["tools/marked.py"]})
    (doubled,) = await host.describe(["tools"])
    assert [function.name for function in doubled.functions] == ["one", "two"]
    assert [broken.reason for broken in doubled.broken] == [
        "tools/more.py:2: `one` cannot be a tool: there are two in tools; rename one"
    ]
    write(tmp_path, {"tools/__init__.py": "from ._common import two\n__all__ = ['two']"})
    (speaking,) = await host.describe(["tools"])
    assert [function.name for function in speaking.functions] == ["two"]


@pytest.mark.proves("TOOLHOST-CONTRACTS")
async def test_a_file_of_a_silent_package_that_fails_is_named(serve: Serve) -> None:
    (package,) = await serve({**PARTS, "tools/bad.py": "x = 1\n1 / 0"}).describe(["tools"])
    assert package.error == "tools/bad.py:2: ZeroDivisionError: division by zero"
