"""Installs a library again and again, and is killed each time one file operation later. See `test_installing.py`.

    python killed_installs.py OLD NEW PLACE exchange|steps

A child of this process installs NEW over OLD and kills itself (SIGKILL) right before its first file operation; the next
one before its second, and so on, until one reaches its end. After each, what a reader finds is printed, then what is
there when the next change has begun, each as a JSON line.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from llm_do_mcp.project import contents, place
from llm_do_mcp.project.installing import install

OPERATIONS = ("open", "os.", "shutil.", "fcntl.", "ctypes.dlsym")


def main(old: str, new: str, libraries: str, how: str) -> None:
    if how == "steps":
        place.exchange = lambda first, second: False  # as on a system that cannot
    utils = os.path.join(libraries, "utils")
    install(new, libraries)  # what is imported and read once is there before the first child
    step = 0
    killed = True
    while killed:
        install(old, libraries)
        child = os.fork()
        if child == 0:
            _kill_at(step)
            install(new, libraries)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0
        found = _content(utils)
        left = sorted(name for name in os.listdir(libraries) if name.startswith(place.PRIVATE))
        with place.changing(libraries, lambda: None) as private:
            after = _content(utils)
            names = sorted(os.listdir(libraries))
        assert os.path.basename(private) in names
        names.remove(os.path.basename(private))
        print(json.dumps({"killed": killed, "found": found, "left": len(left), "after": after, "names": names}))
        step += 1


def _content(root: str) -> str | None:
    return contents.content_hash(contents.digests(root)) if os.path.isdir(root) else None


def _kill_at(step: int) -> None:
    """End this process right before its file operation number `step`, as a power cut would."""
    count = 0

    def counted(event: str, arguments: object) -> None:
        nonlocal count
        if event.startswith(OPERATIONS):
            count += 1  # first, since to kill is such an event as well
            if count == step + 1:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(counted)


if __name__ == "__main__":
    main(*sys.argv[1:])
