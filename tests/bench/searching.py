"""What a search costs beside ripgrep's own: wall time in process and as a command, memory, and characters.

Time is measured in pairs that run in turns, ripgrep's output read through a pipe and thrown away; the ratio is the
median over the pairs. As grep does, te looks for matches in binary files too, which ripgrep by itself leaves at their
first NUL: `--binary` is the ratio to one that does not. Confinement by Landlock is counted apart. Memory is that of a
process of its own.

    python -m tests.bench.searching [--pairs 15]
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import llm_do_mcp.te
from llm_do_mcp.te import confine, ripgrep, run
from tests.bench.corpora import CORPORA, LINUX

BUDGET = 16_000
DJANGO = next(corpus for corpus in CORPORA if corpus.name == "django")
QUESTIONS = (
    "request",
    "get_queryset",
    "Model",
    "settings",
    "middleware",
    "QuerySet",
    "render",
    "HttpResponse",
    "ForeignKey",
    "csrf",
    "TODO",
    "import re",
    "def save",
    "class .*Field",
    "ValueError",
    "transaction",
    "lazy",
    "cache",
    "url_patterns",
    "template",
)
"""Everyday questions about Django."""


@dataclass(frozen=True)
class Case:
    """One search: what for, where, and how much longer than ripgrep it may take."""

    name: str
    pattern: str
    folder: Path
    ratio: float | None = None
    above: float | None = None
    """Milliseconds above ripgrep, where a ratio would say little."""


def cases(work: Path) -> list[Case]:
    """The searches that are timed; those in trees that cannot be had here are left out."""
    small = work / "small"
    for number in range(240):
        path = small / f"d{number % 12}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import os\n" * 40 + f"def handler_{number}():\n    return needle()\n" * (number % 16 != 0))
    for suffix in ("txt", "py"):
        (work / suffix).mkdir()
        for number in range(100):
            (work / suffix / f"{number}.{suffix}").write_text("a needle in the hay of a usual line\n" * 10_000)
    found = [
        Case("240 files", "needle", small, above=3.0),
        Case("1,000,000 in text", "needle", work / "txt", ratio=1.5),
        Case("1,000,000 in code", "needle", work / "py", ratio=1.5),
    ]
    if folder := DJANGO.folder():
        found += [Case(f"django: {name}", name, folder, ratio=1.10) for name in ("get_queryset", "request")]
    if folder := LINUX.folder():
        found += [Case(f"linux: {name}", name, folder, ratio=1.10) for name in ("kmalloc_array", "vmalloc")]
        found += [Case("linux: dev_", "dev_", folder, ratio=1.35)]
    return found


def _ripgrep(case: Case, *flags: str) -> None:
    # The trees are no git repositories, where ripgrep by itself would not heed the ignore files, and be faster by that.
    command = [ripgrep.find(), "--no-config", "--color=never", "--no-require-git", "-n", *flags]
    with subprocess.Popen(
        [*command, "-e", case.pattern, "."], cwd=case.folder, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def _whole_ripgrep(case: Case) -> None:
    _ripgrep(case, "--binary")


def _te(case: Case, *, confined: bool = False) -> str:
    return run(["grep", case.pattern], roots={".": str(case.folder)}, budget=BUDGET, confine=confined, seconds=120)


def _confined(case: Case) -> str:
    return _te(case, confined=True)


def _command(case: Case) -> None:
    program = "from llm_do_mcp.te.__main__ import main; main()"
    subprocess.run([sys.executable, "-c", program, "grep", case.pattern], cwd=case.folder, stdout=subprocess.DEVNULL)


def _took(work: Callable[[Case], object], case: Case) -> float:
    began = time.perf_counter()
    work(case)
    return 1000 * (time.perf_counter() - began)


def speed(pairs: int, work: Path) -> bool:
    """Print how long searches take; whether every goal was met."""
    met = True
    # An installed command has its bytecode; here files may be newer than theirs.
    compileall.compile_dir(os.path.dirname(llm_do_mcp.te.__file__), quiet=1)
    print(f"\nin process beside ripgrep, {pairs} pairs (medians)")
    print(f"{'':24}{'matches':>10}{'rg':>11}{'te':>11}{'ratio':>8}{'goal':>9}", end="")
    print(f"{'--binary':>10}{'confined':>11}{'command':>11}")
    for case in cases(work):
        matches = _te(case).partition('"matches":')[2].partition(",")[0]
        took: dict[str, list[float]] = {"rg": [], "te": [], "whole": [], "confined": [], "command": []}
        for _ in range(pairs):
            took["rg"].append(_took(_ripgrep, case))
            took["te"].append(_took(_te, case))
            took["whole"].append(_took(_whole_ripgrep, case))
            if confine.available():
                took["confined"].append(_took(_confined, case))
            took["command"].append(_took(_command, case))
        ratio = median(te / rg for te, rg in zip(took["te"], took["rg"], strict=True))
        above = median(te - rg for te, rg in zip(took["te"], took["rg"], strict=True))
        held = ratio <= case.ratio if case.ratio else above <= (case.above or 0)
        met = met and held
        rg = median(took["rg"])
        print(f"{case.name:24}{matches:>10}{rg:8.1f} ms{median(took['te']):8.1f} ms{ratio:8.2f}", end="")
        print(f"{case.ratio or f'+{case.above} ms':>9}", end="")
        print(f"{median(te / whole for te, whole in zip(took['te'], took['whole'], strict=True)):10.2f}", end="")
        for name in ("confined", "command"):
            print(f"{f'+{median(took[name]) - rg:.1f} ms' if took[name] else '':>11}", end="")
        print("" if held else "   missed")
    return met


def characters() -> None:
    """Print how many characters everyday questions cost."""
    folder = DJANGO.folder()
    if folder is None:
        return
    print(f"\ncharacters for {len(QUESTIONS)} everyday questions about Django (sum, median, largest)")
    columns: dict[str, list[int]] = {}
    for pattern in QUESTIONS:
        for name, command in (
            ("grep -rn", ["grep", "-rnI", pattern, "."]),
            ("rg", [ripgrep.find(), "--no-config", "-n", "-e", pattern, "."]),
        ):
            printed = subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout
            columns.setdefault(name, []).append(len(printed.decode("utf-8", "replace")))
        for budget in (4_000, 16_000, 180_000):
            answer = run(["grep", pattern], roots={".": str(folder)}, budget=budget, confine=False)
            columns.setdefault(f"te, {budget:,}", []).append(len(answer))
    for name, figures in columns.items():
        print(f"{name:14}{sum(figures):>14,}{median(figures):>12,.0f}{max(figures):>12,}")


_MEASURED = """
import resource, sys
from pathlib import Path
from llm_do_mcp.te import run
def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
run(["grep", "warm"], roots={".": sys.argv[3]}, confine=False)
before = peak()
run(["grep", sys.argv[1]], roots={".": sys.argv[2]}, confine=False, seconds=300)
rg = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{peak() - before:.0f} {rg:.0f}")
"""


def memory(work: Path, *, log_megabytes: int) -> bool:
    """Print what searches take of memory; whether every goal was met (Linux)."""
    if sys.platform != "linux":
        return True
    met = True
    log = work / "log"
    log.mkdir()
    (empty := work / "empty").mkdir()
    line = b"2026-01-01 12:00:00 INFO worker 7: a needle of the usual length, with some text behind it\n"
    with open(log / "big.log", "wb") as file:
        for _ in range(log_megabytes):
            file.write(line * ((1 << 20) // len(line)))
    searches = [("a log of 2 GB", "needle", log), ("1,000,000 matches", "needle", work / "py")]
    if folder := LINUX.folder():
        searches.append(("linux: dev_", "dev_", folder))
    print(f"\npeak memory\n{'':24}{'te, above':>12}{'rg':>12}   goals: 60 MB, 100 MB")
    for name, pattern, folder in searches:
        ran = subprocess.run(
            [sys.executable, "-c", _MEASURED, pattern, str(folder), str(empty)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        ours, rg = map(int, ran.stdout.split())
        held = ours < 60 and rg < 100
        met = met and held
        print(f"{name:24}{ours:>9} MB{rg:>9} MB{'' if held else '   missed'}")
    return met


def report(pairs: int) -> bool:
    """Print time, memory and characters; whether every goal was met."""
    with tempfile.TemporaryDirectory(prefix="llm-do-bench-") as folder:
        met = speed(pairs, Path(folder))
        met = memory(Path(folder), log_megabytes=2048) and met
    characters()
    return met


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.searching")
    parser.add_argument("--pairs", type=int, default=15)
    return 0 if report(parser.parse_args().pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
