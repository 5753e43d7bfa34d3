"""`make conformance`: the suite of `@modelcontextprotocol/conformance`, for both protocol eras.

It runs what each revision requires against `server.py` over HTTP, and what the suite has besides (extensions, later
additions), which is counted apart. It prints how many checks passed, and each that did not. `expected.yaml` lists what
may fail, with the reasons; what else fails, and what is listed and does not, ends it with exit code 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.javascript import FOLDER, program, unavailable

REVISIONS = ("2025-11-25", "2026-07-28")
EXPECTED: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())
"""Reasons, by scenario of what is required, and by check of what is not."""
PACKAGE = FOLDER / "node_modules/@modelcontextprotocol/conformance"


@dataclass
class Verdict:
    """What came of one revision.

    Args:
        required, besides: Checks by outcome: of what the revision requires, and of what the suite has besides.
        excused: What did not pass and is expected, as a line each, by its name in `EXPECTED`.
        wrong: What did not pass and should have, a line each; and what the suite says then.
    """

    required: Counter[str] = field(default_factory=Counter)
    besides: Counter[str] = field(default_factory=Counter)
    excused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def line(self, revision: str) -> str:
        return (
            f"{revision}: {self.required['SUCCESS']} checks passed, {self.required['FAILURE']} failed, "
            f"{self.required['WARNING']} warned; besides, of what is not required: {self.besides['SUCCESS']} passed, "
            f"{self.besides['FAILURE']} failed, {self.besides['WARNING']} warned"
        )


def judge(revision: str, url: str) -> Verdict:
    """Run the suite for one revision."""
    required = yaml.safe_load((PACKAGE / f"requirements/{revision}.yaml").read_text())["server"]
    verdict = Verdict()
    with tempfile.TemporaryDirectory() as folder:
        results, expected = Path(folder, "results"), Path(folder, "expected.yaml")
        expected.write_text(yaml.safe_dump({"server": list(EXPECTED["required"])}))
        suite = [*program("conformance"), "server", "--url", url, "--requirements", revision, "--output-dir", results]
        done = subprocess.run([*suite, "--expected-failures", expected], capture_output=True, text=True, timeout=300)
        for path in sorted(results.rglob("checks.json")):
            named = re.fullmatch(r"server-(.+?)-20\d\d-.*", path.parent.name)
            assert named is not None, path
            scenario, is_required = named[1], named[1] in required
            for check in json.loads(path.read_text()):
                (verdict.required if is_required else verdict.besides)[check["status"]] += 1
                if check["status"] not in ("FAILURE", "WARNING"):
                    continue
                listed, name = ("required", scenario) if is_required else ("besides", check["id"])
                what = f"{revision} {scenario}: {check['status'].lower()} {check['id']}"
                if name in EXPECTED[listed]:
                    verdict.excused[name] = f"{what}. Expected: {EXPECTED[listed][name]}"
                else:
                    verdict.wrong.append(f"{what}: {check.get('errorMessage', '')}")
    if done.returncode:
        verdict.wrong.append(done.stdout[done.stdout.rfind("Total:") :])
    return verdict


@contextmanager
def judged() -> Iterator[str]:
    """The server, as a process of its own: its address."""
    server = subprocess.Popen([sys.executable, "-m", "tests.conformance.server"], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        yield next(line for line in server.stderr if "serving at" in line).split()[-1]
    finally:
        server.terminate()
        server.communicate(timeout=10)


def main() -> int:
    """Judge the server; the exit code."""
    with judged() as url:
        verdicts = {revision: judge(revision, url) for revision in REVISIONS}
    excused = {name: line for verdict in verdicts.values() for name, line in verdict.excused.items()}
    wrong = [line for verdict in verdicts.values() for line in verdict.wrong]
    wrong += [f"{name} is listed in expected.yaml, and passes" for name in EXPECTED["besides"] if name not in excused]
    for line in (*excused.values(), *wrong, *(verdict.line(revision) for revision, verdict in verdicts.items())):
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    if (why := unavailable()) is not None:
        print(f"conformance: skipped: {why}")
        sys.exit(0)
    sys.exit(main())
