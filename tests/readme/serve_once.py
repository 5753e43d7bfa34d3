"""Run `llm-do-mcp … --http HOST:PORT` as a person does, but on a free port: until it answers; then it is ended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request


def main(words: list[str]) -> int:
    """Start the server, wait until it says where it is, ask it for its health, and stop it; its exit code."""
    at = words.index("--http") + 1
    words[at] = re.sub(r":\d+$", ":0", words[at])
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            print(line, end="", flush=True)
            if found := re.search(r"serving at http://[^/]*:(\d+)/", line):
                with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/health", timeout=30) as answer:
                    assert answer.status == 200
                server.send_signal(signal.SIGTERM)
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
