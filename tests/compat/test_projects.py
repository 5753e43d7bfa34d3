"""Projects in the style of December 2025: they load unchanged, pass `check`, and run from end to end."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import llm_do
from tests.compat.running import CASES, SCRIPTED, Case, copied, over_stdio, written
from tests.models.messages_server import Answer, MessagesServer, message, text, tool_use
from tests.serving.clients import HANDSHAKE, MODERN, Person, decide, texts

PROJECTS = (*(case.project for case in CASES), "whiteboard")
ANTHROPIC = {"LLM_DO_MODEL": "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY": "unused"}

needs_programs = pytest.mark.skipif(os.name == "nt", reason="its commands are those of POSIX systems")


def cases(*names: str) -> list[Any]:
    """Cases as parameters of a test; all of them where none is named."""
    return [
        pytest.param(case, id=case.project, marks=[needs_programs] if case.project == "code_analyzer" else [])
        for case in CASES
        if not names or case.project in names
    ]


# ---- every project


@pytest.mark.proves("COMPAT-CHECK")
@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_passes_check(tmp_path: Path, project: str) -> None:
    env = ANTHROPIC if project == "whiteboard" else SCRIPTED
    done = llm_do("check", copied(project, tmp_path), "--import-tools", "--json", env=env)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (0, True)
    told = {finding["message"].partition(": ")[2] or finding["message"] for finding in report["findings"]}
    assert told <= {
        "the folder does not exist yet; it is made when it is first used",
        "false denies functions of network risk and server-side tools; it does not isolate Python or shell commands, "
        "which can reach the network all the same",
    }
    assert all(worker["reached"] for worker in report["workers"])


@pytest.mark.proves("COMPAT-COMMAND")
@pytest.mark.parametrize("case", cases())
def test_a_project_runs_by_the_command(tmp_path: Path, case: Case) -> None:
    root = copied(case.project, tmp_path)
    done = llm_do(root, case.given, "--approve-all", "--json", env=SCRIPTED)
    result = json.loads(done.stdout)
    assert done.returncode in (0, 3) and result["error"] is None, done.stderr
    _check(case, root, result["output"])


@pytest.mark.anyio
@pytest.mark.proves("COMPAT-MCP")
@pytest.mark.parametrize(
    ("case", "mode"),
    [
        *[pytest.param(*case.values, MODERN, id=f"{case.id}-modern", marks=case.marks) for case in cases()],
        *[
            pytest.param(*case.values, HANDSHAKE, id=f"{case.id}-handshake")
            for case in cases("pitchdeck", "approvals_demo", "bootstrapper")
        ],
    ],
)
async def test_a_project_runs_through_a_client_whose_person_approves(tmp_path: Path, case: Case, mode: str) -> None:
    root, person = copied(case.project, tmp_path), Person(decide("once"))
    async with over_stdio(root, mode, person, SCRIPTED) as client:
        result = await client.call_tool(case.project, {"input": case.given})
    assert not result.is_error, texts(result)
    assert len(person.asked) == case.asks, person.messages
    _check(case, root, texts(result))


def _check(case: Case, root: Path, output: str) -> None:
    for words in case.says:
        assert words in output
    found = written(root, case.project)
    assert set(found) == set(case.files)
    for path, words in case.files.items():
        assert words in found[path]


# ---- what is peculiar to one


@pytest.mark.anyio
@pytest.mark.proves("COMPAT-APPROVALS")
async def test_what_a_person_declines_is_neither_read_nor_written(tmp_path: Path) -> None:
    root, person = copied("approvals_demo", tmp_path), Person(decide("deny", "not today"))
    async with over_stdio(root, MODERN, person, SCRIPTED) as client:
        result = await client.call_tool("approvals_demo", {"input": "buy pears"})
    reading, writing = person.messages
    assert "private/signature.txt" in reading and "save_note" in reading
    assert "notes/log.txt" in writing and "+buy pears (unsigned)" in writing
    assert "not today" in texts(result)
    assert written(root, "approvals_demo") == {}


@pytest.mark.proves("COMPAT-APPROVALS")
def test_a_file_that_is_larger_than_its_folder_allows_is_not_written(tmp_path: Path) -> None:
    root = copied("approvals_demo", tmp_path)
    done = llm_do(root, "x" * 2000, "--approve-all", env=SCRIPTED)
    assert "bytes, allowed are 2000" in done.stdout
    assert written(root, "approvals_demo") == {}


@needs_programs
@pytest.mark.proves("COMPAT-SHELL")
def test_shell_rules_say_what_runs_and_what_does_not(tmp_path: Path) -> None:
    root = copied("code_analyzer", tmp_path)
    done = llm_do(root, "How large is it?", "--approve-all", env=SCRIPTED)
    printed = dict(part.partition("\n")[::2] for part in done.stdout.removeprefix("$ ").split("\n$ "))
    assert printed["ls"].split() == ["main.py", "shop"]
    assert "5 total" in printed["wc -l main.py shop/till.py"]
    assert printed["wc -l ../scripted/model.py"].startswith("shell: '../scripted/model.py' leads out")
    assert printed["grep -c x main.py | sort"].startswith("shell: no shell runs this, so `|`")
    assert "main.py" in printed["ls -l"]  # `pattern: ls` is about whatever begins so
    assert printed["rm main.py"].startswith("shell was not run: refused by toolsets.shell of worker code_analyzer")
    assert (root / "source" / "main.py").exists()


@pytest.mark.proves("COMPAT-IMAGES")
def test_a_picture_reaches_the_planner_as_a_picture(tmp_path: Path) -> None:
    root = copied("whiteboard", tmp_path)
    with MessagesServer(respond=_whiteboard) as server:
        env = {**ANTHROPIC, "ANTHROPIC_BASE_URL": server.url}
        done = llm_do(root, "Plan it.", "--approve-all", env=env)
    assert done.returncode == 0, done.stderr
    (asked,) = [body for body in _bodies(server) if "whiteboard in the picture" in body["system"]]
    picture = asked["messages"][0]["content"][0]
    assert (picture["type"], picture["source"]["media_type"]) == ("image", "image/png")
    assert base64.b64decode(picture["source"]["data"]) == (root / "input" / "board.png").read_bytes()
    assert written(root, "whiteboard") == {"plans/board.md": "# Plan\n- buy chalk\n"}


@pytest.mark.anyio
@pytest.mark.proves("COMPAT-IMAGES", "COMPAT-MCP")
async def test_the_planner_of_pictures_runs_through_a_client(tmp_path: Path) -> None:
    root, person = copied("whiteboard", tmp_path), Person(decide("once"))
    with MessagesServer(respond=_whiteboard) as server:
        env = {**ANTHROPIC, "ANTHROPIC_BASE_URL": server.url}
        async with over_stdio(root, MODERN, person, env) as client:
            result = await client.call_tool("whiteboard", {"input": "Plan it."})
    assert texts(result).startswith("One plan."), texts(result)
    assert written(root, "whiteboard") == {"plans/board.md": "# Plan\n- buy chalk\n"}


@pytest.mark.proves("COMPAT-IMAGES")
def test_a_model_that_a_worker_is_not_compatible_with_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    done = llm_do("check", copied("whiteboard", tmp_path), env={"LLM_DO_MODEL": "anthropic:llama-4"})
    assert done.returncode == 2
    assert "workers/whiteboard_planner.worker:5:3: model 'anthropic:llama-4' is not among" in done.stdout


@pytest.mark.proves("COMPAT-SERVER-SIDE")
def test_the_providers_web_search_is_asked_for_with_its_limits(tmp_path: Path) -> None:
    root = copied("web_searcher", tmp_path)
    with MessagesServer(message(text("Nothing is new."))) as server:
        env = {**ANTHROPIC, "ANTHROPIC_BASE_URL": server.url}
        done = llm_do(root / "workers" / "web_searcher.worker", "What is new?", env=env)
    assert done.stdout == "Nothing is new.\n"
    (body,) = _bodies(server)
    (tool,) = body["tools"]
    assert tool == {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 3,
        "allowed_domains": ["example.org"],
    }


@pytest.mark.proves("COMPAT-SERVER-SIDE")
def test_a_worker_without_the_network_asks_for_no_web_search(tmp_path: Path) -> None:
    root = copied("web_searcher", tmp_path)
    worker = root / "workers" / "web_searcher.worker"
    closed = worker.read_text().replace("name: web_searcher", "name: web_searcher\nsandbox: {network_enabled: false}")
    worker.write_text(closed)
    with MessagesServer(message(text("I cannot know."))) as server:
        env = {**ANTHROPIC, "ANTHROPIC_BASE_URL": server.url}
        assert llm_do(worker, "What is new?", env=env).returncode == 0
    assert "tools" not in _bodies(server)[0]


@pytest.mark.anyio
@pytest.mark.proves("COMPAT-CREATED")
async def test_the_worker_that_was_made_is_shown_and_is_gone_with_its_server(tmp_path: Path) -> None:
    root, person = copied("bootstrapper", tmp_path), Person(decide("once"))
    async with over_stdio(root, MODERN, person, SCRIPTED) as client:
        await client.call_tool("bootstrapper", {"input": "Count the words."})
    assert "word_counter" in person.messages[0] and "Count the words of the attached text." in person.messages[0]
    again = Person(decide("deny"))
    async with over_stdio(root, MODERN, again, SCRIPTED) as client:
        result = await client.call_tool("bootstrapper", {"input": "Count the words."})
    assert "word_counter" in again.messages[0]  # it is asked anew: nothing is left of the first
    assert "0 texts" not in texts(result) and len(list(root.rglob("*.worker"))) == 1


def _bodies(server: MessagesServer) -> list[dict[str, Any]]:
    return [received.body for received in server.requests]


def _whiteboard(body: dict[str, Any]) -> Answer:
    """What a model would do in the project `whiteboard`."""
    if "whiteboard in the picture" in body["system"]:
        return message(text("# Plan\n- buy chalk\n"))
    results = [block for one in body["messages"] for block in one["content"] if block["type"] == "tool_result"]
    match len(results):
        case 0:
            return message(tool_use("list_files", {"path": "input"}, id="toolu_0"))
        case 1:
            (picture,) = [file["path"] for file in json.loads(_said(results[0]))["files"]]
            given = {"worker": "whiteboard_planner", "attachments": [picture]}
            return message(tool_use("worker_call", given, id="toolu_1"))
        case 2:
            plan = {"path": "plans/board.md", "content": _said(results[1])}
            return message(tool_use("write_file", plan, id="toolu_2"))
        case _:
            return message(text("One plan."))


def _said(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
