"""Workers that workers make: what a person is asked, what is made, who can call it, and what it can have at most."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker
from tests.project.shelf import shelve
from tests.runtime.driving import asked, finished
from tests.runtime.workshop import Workshop, approve, calling

pytestmark = pytest.mark.anyio

ECHO = '''
import json


def reply(request):
    """Says what it was sent."""
    tools = [tool["name"] for tool in request["tools"]]
    return json.dumps({"system": request["system"], "model": request["model"], "tools": tools})
'''
TURNS = '''
import json


def reply(request):
    """Makes the calls of the input, one turn after the other, and then says what came of the last."""
    turns = json.loads(request["messages"][0]["content"][-1]["text"])
    if request["turn"] < len(turns):
        name, given = turns[request["turn"]]
        return {"tool_calls": [{"name": name, "input": given}]}
    return "\\n".join(block["content"] for block in request["messages"][-1]["content"])
'''
NEW = {"name": "helper", "instructions": "Help {{ file('x') }}.", "model": "scripted:echo.py"}
FOLDERS = "{in: {root: ./in, mode: ro}, out: {root: ./out, mode: rw}, more: {root: ./more, mode: rw}}"


def shop(
    root: Path, keys: str = "", manifest: str = "", files: Mapping[str, str] | None = None, **options: Any
) -> Workshop:
    """A workshop whose main worker makes the calls of its input, by default with no more than the delegation."""
    given = {
        "main.worker": worker("model: scripted:turns.py\n" + (keys or "allow_workers: ['*']"), "Make workers."),
        "project.yaml": f"name: shop\nmodel: scripted:echo.py\n{manifest}",
        "turns.py": TURNS,
        "echo.py": ECHO,
    }
    return Workshop(root, {**given, **(files or {})}, **options)


def make(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "worker_create", {**NEW, **changes}


def call(name: str = "helper", **given: Any) -> tuple[str, dict[str, Any]]:
    return "worker_call", {"worker": name, **given}


def turns(*calls: tuple[str, Mapping[str, Any]]) -> str:
    return json.dumps(calls)


class Asked:
    """Someone who approves, and remembers the questions."""

    def __init__(self, decision: str = "once") -> None:
        self.questions: list[Question] = []
        self._answer = Answer(decision, by="client")  # type: ignore[arg-type]

    def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answer


@pytest.mark.proves("GENERATED-MADE", "GENERATED-ASKS")
async def test_a_worker_is_made_as_it_was_approved_and_called(tmp_path: Path, temporary: Path) -> None:
    person = Asked()
    async with shop(tmp_path) as workshop:
        done = await workshop.run(turns(make(description="helps: a lot"), call()), person)
        (folder,) = temporary.glob("llm-do-generated-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (file,) = folder.iterdir()
        (question,) = person.questions
        assert (file.name, file.read_text()) == ("helper.worker", question.detail)
    assert (question.action, question.target) == ("create the worker", "helper")
    assert question.detail == (
        '---\nname: "helper"\ndescription: "helps: a lot"\nmodel: "scripted:echo.py"\n---\nHelp {{ file(\'x\') }}.'
    )
    told = json.loads(done.output)
    assert told == {"system": NEW["instructions"], "model": "scripted:echo.py", "tools": []}, "no template, no tools"
    assert not folder.exists(), "it goes with the session"


@pytest.mark.proves("GENERATED-ASKS")
async def test_what_is_refused_is_not_made(tmp_path: Path, temporary: Path) -> None:
    async with shop(tmp_path) as workshop:
        done = await workshop.run(turns(make(), call()), Asked("deny"))
        assert "no worker 'helper'" in done.output
        assert [*temporary.iterdir()] == []


@pytest.mark.proves("GENERATED-ASKS")
@pytest.mark.parametrize(
    ("rule", "questions", "made"),
    [
        ("{function: worker.create, decision: allow}", 0, True),
        ("{function: worker_create, subject: 'help*', decision: allow}", 0, True),
        ("{function: worker.create, subject: 'draft_*', decision: allow}", 1, True),
        ("{function: worker.create, subject: 'HELP*', decision: deny}", 0, False),
    ],
)
async def test_the_policy_knows_it_by_its_name(tmp_path: Path, rule: str, questions: int, made: bool) -> None:
    person = Asked()
    async with shop(tmp_path, manifest=f"approvals: [{rule}]\n") as workshop:
        done = await workshop.run(turns(make()), person)
    assert (len(person.questions), '"created": true' in done.output) == (questions, made)


@pytest.mark.proves("GENERATED-WHO")
@pytest.mark.parametrize(
    ("keys", "has"),
    [
        ("allow_workers: ['*']", True),
        ("toolsets: {delegation: {allow_workers: ['*']}}", True),
        ("toolsets: {delegation: {allow_workers: ['help*'], worker_create: {}}}", True),
        ("toolsets: {delegation: {allow_workers: ['help*'], worker_create: true}}", True),
        ("toolsets: {delegation: {allow_workers: ['*'], worker_create: false}}", False),
        ("allow_workers: ['help*']", False),
        ("toolsets: {delegation: {lock_worker: other, worker_create: true}}", False),
        ("toolsets: {filesystem: {}}", False),
    ],
)
async def test_who_may_call_any_worker_may_make_one_unless_it_says_otherwise(
    tmp_path: Path, keys: str, has: bool
) -> None:
    async with shop(tmp_path, keys, files={"workers/other.worker": worker()}) as workshop:
        declared = await workshop.bench.declarations(workshop.bench.project.worker("main"))
        assert ("worker_create" in [declaration.shown for declaration in declared]) is has


@pytest.mark.proves("GENERATED-WHO")
@pytest.mark.parametrize(
    ("allowed", "says"), [("['help*']", "system"), ("[helper]", "system"), ("['draft_*']", "may not be called")]
)
async def test_it_is_called_only_where_allowed(tmp_path: Path, allowed: str, says: str) -> None:
    keys = f"toolsets: {{delegation: {{allow_workers: {allowed}, worker_create: true}}}}"
    async with shop(tmp_path, keys) as workshop:
        done = await workshop.run(turns(make(), call()), approve)
    assert says in done.output


@pytest.mark.proves("GENERATED-WHO")
async def test_worker_call_beside_worker_create_is_for_what_was_made_and_for_nothing_else(tmp_path: Path) -> None:
    keys = "toolsets: {delegation: {worker_call: {}, worker_create: {output_dir: ./workers/generated}}}"
    async with shop(tmp_path, keys, files={"workers/own.worker": worker()}) as workshop:
        done = await workshop.run(turns(make(), call()), approve)
        refused = await workshop.run(turns(call(worker="own")), approve)
    assert "system" in done.output
    assert "worker 'own' may not be called from here; allowed: workers made in this session" in refused.output


@pytest.mark.proves("GENERATED-CHECKED")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "other"}, "the project has a worker 'other'"),
        ({"name": "deep"}, "the project has a worker 'deep'"),
        ({"name": "broken"}, "the project has a worker 'broken'"),
        ({"name": "a/b"}, "'a/b' is no name"),
        ({"name": "../x"}, "'../x' is no name"),
        ({"name": "x\n"}, "is no name"),
        ({"name": ""}, "name"),
        ({"name": "utils:x"}, "is no name"),
        ({"instructions": " \n"}, "the instructions are empty"),
        ({"model": "anthropic:claude"}, "anthropic:claude"),
        ({"output_schema_ref": "schemas/none.json"}, "no schema file 'schemas/none.json'"),
        ({"output_schema_ref": "../x.json"}, "'..'"),
        ({"output_schema_ref": "out/x.json"}, "not loaded from here"),
        ({"toolsets": {"shell": {}}}, "toolsets"),
    ],
)
async def test_what_could_not_be_called_is_refused_and_nobody_is_asked(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    person = Asked()
    keys = "allow_workers: ['*']\ncompatible_models: ['scripted:*']"
    files = {
        "workers/other.worker": worker(),
        "workers/very/deep.worker": worker(),
        "workers/broken.worker": "broken",
        "out/x.json": "{}",
    }
    async with shop(tmp_path, keys, files=files) as workshop:
        done = await workshop.run(turns(make(**changes)), person)
    assert person.questions == [] and says in done.output, done


@pytest.mark.proves("GENERATED-CHECKED")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "shared"}, "the library utils has a worker 'shared'; choose another name"),
        ({"model": "nope"}, "model 'nope' cannot be opened; allowed: anthropic:<model>"),
        ({"model": "openai:gpt"}, "model 'openai:gpt' cannot be opened"),
    ],
)
async def test_what_a_library_has_and_what_is_no_model_is_refused_too(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    person = Asked()
    shelve(tmp_path / "shelf", {"utils": {"workers/shared.worker": worker()}})
    libs = [str(tmp_path / "shelf")]
    async with shop(tmp_path / "shop", manifest="dependencies: [utils]", libs=libs) as workshop:
        done = await workshop.run(turns(make(**changes)), person)
    assert person.questions == [] and says in done.output, done


@pytest.mark.proves("GENERATED-CHECKED", "GENERATED-MADE")
async def test_one_that_is_made_comes_before_one_that_is_built_in(tmp_path: Path) -> None:
    async with shop(tmp_path) as workshop:
        done = await workshop.run(turns(make(name="summarizer"), call("summarizer", input_data="x")), approve)
        assert json.loads(done.output)["system"] == NEW["instructions"]
        assert workshop.bench.worker("pkg:summarizer").library == "pkg"


@pytest.mark.proves("GENERATED-CHECKED")
async def test_without_any_model_it_has_to_name_one(tmp_path: Path) -> None:
    without = {key: value for key, value in NEW.items() if key != "model"}
    async with shop(tmp_path, files={"project.yaml": "name: shop\n"}) as workshop:
        done = await workshop.run(turns(("worker_create", without)), approve)
    assert "there is no default model; name one under 'model'" in done.output


@pytest.mark.proves("GENERATED-FORCE")
async def test_only_with_force_is_one_replaced_and_the_question_shows_the_difference(tmp_path: Path) -> None:
    person = Asked()
    again = {"instructions": "Help more."}
    async with shop(tmp_path) as workshop:
        done = await workshop.run(turns(make(), make(**again), make(name="HELPER", force=True)), person)
        assert "the worker 'helper' was made before; choose another name" in done.output
        done = await workshop.run(turns(make(**again)), person)
        assert "choose another, or replace it with force" in done.output
        done = await workshop.run(turns(make(**again, force=True), call()), person)
    assert json.loads(done.output)["system"] == "Help more."
    assert [question.action for question in person.questions] == ["create the worker", "replace the worker"]
    assert "-Help {{ file('x') }}.\n+Help more." in person.questions[1].detail


@pytest.mark.proves("GENERATED-SCHEMA")
async def test_its_output_fits_a_schema_of_the_project(tmp_path: Path) -> None:
    schema = '{"type": "object", "required": ["system"], "properties": {"system": {"type": "string"}}}'
    async with shop(tmp_path, files={"schemas/told.json": schema}) as workshop:
        made = make(output_schema_ref="schemas/told.json")
        done = await workshop.run(turns(made, call(expect_json=True)), approve)
    assert json.loads(done.output)["system"] == NEW["instructions"]


@pytest.mark.proves("GENERATED-BOUNDS")
@pytest.mark.parametrize(
    ("manifest", "keys", "tools"),
    [
        # What the project gives by default, as far as the maker has it.
        ("toolsets: {filesystem: {}, te: {}}", "{}", ["list_files", "read_file", "write_file", "te"]),
        ("toolsets: {}", "{filesystem: {}, te: {}}", []),
        # Nothing besides.
        ("toolsets: {shell: {default: {approval_required: false}}, custom: all}", "{filesystem: {}}", []),
    ],
)
async def test_it_has_the_projects_defaults_and_no_more_than_its_maker(
    tmp_path: Path, manifest: str, keys: str, tools: list[str]
) -> None:
    files = {"tools.py": "def danger() -> str:\n    return ''\n"}
    manifest = f"{manifest}\nsandbox: {{paths: {FOLDERS}}}\n"
    async with shop(tmp_path, f"allow_workers: ['*']\ntoolsets: {keys}", manifest, files) as workshop:
        done = await workshop.run(turns(make(), call()), approve)
    assert json.loads(done.output)["tools"] == tools


@pytest.mark.proves("GENERATED-BOUNDS")
async def test_its_folders_are_the_stricter_of_the_projects_and_its_makers(tmp_path: Path) -> None:
    keys = """
