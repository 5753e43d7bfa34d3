"""How soon a search for a bare name shows where it is defined.

Symbols are drawn by a seed from what is defined in a corpus and used in it: half of them are defined once, half several
times. The truth is Python's own parser, and universal-ctags for other languages; for TypeScript, where ctags misses a
seventh, its functions, classes, interfaces, enums and aliases, and besides all that the compiler knows. The mean
reciprocal rank counts lines of hits; the characters are those of the whole answer up to the end of the definition's
line, its header included. The seed 1 is for tuning; figures are of others.

    python -m tests.bench.ranking [--corpus NAME] [--seed 2] [--misses]
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from llm_do_mcp.te import run
from tests.bench.corpora import CORPORA, TYPESCRIPT

HELD_OUT = 2
SYMBOLS = 150
USED = 5
"""Times that a name stands in the corpus, at least: what is used less is found by any search."""
BUDGET = 16_000
GOALS = {
    "django": (0.985, 0.985),
    "stdlib": (0.975, 0.95),
    "cpython": (0.90, 0.90),
    "typescript": (0.93, 0.93),
    "go": (0.93, 0.93),
    "rust": (0.93, 0.93),
}
"""The reciprocal rank to be reached, for symbols with one definition and with several."""
CHARACTERS = 260
_TESTS = re.compile(r"(^|/|_)tests?(/|_|\.)")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,}")

Places = dict[str, set[str]]
"""A name → where it is defined, as `path:line`."""


@dataclass(frozen=True)
class Found:
    """What one search for a name came to: the rank of its definition among the hits (0: not shown), and characters."""

    name: str
    rank: int
    characters: int


def definitions(truth: str, folder: Path) -> Places:
    """All that is defined in a corpus, by one of its truths."""
    found: Places = defaultdict(set)
    told = {"ast": _by_ast, "typescript": _by_typescript}.get(truth)
    for name, path, line in told(folder) if told else _by_ctags(folder, truth):
        found[name].add(f"{path}:{line}")
    return found


def _by_ast(folder: Path) -> Iterator[tuple[str, str, int]]:
    for path in folder.rglob("*.py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name, path.relative_to(folder).as_posix(), node.lineno


def _by_ctags(folder: Path, truth: str) -> Iterator[tuple[str, str, int]]:
    language, _, kinds = truth.partition(":")
    command = ["ctags", "-R", "-f", "-", "--fields=n", "--excmd=number", f"--languages={language}"]
    listed = subprocess.run(
        [*command, f"--kinds-{language}={kinds}", "."], cwd=folder, capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        name, path, number, *_ = line.split("\t")
        yield name, path.removeprefix("./"), int(number.partition(";")[0])


def _by_typescript(folder: Path) -> Iterator[tuple[str, str, int]]:
    compiler = TYPESCRIPT.folder()
    if compiler is None:
        return
    program = Path(__file__).with_name("typescript_definitions.cjs")
    command = ["node", str(program), str(next(compiler.rglob("typescript.js"))), str(folder)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        name, path, number = line.split("\t")
        yield name, path, int(number)


def draw(places: Places, folder: Path, seed: int) -> dict[str, list[str]]:
    """Names that are used, defined somewhere outside tests: once, and several times."""
    used: Counter[bytes] = Counter()
    for path in {folder / place.rpartition(":")[0] for where in places.values() for place in where}:
        used.update(_WORD.findall(path.read_bytes()))
    names = sorted(
        name
        for name, where in places.items()
        if used[name.encode()] >= USED and name.isidentifier() and not all(map(_TESTS.search, where))
    )
    chance = random.Random(seed)
    chance.shuffle(names)
    once = [name for name in names if len(places[name]) == 1]
    several = [name for name in names if len(places[name]) > 1]
    return {"unique": once[:SYMBOLS], "several": several[:SYMBOLS]}


def ask(name: str, places: set[str], folder: Path) -> Found:
    """Search for a name."""
    answer = run(["grep", name], roots={".": str(folder)}, budget=BUDGET, confine=False)
    characters = rank = 0
    for line in answer.splitlines(keepends=True):
        characters += len(line)
        if line.startswith(("#", "{", "[TE]")):
            continue
        rank += 1
        path, number, _ = line.split(":", 2)
        if f"{path}:{number}" in places:
            return Found(name, rank, characters)
    return Found(name, 0, BUDGET)


def report(names: list[str], seed: int, *, misses: bool) -> bool:
    """Print what was reached; whether every goal was."""
    met = True
    print(f"the definition of a bare name, budget {BUDGET:,} (seed {seed})")
    print(f"{'':12}{'truth':12}{'symbols':>16}{'mean reciprocal rank':>22}{'goal':>8}{'characters (median)':>22}")
    for corpus, truth in ((each, truth) for each in CORPORA for truth in each.truths):
        if (names and corpus.name not in names) or (folder := corpus.folder()) is None:
            continue
        places = definitions(truth, folder)
        for (kind, symbols), goal in zip(draw(places, folder, seed).items(), GOALS[corpus.name], strict=True):
            found = [ask(name, places[name], folder) for name in symbols]
            reached = mean(1 / one.rank if one.rank else 0.0 for one in found)
            spent = median(one.characters for one in found)
            held = reached >= goal and spent < CHARACTERS
            met = met and held
            by = "ctags" if ":" in truth else truth
            print(f"{corpus.name:12}{by:12}{len(found):>6} {kind:>9}{reached:>22.3f}{goal:>8}{spent:>22.0f}", end="")
            print("" if held else "   missed")
            for one in (one for one in found if misses and one.rank != 1):
                print(f"    {one.name}: {one.rank or 'not shown'} ({', '.join(sorted(places[one.name])[:3])})")
    return met


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ranking")
    parser.add_argument("--corpus", action="append", default=[], help="only this one")
    parser.add_argument("--seed", type=int, default=HELD_OUT, help="which symbols are drawn; 1 is for tuning")
    parser.add_argument("--misses", action="store_true", help="name the symbols whose definition is not the first hit")
    options = parser.parse_args()
    return 0 if report(options.corpus, options.seed, misses=options.misses) else 1


if __name__ == "__main__":
    sys.exit(main())
