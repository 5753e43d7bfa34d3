"""The tool host: the script that the server starts, by its path, under the project's interpreter.

    python host.py REQUESTS REPLIES LIFE ROOT LIBRARIES

The first three are inherited pipe ends (file descriptors; handles on Windows): frames come in on REQUESTS and go out on
REPLIES. Nothing ever comes on LIFE, which the server holds open while it lives; see `_end_with_server`. LIBRARIES is
JSON: the folder of each library by its name.

It needs only the standard library, and brings the `llm_do_mcp` package that it lies in along, so that
`from llm_do_mcp import tool` works where that is not installed, and means the server's version where another is.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import traceback

OLDEST = (3, 11)


def main(arguments: list[str]) -> None:
    requests, replies, life = (_descriptor(int(argument)) for argument in arguments[:3])
    root = arguments[3]
    _forget_own_folder()
    sys.argv = [""]
    for stream in (sys.stdout, sys.stderr):
        # What a tool printed before it was killed should be seen, whatever characters it holds.
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    if sys.version_info < OLDEST:
        _refuse(replies, f"it is Python {sys.version_info[0]}.{sys.version_info[1]}; the tool host needs 3.11 or later")
        return
    _adopt_package()
    import json

    from llm_do_mcp.toolhost import frames
    from llm_do_mcp.toolhost.dispatcher import Dispatcher

    lock = threading.Lock()

    def send(frame: frames.Frame) -> None:
        data = frames.encode(frame)
        with lock:
            frames.write_all(replies, data)

    _end_with_server(life)
    dispatcher = Dispatcher(root, json.loads(arguments[4]), send, end)
    send({"say": "ready"})
    with open(requests, "rb") as stream:
        while (frame := frames.read(stream)) is not None:
            dispatcher.handle(frame)


def end() -> None:
    """Ends this process at once, and with it what the tools started, where the platform can."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _descriptor(inherited: int) -> int:
    """The file descriptor of an inherited pipe end, which what a tool starts does not inherit in turn."""
    if sys.platform == "win32":
        import msvcrt

        os.set_handle_inheritable(inherited, False)
        return msvcrt.open_osfhandle(inherited, os.O_BINARY)
    os.set_inheritable(inherited, False)
    return inherited


def _forget_own_folder() -> None:
    """A script's folder comes first on the path; a project's imports must not find our files there."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]


def _adopt_package() -> None:
    """Makes `llm_do_mcp` in this process the package that this file belongs to, installed or not."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "llm_do_mcp", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["llm_do_mcp"] = module
    spec.loader.exec_module(module)


def _end_with_server(life: int) -> None:
    """Has the kernel kill this process and what it started when the server is gone.

    The end of REQUESTS tells as much, but only to a process that comes to read it: one whose threads are stuck in C
    code that keeps the interpreter's lock (a bad regular expression) would outlive a killed server. Linux only.
    """
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)


def _refuse(replies: int, reason: str) -> None:
    """Tells the server why this interpreter cannot be used. Runs under old ones: nothing of the package is imported."""
    import json

    body = json.dumps({"say": "refused", "text": reason}).encode("ascii")
    os.write(replies, len(body).to_bytes(4, "big") + body)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        traceback.print_exc()
    finally:
        end()
