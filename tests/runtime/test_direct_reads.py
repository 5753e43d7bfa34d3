"""A client's own reads: recorded as everything is, and cheap."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Done
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.runtime.store import Batch, Store
from llm_do_mcp.serving.server import ProjectServer
from tests.bench.wire import Wire
from tests.bench.workload import READ, READ_ARGUMENTS, TEXT, write_project
from tests.cli.commands import llm_do


@pytest.mark.proves("DIRECT-READ-RECORDED")
def test_a_read_that_was_answered_is_in_the_record_of_a_server_that_was_killed(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    with Wire([sys.executable, "-m", "llm_do_mcp.cli.serve", str(project)], "2026-07-28") as wire:
        for _ in range(3):
            assert wire.call(READ, READ_ARGUMENTS) == TEXT
        wire.kill()
    with closing(sqlite3.connect(project / ".llm-do" / "runs.sqlite3")) as db:
        runs = db.execute("SELECT status, name FROM run").fetchall()
        events = db.execute("SELECT kind, state, data FROM event WHERE kind != 'definition'").fetchall()
    assert runs == [("done", "files.read notes")] * 3
    assert [(kind, state) for kind, state, _ in events] == [("files.read", "done")] * 3
    assert all("One line of a note" in data for *_, data in events)


async def _begun(server: ProjectServer, tool: str, arguments: dict[str, str]) -> str:
    published = server.tools[tool]
    assert published.declaration is not None
    definition = server.bench.define_call(published.declaration, published.to_input(arguments), published.rules)
    return await server.engine.start(published.subject, definition)


async def _allowed(server: ProjectServer, run: str) -> Done:
    while not isinstance(event := await server.engine.advance(run), Done):
        for question in event.questions:
            await server.engine.answer(run, question.key, Answer("once", by="test"))
    return event


@pytest.mark.anyio
@pytest.mark.proves("DIRECT-READ-COMMON")
async def test_what_reads_are_alike_in_is_recorded_once_and_each_can_be_gone_on_with(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    manifest = project / "project.yaml"
    manifest.write_text(manifest.read_text().replace("mode: ro, ", "mode: ro, read_approval: true, "))
    server = ProjectServer(load_project(project))
    runs = [await _begun(server, READ, READ_ARGUMENTS) for _ in range(3)]
    for run in runs:
        assert not isinstance(await server.engine.advance(run), Done)
    definitions = [await server.engine.definition(run) for run in runs]
    await server.aclose()
    with closing(sqlite3.connect(project / ".llm-do" / "runs.sqlite3")) as db:
        assert db.execute("SELECT count(*) FROM blob").fetchone() == (1,)
    again = ProjectServer(load_project(project))
    try:
        assert [await again.engine.definition(run) for run in runs] == definitions
        for run in runs:
            await again.engine.resume(run)
            done = await _allowed(again, run)
            assert (done.status, done.output) == ("done", TEXT)
    finally:
        await again.aclose()
    recorded = llm_do("test", project, "--record", runs[0], "tests/read.json")
    assert (recorded.returncode, recorded.stderr) == (0, "")
    with closing(sqlite3.connect(project / ".llm-do" / "runs.sqlite3")) as db:
        db.execute("DELETE FROM blob")
        db.commit()
    lost = llm_do("trace", runs[0], "--project", project)
    assert lost.returncode == 1 and "has lost what its calls have in common" in lost.stderr


@pytest.mark.anyio
@pytest.mark.proves("DIRECT-READ-ONE-COMMIT")
@pytest.mark.parametrize(
    ("tool", "arguments", "commits"),
    [
        (READ, READ_ARGUMENTS, [("done", False)]),
        ("files_notes_list", {}, [("done", False)]),
        (READ, {"path": "missing.md"}, [("failed", False)]),
        # the question, the answer, the intent, the outcome, the end: each on the disk before what follows
        (
            "files_reports_write_text",
            {"path": "a.md", "content": "x"},
            [("waiting", True), ("running", True), ("running", True), ("running", True), ("done", True)],
        ),
    ],
)
async def test_a_read_is_one_commit_that_does_not_wait_for_the_disk_and_an_effect_waits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, str],
    commits: list[tuple[str, bool]],
) -> None:
    seen, write = [], Store.write

    async def watched(store: Store, batch: Batch) -> None:
        await write(store, batch)
        seen.append((batch.run.status, batch.synced))

    monkeypatch.setattr(Store, "write", watched)
    server = ProjectServer(load_project(write_project(tmp_path)))
    run = await _begun(server, tool, arguments)
    await _allowed(server, run)
    await server.aclose()
    assert seen == commits
