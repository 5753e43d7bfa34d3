"""`make conformance`: the suite of `@modelcontextprotocol/conformance`, for both protocol eras.

It runs what each revision requires against `server.py` over HTTP, prints how many checks passed, and each that did not.
`expected.yaml` lists the scenarios that may fail, each with its reason; any other that fails, and one in the list that
does not, ends it with exit code 1. What the suite runs besides (extensions, later additions) is counted apart.
"""

from __future__ import annotations

import json
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
EXPECTED = Path(__file__).with_name("expected.yaml")
PACKAGE = FOLDER / "node_modules/@modelcontextprotocol/conformance"


@dataclass
class Verdict:
    """What came of one revision.

    Args:
        code: The suite's exit code.
        passed, besides: Checks by outcome: of what the revision requires, and of what the suite runs besides.
        wrong: What did not pass of the former, a line each.
    """

    code: int
    passed: Counter[str] = field(default_factory=Counter)
    besides: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def line(self, revision: str) -> str:
        return (
            f"{revision}: {self.passed['SUCCESS']} checks passed, {self.passed['FAILURE']} failed, "
            f"{self.passed['WARNING']} warned; besides, of what is not required: {self.besides['SUCCESS']} passed, "
            f"{self.besides['FAILURE']} failed"
        )


def judge(revision: str, url: str) -> Verdict:
    """Run the suite for one revision."""
    required = yaml.safe_load((PACKAGE / f"requirements/{revision}.yaml").read_text())["server"]
    with tempfile.TemporaryDirectory() as results:
        suite = [*program("conformance"), "server", "--url", url, "--requirements", revision, "--output-dir", results]
        done = subprocess.run([*suite, "--expected-failures", EXPECTED], capture_output=True, text=True, timeout=300)
        verdict = Verdict(done.returncode)
        for path in sorted(Path(results).rglob("checks.json")):
            # Its folder is called server-SCENARIO-YEAR-MONTH-…
            scenario = next((name for name in required if path.parent.name.startswith(f"server-{name}-20")), "")
            for check in json.loads(path.read_text()):
                (verdict.passed if scenario else verdict.besides)[check["status"]] += 1
                if scenario and check["status"] in ("FAILURE", "WARNING"):
                    why = check.get("errorMessage", "")
                    verdict.wrong.append(f"{revision} {scenario}: {check['status'].lower()} {check['id']}: {why}")
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
    for verdict in verdicts.values():
        print(*verdict.wrong, sep="\n", end="\n" if verdict.wrong else "")
    for revision, verdict in verdicts.items():
        print(verdict.line(revision))
    return max(verdict.code for verdict in verdicts.values())


if __name__ == "__main__":
    if (why := unavailable()) is not None:
        print(f"conformance: skipped: {why}")
        sys.exit(0)
    sys.exit(main())
