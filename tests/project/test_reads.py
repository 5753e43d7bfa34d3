"""What is read of a large project: the files that matter to what was asked, and no others.

What is read is watched in a process of its own, from below: at the one opener of a project's files, and at Python's own
audit of every file that is opened past it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.large import EXPORTS, HELPERS, LIBRARIES, write_large

WATCHED = """
import json, os, sys

root = {root!r}
read, past = [], []


def audit(event, arguments):
    path = arguments[0] if event == "open" else None
    if isinstance(path, str) and path.startswith(root) and not os.path.isdir(path):
        past.append(path)


sys.addaudithook(audit)
from llm_do_mcp.sandbox.opener import Directory

plain = Directory.read


def watched(self, rel, limit):
    read.append(os.path.join(os.readlink(f"/proc/self/fd/{{self.descriptor}}"), rel))
    return plain(self, rel, limit)


Directory.read = watched
from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.surface import publish
from llm_do_mcp.toolsets.workbench import Workbench

project = load_project(os.path.join(root, "large"), libs=[os.path.join(root, "libs")])
{job}
print(json.dumps({{"read": sorted(os.path.relpath(path, root) for path in read), "past": past}}))
"""


def files_read(tmp_path: Path, job: str) -> list[str]:
    """The files of the large project that are read while a job is done, each as often as it is read."""
    root = tmp_path.resolve()
    write_large(root)
    program = WATCHED.format(root=str(root), job=job)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found["past"] == [], "opened past the opener"
    return [path for path in found["read"] if not path.endswith("/project/built_in/lib.yaml")]  # once a process


MANIFESTS = ["large/project.yaml", *(f"libs/lib-{number}/lib.yaml" for number in range(LIBRARIES))]

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks into /proc")


@pytest.mark.proves("READS-CLOSURE")
def test_loading_a_large_project_reads_its_manifests_only(tmp_path: Path) -> None:
    assert files_read(tmp_path, "") == sorted(MANIFESTS)


@pytest.mark.proves("READS-CLOSURE")
def test_resolving_a_worker_reads_the_files_of_its_closure_each_once(tmp_path: Path) -> None:
    read = files_read(tmp_path, "project.closure(project.worker('lib-0:group_5/w25'))")
    closure = ["libs/lib-0/workers/group_5/w25.worker", *(f"libs/lib-{n}/workers/group_5/w5.worker" for n in (0, 1))]
    schemas = [f"libs/lib-{number}/schemas/answer.json" for number in (0, 1)]
    assert read == sorted([*MANIFESTS, *closure, *schemas])


@pytest.mark.proves("READS-CLOSURE")
def test_listing_tools_reads_the_published_workers_and_what_they_reach(tmp_path: Path) -> None:
    read = files_read(tmp_path, f"assert len(publish(Workbench(project))) >= {EXPORTS}")
    workers = [path for path in read if path.endswith(".worker")]
    assert len(workers) == len(set(workers)) <= EXPORTS + LIBRARIES * HELPERS
