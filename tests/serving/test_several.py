"""Several projects behind one server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import InputRequiredResult, ResourceTemplateReference, TextResourceContents

from llm_do_mcp.cli import serve
from llm_do_mcp.cli.listing import main
from llm_do_mcp.cli.projects import together
from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.filelock import held
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.prune import prune
from llm_do_mcp.runtime.store import VERSION
from llm_do_mcp.serving.names import Names
from llm_do_mcp.serving.server import ProjectServer
from llm_do_mcp.serving.several import SeveralProjects
from tests.cli.commands import LLM_DO, PATIENCE_S, SERVE, environment
from tests.serving.clients import (
    GO,
    MODERN,
    YES,
    Person,
    account,
    client_of,
    command,
    decide,
    named,
    process,
    shop,
    text,
    turn,
    worker,
    write,
)
from tests.serving.conftest import Open

pytestmark = pytest.mark.anyio

READER = {"workers/reports/reader.worker": worker({"description": "Reads."})}


def two(root: Path, *turns: Any) -> list[Path]:
    """Two shops, each with a worker besides the main one."""
    return [
        shop(root / name, *turns, files=READER, name=name, exports=["main", "reports/reader"])
        for name in ("north", "south")
    ]


@asynccontextmanager
async def clients_of(
    roots: list[Path], mode: str, person: Person | None = None, **options: Any
) -> AsyncIterator[Client]:
    options = {"when_nobody_can_answer": "pause", **options}
    names = Names()
    server = SeveralProjects([ProjectServer(load_project(root), beside=names, **options) for root in roots])
    try:
        async with client_of(server, mode, person) as client:
            yield client
    finally:
        await server.aclose()


# ---- names


@pytest.mark.proves("SEVERAL-NAMES")
async def test_names_begin_with_the_project(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    roots = two(tmp_path)
    async with clients_of(roots, mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert len(names) == len(set(names)) and names[-2:] == ["run_wait", "run_cancel"]
    assert {"north", "south", "north_reports_reader", "south_files_in_list", "south_te"} <= set(names)
    assert all(name.startswith(("north", "south")) for name in names[:-2])
    assert await asyncio.to_thread(main, [*map(str, roots), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in listed[0]["tools"][:-2] + listed[1]["tools"]] == names
    assert {one["published"] for one in listed[1]["workers"]} == {"south", "south_reports_reader"}
    assert await asyncio.to_thread(main, [*map(str, roots)]) == 0
    shown = capsys.readouterr().out
    assert all(f"  tool   {name}  → " in shown for name in names)


LONG = "a_project_whose_name_takes_all_there_is_and_more"


@pytest.mark.proves("SEVERAL-SHORT", "SEVERAL-NAMES")
async def test_long_names_are_cut_and_stay_their_own(
    tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ["quarterly/summaries_of_all_there_was_to_tell", "quarterly/summaries_of_all_there_was_to_tally"]
    files = {f"workers/{identifier}.worker": worker() for identifier in ids}
    one = shop(tmp_path / "one", files=files, name=LONG, exports=["main", *ids])
    roots = [one, shop(tmp_path / "two", name="two")]
    seen = []
    for _ in range(2):
        async with clients_of(roots, mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert all(len(name) <= 40 for name in tools)
            seen.append(tools)
    assert seen[0] == seen[1]
    for paths, least in (([one], 3), (roots, 10)):
        assert await asyncio.to_thread(main, [*map(str, paths), "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        names = [tool["name"] for tool in (listed if len(paths) == 1 else listed[0])["tools"]]
        assert len(names) == len(set(names)) >= least and all(len(name) <= 40 for name in names)
    assert set(names) <= seen[0]


@pytest.mark.proves("SEVERAL-CLASH")
def test_one_name_for_two_projects_is_refused(tmp_path: Path) -> None:
    roots = [shop(tmp_path / "one"), shop(tmp_path / "two")]
    names = Names()
    ProjectServer(load_project(roots[0]), beside=names)
    with pytest.raises(ProjectError) as refused:
        ProjectServer(load_project(roots[1]), beside=names)
    assert all(str(root) in str(refused.value) for root in roots) and "`name`" in str(refused.value)


def refusal(command: list[str]) -> str:
    """What a program says that does not start."""
    done = subprocess.run(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    return done.stderr


@pytest.mark.proves("SEVERAL-CLASH")
def test_one_name_for_two_tools_is_refused_by_server_and_list(tmp_path: Path) -> None:
    """Also where one of them is published only once a mistake is mended: calls would go to one, or to the other."""
    tool = {"workers/b_ready.worker": worker({"nope": 1})}
    one = shop(tmp_path / "one", name="a", exports=["*"], files=tool)
    other = shop(tmp_path / "two", name="a_b", exports=["*"], files={"workers/ready.worker": worker()})
    said = f"two tools would be called 'a_b_ready', of the projects {one} and {other}"
    for program in ([*SERVE], [*LLM_DO, "list"]):
        assert said in refusal([*program, str(one), str(other)])


@pytest.mark.proves("SEVERAL-TWICE")
@pytest.mark.parametrize("again", ["shop", "link", "shop/main.worker"])
def test_a_project_is_served_once(tmp_path: Path, again: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop(tmp_path / "shop")
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    paths = [str(tmp_path / "shop"), str(tmp_path / again)]
    with pytest.raises(UsageError, match="is named twice; name it once"):
        main(paths)
    with pytest.raises(UsageError, match="is named twice; name it once"):
        together(paths, serve.parser().parse_args(paths))


@pytest.mark.proves("SEVERAL-EDIT")
async def test_an_edit_takes_no_name_from_another_project(tmp_path: Path, mode: str) -> None:
    one = shop(tmp_path / "one", "hello", name="a", exports=["**"])
    other = shop(tmp_path / "two", "hello", name="a_b", exports=["**"], files={"workers/w.worker": worker()})
    intruder = one / "workers/b_w.worker"

    async def listed() -> list[str | None]:
        tools = (await client.list_tools(cache_mode="bypass")).tools
        return [tool.description for tool in tools if tool.name == "a_b_w"]

    async with clients_of([one, other], mode) as client:
        theirs = await listed()
        assert len(theirs) == 1
        intruder.parent.mkdir(exist_ok=True)
        intruder.write_text(worker({"description": "Not theirs."}))
        assert await listed() == theirs
        assert "two tools would be called 'a_b_w', of the projects" in text(await client.call_tool("a", GO))
        intruder.unlink()
        assert not (await client.call_tool("a", GO)).is_error
        (other / "workers/w.worker").unlink()
        intruder.write_text(worker({"description": "Theirs no more."}))
        await listed()
        assert await listed() == ["Theirs no more."], "a name that was given up may be taken"


# ---- calls


@pytest.mark.proves("SEVERAL-CALLS", "SEVERAL-STATE")
async def test_a_call_reaches_its_project(tmp_path: Path, mode: str) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    person = Person(decide("once"))
    async with clients_of([north, south], mode, person) as client:
        done = await client.call_tool("south", GO)
        assert not done.is_error and (south / "out/a.txt").exists() and not (north / "out/a.txt").exists()
        (north / "in/stock.txt").write_text("north's\n")
        assert text(await client.call_tool("north_files_in_read_text", {"path": "stock.txt"})) == "north's\n"
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("files_in_list", {})
    assert not (north / ".llm-do/runs.sqlite3").exists() or account(done)["id"].encode() not in (
        (north / ".llm-do/runs.sqlite3").read_bytes()
    )


@pytest.mark.proves("SEVERAL-CALLS")
async def test_what_follows_a_run_finds_its_project(tmp_path: Path, mode: str) -> None:
    roots = two(tmp_path, turn(write("out/a.txt")))
    async with clients_of(roots, mode, approve_tool=True) as client:
        waits = [await client.call_tool(name, GO) for name in ("north", "south")]
        for name, told in zip(("north", "south"), waits, strict=True):
            run = account(told)["id"]
            key = named(text(told), "question")
            answer = {"run_id": run, "question": key, "decision": "once"}
            assert text(await client.call_tool("run_approve", answer)).startswith("taken")
            assert not (await client.call_tool("run_wait", {"run_id": run})).is_error
            assert (tmp_path / name / "out/a.txt").exists()
        assert "there is no run" in text(await client.call_tool("run_wait", {"run_id": "0" * 16}))


@pytest.mark.proves("SEVERAL-CALLS")
async def test_an_answer_for_a_run_that_is_gone_is_told_so(tmp_path: Path) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    async with clients_of([north, south], MODERN, Person(None)) as client:
        asked = await client.session.call_tool("south", GO, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult) and asked.input_requests
        record = south / ".llm-do/runs.sqlite3"
        with closing(sqlite3.connect(record)) as db:
            ((run,),) = db.execute("SELECT id FROM run").fetchall()
        await client.call_tool("run_cancel", {"run_id": run})
        assert prune(record, lambda _: False, older_than_s=0).runs == (run,)
        answers: dict[str, Any] = {key: decide("once") for key in asked.input_requests}
        told = await client.call_tool("south", GO, input_responses=answers, request_state=asked.request_state)
    assert told.is_error and text(told) == f"there is no run {run}"


@pytest.mark.proves("SEVERAL-CALLS")
async def test_a_worker_that_comes_later_can_be_called(tmp_path: Path, mode: str) -> None:
    roots = [
        shop(tmp_path / name, "hello", name=name, exports=["*", "main"], files=READER) for name in ("north", "south")
    ]
    async with clients_of(roots, mode) as client:
        await client.list_tools()
        (roots[1] / "workers/late.worker").write_text(worker({"model": "scripted:model.py"}))
        assert not (await client.call_tool("south_late", GO)).is_error


@pytest.mark.proves("SEVERAL-STATE")
async def test_looking_for_a_run_makes_no_record_in_another_project(tmp_path: Path, mode: str) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    async with clients_of([north, south], mode, Person(decide("once"))) as client:
        assert "there is no run" in text(await client.call_tool("run_wait", {"run_id": "0" * 16}))
        assert not (south / ".llm-do").exists()
        run = account(await client.call_tool("south", GO))["id"]
        assert not (await client.call_tool("run_wait", {"run_id": run})).is_error
    assert not (north / ".llm-do").exists()


# ---- one with a record that cannot be opened


def _later(record: Path) -> None:
    with closing(sqlite3.connect(record)) as db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")


def _damaged(record: Path) -> None:
    record.write_bytes(b"no database" * 1000)


def spoilt(project: Path, spoil: Callable[[Path], None] = _later) -> None:
    """Have a project a record of runs that cannot be opened."""
    record = project / ".llm-do/runs.sqlite3"
    record.parent.mkdir()
    spoil(record)


@pytest.mark.proves("SEVERAL-APART")
@pytest.mark.parametrize("spoil", [_later, _damaged])
async def test_the_runs_of_others_are_followed(tmp_path: Path, mode: str, spoil: Callable[[Path], None]) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    spoilt(north, spoil)
    async with clients_of([north, south], mode, Person(decide("once"))) as client:
        done = await client.call_tool("south", GO)
        assert not done.is_error and (south / "out/a.txt").exists()
        run = account(done)["id"]
        assert not (await client.call_tool("run_wait", {"run_id": run})).is_error
        assert f"run {run} has ended" in text(await client.call_tool("run_cancel", {"run_id": run}))
        assert (await client.read_resource(f"llm-do://runs/{run}")).contents
        runs = ResourceTemplateReference(type="ref/resource", uri="llm-do://runs/{run_id}")
        found = (await client.complete(runs, {"name": "run_id", "value": ""})).completion
        assert (found.values, found.has_more) == ([run], True)
        for lost in (await client.call_tool("north", GO), await client.call_tool("run_wait", {"run_id": "0" * 16})):
            assert lost.is_error and "the record of runs cannot be opened" in text(lost)


@pytest.mark.proves("SEVERAL-APART")
async def test_the_runs_of_others_do_not_wait_for_a_lock(tmp_path: Path, mode: str) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    (north / ".llm-do").mkdir()
    async with clients_of([north, south], mode, Person(decide("once"))) as client:
        with held(north / ".llm-do/runs.lock"):
            run = account(await client.call_tool("south", GO))["id"]
            assert not (await client.call_tool("run_wait", {"run_id": run})).is_error
            assert (await client.read_resource(f"llm-do://runs/{run}")).contents


# ---- what is wrong with one


@pytest.mark.proves("SEVERAL-WHICH")
@pytest.mark.parametrize("program", [[*SERVE], [*LLM_DO, "list"]], ids=["serve", "list"])
def test_a_project_that_cannot_be_loaded_is_named(tmp_path: Path, program: list[str]) -> None:
    north, south = two(tmp_path)
    (south / "project.yaml").write_text("nmae: x\n")
    assert f": {south}: project.yaml:1:1: unknown key" in refusal([*program, str(north), str(south)])


@pytest.mark.proves("SEVERAL-WHICH")
def test_a_worker_that_is_not_served_is_told_of_with_its_project(tmp_path: Path) -> None:
    north, south = two(tmp_path)
    (south / "workers/reports/reader.worker").write_text(worker({"nope": 1}))
    line = [*SERVE, north, south]
    done = subprocess.run(
        line, env=environment(), input="", capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0 and "not served: south: workers/reports/reader.worker:2:" in done.stderr


@pytest.mark.proves("SEVERAL-WHICH")
async def test_a_mistake_is_told_with_its_project(tmp_path: Path, mode: str) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    async with clients_of([north, south], mode, Person(decide("once"))) as client:
        (south / "workers/reports/reader.worker").write_text(worker({"nope": 1}))
        told = await client.call_tool("south_reports_reader", GO)
        assert told.is_error and text(told).startswith("south: workers/reports/reader.worker:2:")
        with pytest.raises(MCPError, match=r"south: workers/reports/reader\.worker:2:"):
            await client.get_prompt("south_reports_reader", GO)
        (south / "project.yaml").write_text("nmae: x\n")
        told = await client.call_tool("south", GO)
        assert told.is_error and text(told).startswith("south: project.yaml:1:1: unknown key")
        assert not (await client.call_tool("north", GO)).is_error


# ---- what is read, and tasks


@pytest.mark.proves("SEVERAL-READ")
async def test_what_is_read_is_of_its_project(tmp_path: Path, mode: str) -> None:
    roots = two(tmp_path, turn(write("out/a.txt")))
    for root in roots:
        (root / "in/stock.txt").write_text(f"{root.name}'s pears\n")
        (root / "in" / f"only-{root.name}.txt").write_text("x")
    async with clients_of(roots, mode, Person(decide("once"))) as client:
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert prompts == {"north", "south", "north_reports_reader", "south_reports_reader"}
        assert (await client.get_prompt("south", GO)).messages
        resources = [resource.uri for resource in (await client.list_resources()).resources]
        assert len(resources) == len(set(resources)) and resources
        for uri in resources:
            assert (await client.read_resource(uri)).contents
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        assert len(templates) == len(set(templates))
        run = account(await client.call_tool("south", GO))["id"]
        assert (await client.read_resource(f"llm-do://runs/{run}")).contents
        for name in ("north", "south"):
            form = next(one for one in templates if name in one and "/in/" in one)
            (content,) = (await client.read_resource(form.replace("{+path}", "stock.txt"))).contents
            assert isinstance(content, TextResourceContents) and content.text == f"{name}'s pears\n"
            reference = ResourceTemplateReference(type="ref/resource", uri=form)
            values = (await client.complete(reference, {"name": "path", "value": "only"})).completion.values
            assert values == [f"only-{name}.txt"]
        reference = ResourceTemplateReference(type="ref/resource", uri="llm-do://runs/{run_id}")
        assert run in (await client.complete(reference, {"name": "run_id", "value": run[:4]})).completion.values


@pytest.mark.proves("SEVERAL-READ", "SEVERAL-APART")
@pytest.mark.parametrize("whole", [True, False], ids=["both can be opened", "the other cannot"])
def test_tasks_are_of_their_project(tmp_path: Path, open_wire: Open, whole: bool) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    if not whole:
        spoilt(north)
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}}
    wire = open_wire(command(north, str(south)), MODERN, capabilities=tasks)
    task = wire.request("tools/call", {"name": "south", "arguments": GO})
    assert task["resultType"] == "task"
    while (task := wire.request("tasks/get", {"taskId": task["taskId"]}))["status"] == "working":
        pass
    responses = dict.fromkeys(task["inputRequests"], YES)
    wire.request("tasks/update", {"taskId": task["taskId"], "inputResponses": responses})
    while (task := wire.request("tasks/get", {"taskId": task["taskId"]}))["status"] != "completed":
        pass
    assert (south / "out/a.txt").exists() and not (north / "out/a.txt").exists()


# ---- the command


@pytest.mark.proves("SEVERAL-NAMES", "SEVERAL-STATE")
async def test_the_command_serves_several(tmp_path: Path, mode: str) -> None:
    north, south = two(tmp_path, turn(write("out/a.txt")))
    person = Person(decide("once"))
    async with process(north, mode, person, str(south), "--state-dir", str(tmp_path / "state")) as client:
        done = [await client.call_tool(name, GO) for name in ("north", "south")]
    assert not any(one.is_error for one in done)
    for name, one in zip(("north", "south"), done, strict=True):
        assert (tmp_path / "state" / name / "runs.sqlite3").exists(), one
