"""Libraries in runs: who can call what, whose Python runs, and who says what runs without asking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import ToolModuleError
from llm_do_mcp.project import libslock
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.toolsets import overview
from tests.project.conftest import worker, write
from tests.project.shelf import shelve
from tests.runtime.workshop import Workshop, approve, calling, refuse

pytestmark = pytest.mark.anyio

MANIFEST = "name: shop\nmodel: scripted:script.py\ndependencies: [utils]\n"
COUNT = '''
from llm_do_mcp import tool
from . import words

@tool(risk="read")
def count(text: str) -> int:
    """Counts words."""
    return len(words.of(text))

@tool
def clean(text: str) -> str:
    """The library's."""
    return f"utils: {text}"
'''
UTILS = {
    "lib.yaml": "version: 2.1.0\nexports: [summarizer]",
    "tools.py": COUNT,
    "words.py": "def of(text):\n    return text.split()\n",
    "workers/summarizer.worker": worker("allow_workers: [helper]\ntoolsets: {filesystem: {}}"),
    "workers/helper.worker": worker(),
}


def shop(root: Path, files: Mapping[str, str] | None = None, libraries: Mapping[str, Any] | None = None) -> Workshop:
    """A project that depends on the library `utils`."""
    shelve(root / "shelf", {"utils": UTILS, **(libraries or {})})
    return Workshop(root / "project", {"project.yaml": MANIFEST, **(files or {})}, libs=[str(root / "shelf")])


def using(*, calls: str = "'utils:*'", **keys: str) -> dict[str, str]:
    """A main worker with these keys."""
    lines = [f"toolsets: {{delegation: {{allow_workers: [{calls}]}}, custom: {keys.pop('custom', '[]')}}}"]
    lines += [f"{key}: {value}" for key, value in keys.items()]
    return {"main.worker": worker("\n".join(lines))}


class Person:
    """Decides one way, and keeps what was asked."""

    def __init__(self, decision: str = "once") -> None:
        self.asked: list[Question] = []
        self._answer = approve if decision == "once" else refuse

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return self._answer(question)


# ---- workers


@pytest.mark.proves("LIB-CALLS")
async def test_a_worker_of_a_library_calls_what_its_library_keeps_to_itself(tmp_path: Path) -> None:
    async with shop(tmp_path, using()) as place:
        inner = calling(("worker_call", {"worker": "helper", "input_data": json.dumps({"text": "helped"})}))
        ((said, failed),) = await place.told(("worker_call", {"worker": "utils:summarizer", "input_data": inner}))
        (result,) = json.loads(said)["results"]
        assert (result["content"], failed) == ("helped", False)


@pytest.mark.proves("A055", "LIB-EXPORTS")
@pytest.mark.parametrize("name", ["utils:helper", "helper"])
async def test_a_call_of_what_is_not_exported_is_refused(tmp_path: Path, name: str) -> None:
    async with shop(tmp_path, using(calls="'utils:*', 'utils:helper', '*'")) as place:
        ((said, failed),) = await place.told(("worker_call", {"worker": name, "input_data": ""}))
        says = f"worker '{name}' is internal to the library utils, which exports summarizer"
        assert failed and says in said


@pytest.mark.proves("LIB-ALLOWED")
async def test_a_call_of_a_library_needs_permission_like_any_other(tmp_path: Path) -> None:
    async with shop(tmp_path, using(calls="'*'")) as place:
        ((said, failed),) = await place.told(("worker_call", {"worker": "utils:summarizer", "input_data": ""}))
        assert failed and "allowed: * (to be named with its library: utils:…)" in said


@pytest.mark.proves("LIB-CALLS", "LIB-GRANTS")
async def test_what_a_worker_of_a_library_writes_is_asked_with_its_whole_id(tmp_path: Path) -> None:
    manifest = f"{MANIFEST}sandbox: {{paths: {{out: rw:./out}}}}\ngrants: {{utils: [out]}}\n"
    person = Person()
    async with shop(tmp_path, {"project.yaml": manifest, **using()}) as place:
        inner = calling(("write_file", {"path": "out/a.md", "content": "a"}))
        await place.told(("worker_call", {"worker": "utils:summarizer", "input_data": inner}), decide=person)
        (question,) = person.asked
        assert question.chain == ("main", "utils:summarizer") and question.target == "out/a.md"
        assert (place.root / "out/a.md").read_text() == "a"


@pytest.mark.proves("LIB-POLICY")
@pytest.mark.parametrize(
    "keys",
    [
        "approvals: [{function: files.write, decision: allow}]",
        "tool_rules: {write_file: {approval_required: false}}",
        "sandbox: {paths: {out: {root: ./out, mode: rw, write_approval: false}}}",
        "toolsets: {filesystem: {_approval_config: {write_file: {pre_approved: true}}}}",
    ],
)
async def test_a_library_cannot_allow_itself_what_asks(tmp_path: Path, keys: str) -> None:
    toolset = "" if keys.startswith("toolsets") else "\ntoolsets: {filesystem: {}}"
    utils = {**UTILS, "workers/summarizer.worker": worker(f"{keys}{toolset}")}
    manifest = f"{MANIFEST}sandbox: {{paths: {{out: rw:./out}}}}\ngrants: {{utils: [out]}}\n"
    inner = calling(("write_file", {"path": "out/a.md", "content": "a"}))
    call = ("worker_call", {"worker": "utils:summarizer", "input_data": inner})
    person = Person("deny")
    async with shop(tmp_path, {"project.yaml": manifest, **using()}, {"utils": utils}) as place:
        await place.told(call, decide=person)
    assert len(person.asked) == 1
    allowed = f"{manifest}approvals: [{{function: files.write, decision: allow, subject: 'out/*'}}]\n"
    async with shop(tmp_path, {"project.yaml": allowed, **using()}, {"utils": utils}) as place:
        await place.told(call, decide=person)
        assert len(person.asked) == 1 and (place.root / "out/a.md").exists()


@pytest.mark.proves("LIB-POLICY")
async def test_a_library_can_refuse_what_the_project_allows(tmp_path: Path) -> None:
    keys = "toolsets: {filesystem: {}, custom: all}\ntool_rules: {count: {allowed: false}}"
    utils = {**UTILS, "workers/summarizer.worker": worker(keys)}
    manifest = f"{MANIFEST}approvals: [{{function: 'custom.*', decision: allow}}]\n"
    async with shop(tmp_path, {"project.yaml": manifest, **using()}, {"utils": utils}) as place:
        inner = calling(("count", {"text": "a b"}))
        ((said, _),) = await place.told(("worker_call", {"worker": "utils:summarizer", "input_data": inner}))
        (result,) = json.loads(said)["results"]
        assert "refused by tool_rules.count of worker utils:summarizer" in result["content"]


# ---- Python


@pytest.mark.proves("LIB-TOOLS")
async def test_a_worker_uses_functions_of_a_library_and_the_nearest_of_a_name(tmp_path: Path) -> None:
    own = 'def clean(text: str) -> str:\n    """Ours."""\n    return f"project: {text}"\n'
    files = {"tools.py": own, **using(custom="all")}
    async with shop(tmp_path, files) as place:
        told = await place.told(("count", {"text": "a b c"}), ("clean", {"text": "x"}), decide=approve)
        assert [said for said, _ in told] == ["3", "project: x"]
        names = [found.name for found in await place.bench.declarations(place.bench.project.worker("main"))]
        assert {"custom.clean", "custom.utils:count"} < set(names) and "custom.utils:clean" not in names


@pytest.mark.proves("LIB-TOOLS")
async def test_a_function_is_named_with_its_library_where_a_nearer_one_hides_it(tmp_path: Path) -> None:
    own = 'def clean(text: str) -> str:\n    """Ours."""\n    return f"project: {text}"\n'
    person = Person()
    async with shop(tmp_path, {"tools.py": own, **using(custom="['utils:clean']")}) as place:
        ((said, _),) = await place.told(("clean", {"text": "x"}), decide=person)
        assert "utils: x" in said
        assert [question.function for question in person.asked] == ["custom.utils:clean"]


@pytest.mark.proves("LIB-TOOLS")
async def test_a_function_that_no_library_has_is_told_with_those_there_are(tmp_path: Path) -> None:
    async with shop(tmp_path, using(custom="['utils:cuont', 'other:x']")) as place:
        with pytest.raises(ToolModuleError, match=r"there is no tool 'utils:cuont' in .*utils:tools\.py; there are: "):
            await place.bench.declarations(place.bench.project.worker("main"))


@pytest.mark.proves("LIB-TOOLS")
async def test_python_of_a_library_is_not_imported_for_what_is_nearer(tmp_path: Path) -> None:
    own = 'def near(text: str) -> str:\n    """Ours."""\n    return text\n'
    utils = {**UTILS, "tools.py": "raise RuntimeError('imported')"}
    async with shop(tmp_path, {"tools.py": own, **using(custom="[near]")}, {"utils": utils}) as place:
        assert "near" in {found.shown for found in await place.bench.declarations(place.bench.project.worker("main"))}
    async with shop(tmp_path, using(custom="[near, count]"), {"utils": utils}) as place:
        with pytest.raises(ToolModuleError, match=r"utils:tools\.py:1: RuntimeError: imported"):
            await place.bench.declarations(place.bench.project.worker("main"))


@pytest.mark.proves("LIB-TOOLS", "A059")
async def test_libraries_with_files_of_the_same_names_do_not_meet(tmp_path: Path) -> None:
    module = "from llm_do_mcp import tool\nfrom .json import NAME\n\n@tool(risk='read')\ndef who_{}() -> str:\n"
    module += '    """Says it."""\n    return NAME\n'
    libraries = {
        name: {
            "tools/talk.py": module.format(name.replace("-", "_")),
            "tools/json.py": f"NAME = 'this is {name}'\n",
        }
        for name in ("a", "b-c")
    }
    manifest = MANIFEST.replace("[utils]", "[a, b-c]")
    async with shop(tmp_path, {"project.yaml": manifest, **using(calls="", custom="all")}, libraries) as place:
        told = await place.told(("who_a", {}), ("who_b_c", {}))
        assert [said.strip('"') for said, _ in told] == ["this is a", "this is b-c"]


@pytest.mark.proves("LIB-TOOLS")
async def test_a_worker_of_a_library_sees_its_own_functions_and_the_projects_only_as_a_library(tmp_path: Path) -> None:
    own = 'def ours(text: str) -> str:\n    """Ours."""\n    return text\n'
    utils = {**UTILS, "workers/summarizer.worker": worker("toolsets: {custom: all}")}
    async with shop(tmp_path, {"tools.py": own, **using()}, {"utils": utils}) as place:
        found = await place.bench.declarations(place.bench.project.worker("utils:summarizer"))
        assert [one.name for one in found] == ["custom.utils:clean", "custom.utils:count"]


@pytest.mark.proves("LIB-POLICY")
@pytest.mark.parametrize(
    ("keys", "function", "runs"),
    [
        ({"custom": "{clean: {pre_approved: true}}"}, "clean", False),
        ({"custom": "{'utils:clean': {pre_approved: true}}"}, "clean", True),
        ({"custom": "[clean]", "approvals": "[{function: custom.clean, decision: allow}]"}, "clean", False),
        ({"custom": "[clean]", "approvals": "[{function: 'custom.utils:clean', decision: allow}]"}, "clean", True),
        ({"custom": "[count]", "tool_rules": "{count: {approval_required: true}}"}, "count", False),
        ({"custom": "[count]", "tool_rules": "{count: {allowed: false}}"}, "count", False),
        ({"custom": "[count]", "tool_rules": "{unt: {allowed: false}}"}, "count", True),
        ({"custom": "{count: {pre_approved: false}}"}, "count", False),
    ],
)
async def test_what_is_allowed_by_a_bare_name_is_no_librarys_and_what_is_refused_is(
    tmp_path: Path, keys: dict[str, str], function: str, runs: bool
) -> None:
    async with shop(tmp_path, using(**keys)) as place:
        found = place.bench.project.worker("main")
        (declared,) = [one for one in await place.bench.declarations(found) if one.shown == function]
        assert ("allow" in overview.answers(place.bench.rules_of(found), declared, "worker")) is runs


@pytest.mark.proves("LIB-LOCKED")
async def test_what_a_locked_library_has_become_since_is_neither_included_nor_imported(tmp_path: Path) -> None:
    utils = {**UTILS, "templates/a.jinja": "as it was"}
    main = worker("toolsets: {custom: [count]}", "{% include 'utils:a.jinja' %}")
    async with shop(tmp_path, {"main.worker": main}, {"utils": utils}) as place:
        libraries = place.bench.project.libraries.values()
        libslock.write(str(place.root), libslock.lock_of((one.name, one.version, one.root) for one in libraries))
    async with shop(tmp_path, {"main.worker": main}, {"utils": utils}) as place:
        assert json.loads((await place.run(calling(("count", {"text": "a"})))).output)["system"] == "as it was\n"
        write(tmp_path / "shelf/utils", {"templates/a.jinja": "changed"})
        done = await place.run("x")
        assert "library utils: templates/a.jinja is not what libs.lock has" in done.error
    async with shop(tmp_path, {"main.worker": main}, {"utils": utils}) as place:
        write(tmp_path / "shelf/utils", {"words.py": "raise SystemExit"})
        done = await place.run("x")
        assert "words.py: changed since libs.lock was written" in done.error


@pytest.mark.proves("LIB-LOCKED", "LIBS-LOCK-WHOLE")
@pytest.mark.parametrize(
    "main",
    [
        worker("toolsets: {custom: [count]}"),
        worker("", "{% include 'utils:a.jinja' %}"),
        worker("allow_workers: ['utils:summarizer']"),
    ],
    ids=["python", "template", "worker"],
)
async def test_a_locked_library_is_refused_whatever_of_it_has_changed(tmp_path: Path, main: str) -> None:
    utils = {**UTILS, "templates/a.jinja": "as it was", "data.txt": "GOOD"}
    calls = [("worker_call", {"worker": "utils:summarizer", "input_data": "x"})] if "allow" in main else []
    async with shop(tmp_path, {"main.worker": main}, {"utils": utils}) as place:
        libraries = place.bench.project.libraries.values()
        libslock.write(str(place.root), libslock.lock_of((one.name, one.version, one.root) for one in libraries))
    async with shop(tmp_path, {"main.worker": main}, {"utils": utils}) as place:
        assert "libs.lock" not in str(await place.run(calling(*calls)))
        write(tmp_path / "shelf/utils", {"data.txt": "EVIL"})
        assert "library utils: data.txt: changed since libs.lock was written" in str(await place.run(calling(*calls)))


@pytest.mark.proves("LIB-LEFTOVERS")
@pytest.mark.parametrize("folder", ["node_modules", "__pycache__"])
async def test_python_where_caches_lie_is_no_part_of_a_library(tmp_path: Path, folder: str) -> None:
    utils = {
        "tools/__init__.py": f"from .{folder} import V\n__all__ = ['clean']\ndef clean() -> str:\n    return V\n",
        f"tools/{folder}/__init__.py": "V = 1",
    }
    async with shop(tmp_path, using(custom="['utils:clean']"), {"utils": utils}) as place:
        with pytest.raises(ToolModuleError) as caught:
            await place.bench.declarations(place.bench.project.worker("main"))
        assert f"utils:tools/{folder}/__init__.py: what is in {folder} is no part of a library" in str(caught.value)
