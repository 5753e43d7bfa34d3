"""What the tests of commands share: small programs, and a project whose worker runs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llm_do_mcp.runtime.question import Answer, Question
from tests.project.conftest import worker
from tests.runtime.workshop import Workshop, refuse

PROGRAMS = {
    "words": """
        import json, sys
        print(json.dumps(sys.argv[1:]))
        """,
    "surroundings": """
        import json, os, sys
        inside = {"environment": dict(os.environ), "folder": os.getcwd(), "input": sys.stdin.read()}
        inside["terminal"] = any(map(os.isatty, range(3)))
        inside["open"] = [fd for fd in map(int, os.listdir("/dev/fd")) if fd > 3]
        inside["home"] = os.listdir(os.environ["HOME"])
        inside["files"] = sorted(os.listdir("."))
        print(json.dumps(inside))
        """,
    "flood": """
        import sys
        piece = b"x" * 65536
        for _ in range(int(sys.argv[1]) // 65536):
            sys.stdout.buffer.write(piece)
        """,
    "ends": """
        import os, signal, sys
        print("out")
        print("err", file=sys.stderr, flush=True)
        sys.stdout.flush()
        if sys.argv[1] == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(int(sys.argv[1]))
        """,
    # Three processes that hold a FIFO open: whoever reads it sees its end when all of them are gone.
    "family": """
        import os, signal, sys
        fifo = os.open(sys.argv[1], os.O_WRONLY)
        os.write(fifo, b"guard %d\\n" % os.getppid())
        ready, told = os.pipe()

        def live(name):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.write(fifo, name + b"\\n")
            os.write(told, b".")
            while True:
                signal.pause()

        if os.fork() == 0:
            live(b"child")
        if sys.platform == "linux" and os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            live(b"daemon")
        if sys.argv[2] == "leave":
            for _ in range(2 if sys.platform == "linux" else 1):
                os.read(ready, 1)
            print("left", flush=True)
        else:
            live(b"parent")
        """,
    # What it does to its parent and its group is not to change what becomes of it.
    "rebel": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if sys.argv[2] == "group":
            os.kill(0, signal.SIGTERM)
            sys.exit(7)
        fifo = os.open(sys.argv[1], os.O_WRONLY)
        os.write(fifo, b"parent\\n")
        os.kill(os.getppid(), getattr(signal, sys.argv[2]))
        os.write(fifo, b"child\\n")
        while True:
            signal.pause()
        """,
    "record": """
        import os, signal, sys
        with open("effects.txt", "a") as file:
            file.write("once\\n")
        os.write(os.open(sys.argv[1], os.O_WRONLY), b"recorded\\n")
        while True:
            signal.pause()
        """,
}

RULES = """
- {pattern: "words **", approval_required: false}
- {pattern: "surroundings **", approval_required: false}
- {pattern: "flood **", approval_required: false}
- {pattern: "ends **", approval_required: false}
- {pattern: "family **", approval_required: false}
- {pattern: "record **", approval_required: false}
- {pattern: "rebel **", approval_required: false}
"""
ROOTS = "{in: {root: ./in, mode: ro}, work: {root: ./work, mode: rw}}"


def install(folder: Path, programs: Mapping[str, str]) -> Path:
    """Put programs into a folder."""
    from textwrap import dedent

    folder.mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / name).write_text(f"#!{sys.executable} -IS\n{dedent(text)}")
        (folder / name).chmod(0o755)
    return folder


class Project:
    """A project whose worker has the shell toolset.

    Args:
        root: Where it lies.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "work" / "sub").mkdir(parents=True)
        (root / "work" / "file.txt").write_text("a file\n")

    def workshop(self, rules: str = RULES, more: str = "cwd: work", roots: str = ROOTS, keys: str = "") -> Workshop:
        """The project and its runs.

        Args:
            rules: Of the shell toolset, a YAML list.
            more: Further keys of the toolset.
            roots: The sandbox's paths.
            keys: Further keys of the worker.
        """
        return Workshop(self.root, {"main.worker": text(rules, more, roots, keys)})

    async def run(self, line: str, decide: Callable[[Question], Answer] = refuse, **options: str) -> Any:
        """What a command gives: its result, or the text of the error."""
        async with self.workshop(**options) as shop:
            return await result(shop, line, decide)


def text(rules: str = RULES, more: str = "cwd: work", roots: str = ROOTS, keys: str = "") -> str:
    """The worker's file."""
    listed = "".join(f"      {line}\n" for line in rules.strip().splitlines())
    settings = f"    rules:\n{listed}" + (f"    {more}\n" if more else "")
    return worker(f"toolsets:\n  shell:\n{settings}sandbox:\n  paths: {roots}\n{keys}")


async def result(shop: Workshop, line: str, decide: Callable[[Question], Answer] = refuse) -> Any:
    """What a command gives: its result, or the text of the error."""
    ((content, failed),) = await shop.told(("shell", {"command": line}), decide=decide)
    return content if failed else json.loads(content)
