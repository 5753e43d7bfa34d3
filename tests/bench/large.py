"""A large project: 1,000 workers in five libraries, of which it publishes 50.

    python -m tests.bench.large [PAIRS]

Looking at all of it (`llm-do check`) is held against `python -c "import mcp.server"`, and the time from starting it to
having its list of tools against the bare server with one tool of `echo.py`. Each pair runs in turns, as in
`__main__.py`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from tests.bench.wire import ERAS, Era, Wire

LIBRARIES = 5
WORKERS = 200
"""In each library."""
HELPERS = 20
"""Of them: they call nobody. Each of the others calls one of them, and one of the next library."""
EXPORTS = 50
CHECK_TARGET, LIST_TARGET = 4.0, 1.3
IMPORT = [sys.executable, "-c", "import mcp.server"]
Job = Callable[[], float]
"""Does it once, and gives the seconds that it took."""

MANIFEST = """\
name: large
model: anthropic:claude-haiku-4-5
dependencies: [{libraries}]
exports: [{exports}]
grants: {{{grants}}}
sandbox:
  paths:
    notes: {{root: ./notes, mode: ro}}
"""
MAIN = """\
---
description: Hands work to whoever knows about it.
toolsets:
  delegation:
    allow_workers: [{globs}]
---
Find out who knows about it.
"""
LIBRARY = 'name: {name}\nversion: "1.0"\nexports: ["**"]\ndependencies: [{needs}]\n'
WORKER = """\
---
description: Knows about topic {number} of {library}.
input_schema:
  type: object
  properties:
    question: {{type: string, description: what to find out}}
    depth: {{type: integer, minimum: 1, maximum: 5}}
  required: [question]
output_schema_ref: schemas/answer.json
toolsets:
  filesystem: {{}}
  te: {{}}
  delegation: {{allow_workers: [{callees}]}}
sandbox: {{paths: {{notes: {{root: ./notes, mode: ro}}}}}}
---
{{% include "manner.jinja" %}}
You know about topic {number}. Answer {{{{ question }}}} from the notes.
"""
ANSWER = """\
{"type": "object", "properties": {"answer": {"type": "string"}, "sources": {"type": "array",
 "items": {"$ref": "#/$defs/source"}}}, "required": ["answer", "sources"],
 "$defs": {"source": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}
"""


def write_large(root: Path) -> Path:
    """Write the project and its libraries below a folder.

    Returns:
        The project's folder; its libraries are in `libs` beside it.
    """
    names = [f"lib-{number}" for number in range(LIBRARIES)]
    files = {
        "large/project.yaml": MANIFEST.format(
            libraries=", ".join(names),
            exports=", ".join(f"'{names[number % LIBRARIES]}:{_id(HELPERS + number)}'" for number in range(EXPORTS)),
            grants=", ".join(f"{name}: [notes]" for name in names),
        ),
        "large/main.worker": MAIN.format(globs=", ".join(f"'{name}:*'" for name in names)),
        "large/notes/note.md": "One line.\n",
    }
    for index, name in enumerate(names):
        needs = names[index + 1 : index + 2]
        files[f"libs/{name}/lib.yaml"] = LIBRARY.format(name=name, needs=", ".join(needs))
        files[f"libs/{name}/schemas/answer.json"] = ANSWER
        files[f"libs/{name}/templates/manner.jinja"] = "Be brief.\n"
        for number in range(WORKERS):
            helpers = [_id(number % HELPERS), *(f"'{needed}:{_id(number % HELPERS)}'" for needed in needs)]
            callees = [] if number < HELPERS else helpers
            worker = WORKER.format(number=number, library=name, callees=", ".join(callees))
            files[f"libs/{name}/workers/{_id(number)}.worker"] = worker
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return root / "large"


def _id(number: int) -> str:
    return f"group_{number % 10}/w{number}"


def report(pairs: int) -> bool:
    """Print what is measured; returns whether every target was met."""
    with tempfile.TemporaryDirectory(prefix="llm-do-bench-") as folder:
        project = write_large(Path(folder))
        libraries = ["--lib", str(project.parent / "libs")]
        check = [sys.executable, "-m", "llm_do_mcp.cli.run", "check", str(project), *libraries]
        bare = [sys.executable, str(Path(__file__).with_name("echo.py"))]
        ours = [sys.executable, "-m", "llm_do_mcp.cli.serve", str(project), *libraries]
        rows: list[tuple[str, float, Job, Job]] = [
            ("check against `import mcp.server`", CHECK_TARGET, lambda: _run(IMPORT), lambda: _run(check)),
            *[
                (f"spawn to tools/list, {era}", LIST_TARGET, partial(_list, bare, era, 1), partial(_list, ours, era))
                for era in ERAS
            ],
        ]
        print(f"\na project of {LIBRARIES * WORKERS} workers in {LIBRARIES} libraries, {EXPORTS} of them published")
        print(f"{'':36}{'bare':>10}{'ours':>11}{'ratio':>9}{'target':>9}")
        met = True
        for label, target, peer, own in rows:
            measured = _pairs(pairs, peer, own)
            ratio = median(mine / theirs for theirs, mine in measured)
            theirs, mine = (1000 * median(column) for column in zip(*measured, strict=True))
            held = ratio <= target
            met = met and held
            print(f"{label:36}{theirs:7.0f} ms{mine:8.0f} ms{ratio:8.2f}x{target:8.1f}x{'' if held else '   missed'}")
    return met


def _pairs(count: int, peer: Job, own: Job) -> list[tuple[float, float]]:
    """Seconds, the peer's and ours, of pairs that alternate in who comes first; one to warm up is left out."""
    measured = []
    for number in range(count + 1):
        took = {job: job() for job in ((peer, own) if number % 2 else (own, peer))}
        measured.append((took[peer], took[own]))
    return measured[1:]


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _list(command: list[str], era: Era, least: int = EXPORTS) -> float:
    began = time.perf_counter()
    with Wire(command, era) as wire:
        assert len(wire.tools()) >= least
        return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(0 if report(int(sys.argv[1]) if len(sys.argv) > 1 else 15) else 1)