allow_workers: ['*']
sandbox:
  network_enabled: false
  paths:
    out: {mode: ro, suffixes: [.md]}
    more: {root: ./elsewhere}
    own: {root: ./own, mode: rw}
"""
    manifest = f"toolsets: {{filesystem: {{}}}}\nsandbox: {{paths: {FOLDERS}}}\n"
    async with shop(tmp_path, keys, manifest) as workshop:
        await workshop.run(turns(make()), approve)
        made = workshop.bench.worker("helper")
    shown = [(root.alias, root.mode, root.suffixes) for root in made.roots]
    assert shown == [("in", "ro", None), ("out", "ro", (".md",))]
    assert made.made_by == "main" and not made.network_enabled and made.allow_workers is None


@pytest.mark.proves("GENERATED-BOUNDS")
async def test_what_its_maker_is_refused_or_asked_so_is_it(tmp_path: Path) -> None:
    keys = "allow_workers: ['*']\ntool_rules: {write_file: {allowed: false}, read_file: {approval_required: true}}"
    manifest = f"toolsets: {{filesystem: {{}}}}\nsandbox: {{paths: {FOLDERS}}}\n"
    manifest += "approvals: [{function: 'files.*', decision: allow}]\n"
    person = Asked()
    async with shop(tmp_path, keys, manifest) as workshop:
        made = make(model="scripted:turns.py")
        reads = turns(("read_file", {"path": "in/notes.md"}), ("write_file", {"path": "out/a.md", "content": "x"}))
        done = await workshop.run(turns(made, call(input_data=reads)), person)
    assert "refused by tool_rules.write_file of worker main" in done.output
    assert [question.function for question in person.questions] == ["worker.create", "files.read"]
    assert not (tmp_path / "out/a.md").exists()


@pytest.mark.proves("GENERATED-SESSION")
async def test_it_is_there_for_the_session_and_for_nobody_else(tmp_path: Path) -> None:
    async with shop(tmp_path) as workshop:
        await workshop.run(turns(make()), approve)
        assert "system" in (await workshop.run(turns(call()), approve)).output, "a later run of this session"
        other = Workbench(load_project(tmp_path))
        engine = Engine(tmp_path / "other", other.body)
        try:
            assert workshop.bench.project.scan().workers.keys() == {"main"} == {*other.project.exports.values()}
            with pytest.raises(Exception, match="no worker 'helper'"):
                other.worker("helper")
        finally:
            await engine.aclose()
            await other.aclose()


@pytest.mark.proves("GENERATED-SESSION")
async def test_a_worker_of_the_project_wins_over_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as workshop:
        await workshop.run(turns(make()), approve)
        (tmp_path / "workers").mkdir()
        (tmp_path / "workers/helper.worker").write_text(worker("", "The project's own."))
        workshop.bench.project = load_project(tmp_path)
        assert workshop.bench.worker("helper").made_by is None


@pytest.mark.proves("GENERATED-RESUMED")
async def test_a_run_that_was_cut_short_goes_on_with_the_worker_it_made(tmp_path: Path) -> None:
    manifest = f"toolsets: {{filesystem: {{}}}}\nsandbox: {{paths: {FOLDERS}}}\n"
    made = make(model="scripted:turns.py")
    writes = call(input_data=turns(("write_file", {"path": "out/a.md", "content": "x"})))
    asks_first = ("write_file", {"path": "out/first.md", "content": "x"})
    async with shop(tmp_path, manifest=manifest) as first:
        run = await first.start(turns(made, made, asks_first, writes))
        (create,) = await asked(first.engine, run)
        await first.engine.answer(run, create.key, approve(create))
        (write,) = await asked(first.engine, run)
        assert write.target == "out/first.md"
    async with shop(tmp_path, manifest=manifest) as second:
        await second.engine.resume(run)
        person = Asked()
        done = await finished(second.engine, run, person)
    assert done.status == "done" and [question.target for question in person.questions] == ["out/first.md", "out/a.md"]
    assert person.questions[1].chain == ("main", "helper")
    assert (tmp_path / "out/a.md").read_text() == "x"
    assert calling() == '{"tool_calls": []}'
