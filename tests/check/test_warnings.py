"""What `check` finds odd, and what it only tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.project import commandline, libslock
from tests.check.looking import MAIN, MODEL, look, said
from tests.project.conftest import worker, write

pytestmark = pytest.mark.anyio


@pytest.mark.proves("CHECK-IDLE", "A086")
async def test_rules_that_can_match_nothing_are_shown_where_they_stand(tmp_path: Path) -> None:
    manifest = f"""\
        model: {MODEL}
        toolsets: {{te: {{_approval_config: {{tee: {{pre_approved: true}}}}}}}}
        sandbox: {{paths: {{in: 'rw:./in'}}}}
        approvals:
          - {{function: files.wirte, decision: allow}}
          - {{function: files.read, subject: "nowhere/**", decision: deny}}
          - {{function: files.read, subject: "in/**", decision: deny}}
        """
    keys = """\
        toolsets:
          filesystem: {}
          shell: {rules: [{pattern: "git **"}, {pattern: "git push *", allowed: false}]}
          custom: {greet: {pre_approved: true}}
        tool_rules:
          worker.call: {approval_required: true}
          greet: {allowed: true}
        """
    files = {"project.yaml": manifest, "main.worker": worker(keys), "in/x.md": "", "tools.py": "def greet(): 1"}
    warnings = said(await look(tmp_path, files), "warning")
    assert warnings == [
        "main.worker:4:40: `deny shell git push *` can match nothing: "
        "an earlier rule matches every such command; put it first, or remove it",
        "main.worker:7:3: `ask worker.call` can match nothing: nobody has such a function; known: "
        "custom.greet, files.list, files.read, files.write, greet, list_files, read_file, shell, write_file",
        "project.yaml:2:36: `allow te/tee` can match nothing: nobody has such a function; known: "
        "custom.greet, files.list, files.read, files.write, greet, list_files, read_file, shell, write_file",
        "project.yaml:5:5: `allow files.wirte` can match nothing: nobody has such a function; "
        "did you mean 'files.write'?",
        "project.yaml:6:5: `deny files.read nowhere/**` can match nothing: nobody can call files.read like that",
    ]


@pytest.mark.proves("CHECK-IDLE")
async def test_a_rule_that_is_at_work_for_one_worker_is_not_idle(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\nexports: [a, b]\ntoolsets:\n  filesystem: {{_approval_config: "
        "{write_file: {pre_approved: true}}}\n",
        "workers/a.worker": worker(),
        "workers/b.worker": worker("sandbox: {paths: {out: 'rw:./out'}}"),
        "out/x": "",
    }
    assert said(await look(tmp_path, files), "warning") == []
    files["workers/b.worker"] = worker()
    (warning,) = said(await look(tmp_path, files), "warning")
    assert warning.startswith("project.yaml:4:35: `allow files.write` can match nothing")


@pytest.mark.proves("CHECK-IDLE", "ATTACH-CONFINED")
async def test_a_rule_about_what_is_attached_is_not_idle_where_it_can_be_read(tmp_path: Path) -> None:
    rules = "approvals:\n  - {function: files.read, subject: 'attachments/**', decision: ask}\n"
    keys = "sandbox: {paths: {in: 'ro:./in'}}\n"
    files = {"project.yaml": f"model: {MODEL}\n{rules}", "in/x": ""}
    files["main.worker"] = worker(f"{keys}toolsets: {{te: {{}}}}")
    (warning,) = said(await look(tmp_path, files), "warning")
    assert warning.startswith("project.yaml:3:5: `ask files.read attachments/**` can match nothing")
    files["main.worker"] = worker(f"{keys}toolsets: {{filesystem: {{}}}}")
    assert said(await look(tmp_path, files), "warning") == []


@pytest.mark.proves("CHECK-IDLE", "CHECK-ALL-AT-ONCE")
async def test_a_broken_worker_does_not_hide_rules_of_which_it_is_known_that_they_match_nothing(tmp_path: Path) -> None:
    idle = "approvals: [{function: files.write, subject: 'nowhere/**', decision: deny}]\n"
    keys = "toolsets: {filesystem: {}}\nsandbox: {paths: {in: 'rw:./in'}}\ntool_rules: {shell: {allowed: false}}\n"
    files = {
        "project.yaml": f"model: {MODEL}\n{idle}",
        "in/x": "",
        "main.worker": worker(keys + "limits: {max_turns: 0}"),
    }
    first, second = said(await look(tmp_path, files), "warning")
    assert first.startswith("main.worker:4:14: `deny shell` can match nothing: nobody has such a function")
    assert second.startswith("project.yaml:2:13: `deny files.write nowhere/**` can match nothing")
    for unclear in ("modle: x", "imports: {wokers: [x]}"):
        files["main.worker"] = worker(keys + unclear)
        assert said(await look(tmp_path, files), "warning") == []


@pytest.mark.proves("CHECK-IDLE")
async def test_a_name_that_nothing_bears_is_told_also_where_the_rule_changes_nothing(tmp_path: Path) -> None:
    keys = "toolsets: {filesystem: {}}\nsandbox: {paths: {in: 'rw:./in'}}\n"
    rules = "tool_rules: {wirte_file: {allowed: true}, read_file: {allowed: true}, list_files: {description: x}}"
    (warning,) = said(
        await look(tmp_path, {"main.worker": worker(keys + rules), "in/x": ""}, default_model=MODEL), "warning"
    )
    assert warning == (
        "main.worker:4:14: `allow custom.wirte_file` can match nothing: nobody has such a function; "
        "did you mean 'write_file'?"
    )


@pytest.mark.proves("CHECK-FIELDS")
async def test_a_field_that_stands_in_the_place_of_what_every_call_has_is_a_warning(tmp_path: Path) -> None:
    schema = "input_schema: {properties: {attachments: {type: string}}}\n"
    files = {
        "main.worker": worker(f"model: {MODEL}\n{schema}allow_workers: ['*']"),
        "workers/none.worker": worker(f"model: {MODEL}\n{schema}attachment_policy: {{max_attachments: 0}}"),
        "workers/param.worker": worker(f"model: {MODEL}\nparams: {{extra_context: ''}}"),
        "workers/ref.worker": worker(f"model: {MODEL}\nschema_in_ref: schemas/x.json"),
        "schemas/x.json": '{"properties": {"extra_context": {}}}',
    }
    report = await look(tmp_path, files)
    assert report.ok and said(report, "warning") == [
        "main.worker:3:42: 'attachments' is a field of its own, so nobody who calls its tool can attach files; "
        "rename it to have both",
        "workers/param.worker:3:25: 'extra_context' is a field of its own, so nobody who calls its tool can say more "
        "than its input; rename it to have both",
        "workers/ref.worker:3:16: 'extra_context' is a field of its own, so nobody who calls its tool can say more "
        "than its input; rename it to have both",
    ]


@pytest.mark.proves("CHECK-IDLE")
async def test_nothing_is_said_of_rules_that_may_be_about_what_was_not_looked_at(tmp_path: Path) -> None:
    rule = "model: scripted:s.yaml\ntool_rules: {greet: {allowed: false}}"
    files = {"main.worker": worker(rule), "tools.py": "def meet(): 1\n", "s.yaml": "workers: {}"}
    assert said(await look(tmp_path, files), "warning") == []
    (warning,) = said(await look(tmp_path, files, import_tools=True), "warning")
    assert warning.startswith("main.worker:3:14: `deny custom.greet` can match nothing")
    assert warning.endswith("did you mean 'custom.meet'?")


@pytest.mark.proves("CHECK-IDLE")
@pytest.mark.parametrize(
    ("earlier", "later", "covered"),
    [
        ("git **", "git push *", True),
        ("git **", "git", True),
        ("git *", "git push", True),
        ("git *", "git push **", True),
        ("git push *", "git push *", True),
        ("git status*", "git status", True),
        ("git status*", "git status -s", True),
        ("* push", "git push", True),
        ("pytest tests/*.py", "pytest tests/a.py", True),
        ("git *", "git **", False),
        ("git *", "git", False),
        ("git push", "git push *", False),
        ("git push", "git *", False),
        ("git push -f **", "git push **", False),
        ("git pu*sh", "git push*", False),
        ("pytest tests/*.py", "pytest *", False),
        ("pytest tests/*.py", "pytest tests/*", False),
        ("pytest tests/*.py", "pytest tests/../a.py", False),
        ("svn **", "git push", False),
    ],
)
async def test_a_pattern_covers_another_only_where_that_is_certain(earlier: str, later: str, covered: bool) -> None:
    assert commandline.covers(earlier, later) == covered


@pytest.mark.proves("CHECK-REACH")
async def test_workers_that_nothing_can_reach_are_named(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\ndependencies: [utils]\nexports: [shown]\n",
        "main.worker": worker("allow_workers: ['re*', 'utils:back']"),
        "workers/shown.worker": worker("toolsets: {delegation: {lock_worker: locked}}"),
        "workers/locked.worker": worker(),
        "workers/report.worker": worker("allow_workers: [below]"),
        "workers/below.worker": worker("imports: {workers: [imported]}"),
        "workers/imported.worker": worker("allow_workers: [behind]"),
        "workers/behind.worker": worker(),
    }
    library = {"workers/back.worker": worker()}
    report = await look(tmp_path, files, {"utils": library})
    assert [w.partition(": ")[0] for w in said(report, "warning") if "reach" in w] == [
        "workers/behind.worker:1:1",
        "workers/imported.worker:1:1",
    ]
    assert report.ok
    assert {one.worker.id for one in report.workers if one.reached is False} == {"imported", "behind"}


@pytest.mark.proves("CHECK-REACH")
async def test_where_a_worker_is_broken_nothing_is_called_unreachable(tmp_path: Path) -> None:
    files = {
        "main.worker": worker("allow_workers: [a]\nmodle: x"),
        "workers/a.worker": worker(),
        "workers/b.worker": worker(),
    }
    report = await look(tmp_path, files, default_model=MODEL)
    assert len(report.of("error")) == 1 and said(report, "warning") == []
    assert [one.reached for one in report.workers] == [True, None], "the first as far as the broken one says"


@pytest.mark.proves("CHECK-REACH")
async def test_a_workers_file_is_checked_as_the_entry(tmp_path: Path) -> None:
    files = {"main.worker": MAIN, "workers/a.worker": worker()}
    report = await look(tmp_path, files, path="workers/a.worker", default_model=MODEL)
    assert report.project is not None and report.project.entry == "a"
    assert report.findings == ()


@pytest.mark.proves("CHECK-REACH")
async def test_allow_lists_that_name_nobody_are_shown(tmp_path: Path) -> None:
    keys = "allow_workers: [helper, ./workers/hlper.worker, 'reports/*', 'utils:secret', '*']"
    files = {
        "project.yaml": f"model: {MODEL}\ndependencies: [utils]\n",
        "main.worker": worker(keys.replace(", '*'", "")),
        "workers/helper.worker": worker(),
    }
    libraries = {"utils": {"lib.yaml": "exports: [a]", "workers/a.worker": worker(), "workers/secret.worker": worker()}}
    warnings = [w for w in said(await look(tmp_path, files, libraries), "warning") if "allow_workers: " in w]
    assert warnings == [
        "main.worker:2:25: allow_workers: there is no worker 'hlper'; did you mean 'helper'?",
        "main.worker:2:49: allow_workers: 'reports/*' matches no worker",
        "main.worker:2:62: allow_workers: worker 'utils:secret' is internal to the library utils, which exports a",
    ]
    # Who may call anybody may make the workers that it names.
    files["main.worker"] = worker(keys)
    warnings = [w for w in said(await look(tmp_path, files, libraries), "warning") if "allow_workers: " in w]
    assert warnings == ["main.worker:2:49: allow_workers: 'reports/*' matches no worker"]


@pytest.mark.proves("CHECK-FOLDERS")
async def test_folders_that_are_not_there_yet_are_odd(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\nsandbox:\n  paths:\n    in: ro:./in\n    out: {{root: ./out, mode: rw}}\n",
        "main.worker": worker("sandbox: {paths: {scratch: 'out:./scratch', there: 'ro:./there'}}"),
        "there/x": "",
    }
    assert said(await look(tmp_path, files), "warning") == [
        "main.worker:2:28: sandbox.paths.scratch: the folder does not exist yet; it is made when it is first used",
        "project.yaml:4:9: sandbox.paths.in: the folder does not exist yet; make it",
        "project.yaml:5:17: sandbox.paths.out: the folder does not exist yet; it is made when it is first used",
    ]


@pytest.mark.proves("CHECK-FOLDERS")
async def test_what_of_the_machine_a_project_reaches_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    manifest = f"model: {MODEL}\nsandbox: {{paths: {{notes: {{root: {tmp_path / 'notes'}, mode: rw}}}}}}\n"
    report = await look(tmp_path, {"project.yaml": manifest, "main.worker": worker()})
    where = tmp_path / "notes"
    assert said(report, "note") == [
        f"project.yaml:2:33: sandbox.paths.notes: {where} is absolute, so workers reach {where} (rw)"
    ]
    assert report.ok and report.verdict == "ok: 1 worker, 1 published"
    (folder,) = report.workers[0].folders
    assert (folder.place, folder.inside, folder.exists) == (str(where), False, True)


@pytest.mark.proves("CHECK-FOLDERS")
@pytest.mark.parametrize("root", ["../up", "./in/../../up"])
async def test_a_relative_folder_outside_the_project_is_an_error(tmp_path: Path, root: str) -> None:
    (tmp_path / "up").mkdir()
    files = {"project.yaml": f"sandbox: {{paths: {{up: {{root: {root}}}}}}}\n", "main.worker": MAIN}
    (error,) = said(await look(tmp_path, files), "error")
    assert error.startswith(f"project.yaml:1:30: sandbox.paths.up: '{root}' has '..'")


@pytest.mark.proves("CHECK-MODEL")
async def test_without_a_model_the_ways_to_name_one_are_told(tmp_path: Path) -> None:
    files = {f"workers/w{number}.worker": worker() for number in range(7)}
    files["workers/w0.worker"] = MAIN
    report = await look(tmp_path, files)
    assert said(report, "warning") == [
        "workers/w1.worker:1:1: no model for w1, w2, w3, w4, w5 and 1 more; write `model: anthropic:claude-haiku-4-5` "
        "into the worker or the manifest, or set LLM_DO_MODEL"
    ]
    assert report.ok
    assert said(await look(tmp_path, files, default_model=MODEL), "warning") == []


@pytest.mark.proves("CHECK-LIBRARIES")
async def test_libraries_that_are_not_locked_are_odd_and_changed_ones_wrong(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\ndependencies: [utils]\n",
        "main.worker": worker("allow_workers: ['utils:a']"),
    }
    libraries = {"utils": {"workers/a.worker": worker(), "README.md": "x"}}
    report = await look(tmp_path, files, libraries)
    (warning,) = said(report, "warning")
    assert warning.startswith("project.yaml:2:15: not locked, so what is loaded may change unnoticed: utils;")
    assert report.project is not None
    found = [(one.name, one.version, one.root) for one in report.project.libraries.values()]
    libslock.write(str(tmp_path / "project"), libslock.lock_of(found))
    assert (await look(tmp_path, files, libraries)).findings == ()
    write(tmp_path / "shelf" / "utils", {"new.md": ""})
    report = await look(tmp_path, files, {"utils": {"README.md": "y"}})
    assert [error.partition(";")[0] for error in said(report, "error")] == [
        "libs.lock: library utils: README.md was changed since",
        "libs.lock: library utils: new.md was added since",
    ]


@pytest.mark.proves("CHECK-NETWORK")
@pytest.mark.parametrize("keys", ["toolsets: {shell: {}}", "toolsets: {custom: [f]}"])
async def test_it_is_told_what_a_denied_network_does_not_isolate(tmp_path: Path, keys: str) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\nexports: [a, b]\nsandbox: {{network_enabled: false}}\n",
        "workers/a.worker": worker(keys),
        "workers/b.worker": worker(keys),
        "tools.py": "def f(): 1\n",
    }
    report = await look(tmp_path, files)
    (note,) = said(report, "note")
    assert note.startswith("project.yaml:3:28: network_enabled: false denies functions of network risk")
    assert "does not isolate Python or shell commands" in note and report.ok
    files["workers/a.worker"] = files["workers/b.worker"] = worker()
    assert said(await look(tmp_path, files), "note") == []


@pytest.mark.proves("CHECK-NETWORK")
async def test_a_providers_tools_that_are_denied_are_odd(tmp_path: Path) -> None:
    keys = f"model: {MODEL}\nsandbox: {{network_enabled: false}}\nserver_side_tools: [{{tool_type: web_search}}]"
    (warning,) = said(await look(tmp_path, {"main.worker": worker(keys)}), "warning")
    assert warning == "main.worker:4:20: network_enabled: false denies the worker's server_side_tools"


@pytest.mark.proves("CHECK-PRICES")
async def test_prices_of_nobodys_models_and_limits_that_cannot_be_held_are_shown(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\nprices:\n  claude-haku-4-5: {{input: 1, output: 5}}\n",
        "main.worker": worker("limits: {max_cost: 1}"),
        "workers/local.worker": worker("model: anthropic:gemma3\nlimits:\n  max_cost: 1\n"),
    }
    warnings = said(await look(tmp_path, files), "warning")
    assert [line for line in warnings if "price" in line] == [
        f"project.yaml:3:20: prices: no worker has a model claude-haku-4-5; models: {MODEL}, anthropic:gemma3",
        "workers/local.worker:4:13: limits.max_cost cannot be held: no price is known of anthropic:gemma3; "
        "add it to `prices`",
    ]


@pytest.mark.proves("CHECK-CAPABILITIES")
async def test_capabilities_of_nobodys_models_are_shown(tmp_path: Path) -> None:
    flags = "".join(f"  {name}: {{images: true}}\n" for name in ("zzz*", "gemma*", "'anthropic:gemma3'", "sonnet"))
    files = {"project.yaml": f"model: anthropic:gemma3\nmodel_capabilities:\n{flags}", "main.worker": worker()}
    assert [line for line in said(await look(tmp_path, files), "note") if "capabilities" in line] == [
        f"project.yaml:{line}: model_capabilities: no worker has a model {name}; models: anthropic:gemma3"
        for line, name in (("3:9", "zzz*"), ("6:11", "sonnet"))
    ]


@pytest.mark.proves("CHECK-SERVER-SIDE")
@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("anthropic:gemma3", True),
        ("sampling", True),
        ("anthropic:qwen3", False),
        ("['anthropic:gemma3', 'anthropic:claude-haiku-4-5']", False),
        ("scripted:m.yaml", False),
    ],
)
async def test_tools_of_the_provider_that_no_model_is_sent_are_odd(tmp_path: Path, model: str, told: bool) -> None:
    files = {
        "project.yaml": "model_capabilities: {'qwen*': {server_side_tools: true}}\n",
        "main.worker": worker(f"model: {model}\nserver_side_tools: [{{tool_type: web_search}}]"),
        "m.yaml": "workers: {main: [ok]}\n",
    }
    warnings = [line for line in said(await look(tmp_path, files), "warning") if "server_side_tools" in line]
    says = f"main.worker:3:20: server_side_tools are not sent to {model}, not known to have any; name another"
    or_switch = ", or set server_side_tools: true for it under model_capabilities in project.yaml"
    wanted = [says if model.startswith("sampling") else says + or_switch]
    assert [line.strip() for line in warnings] == (wanted if told else [])


@pytest.mark.proves("CHECK-UNNAMED")
@pytest.mark.parametrize(
    ("root", "rule", "told"),
    [
        ("{root: ., mode: rw}", "approval_required: false", True),
        ("{root: ., mode: ro}", "approval_required: false", False),
        ("{root: ./work, mode: rw}", "approval_required: false", False),
        ("{root: ., mode: rw}", "approval_required: true", False),
        ("{root: ., mode: rw}", "{approval_required: false, allowed: false}", False),
    ],
)
async def test_it_is_told_what_a_command_may_do_that_its_words_do_not_say(
    tmp_path: Path, root: str, rule: str, told: bool
) -> None:
    said_of = rule.strip("{}")
    keys = f"""
model: {MODEL}
toolsets: {{shell: {{rules: [{{pattern: git, {said_of}}}]}}}}
sandbox: {{paths: {{all: {root}}}}}
"""
    notes = said(await look(tmp_path, {"main.worker": worker(keys), "work/x": ""}), "note")
    assert [note.partition(" may change")[0].partition(": ")[2] for note in notes] == (
        ["toolsets.shell: a command that runs without asking"] if told else []
    )


@pytest.mark.proves("CHECK-OLD")
async def test_the_folder_that_new_workers_once_went_to_is_told_to_change_nothing(tmp_path: Path) -> None:
    keys = "toolsets: {delegation: {worker_call: {}, worker_create: {output_dir: ./new}}}\nmodel: " + MODEL
    (warning,) = said(await look(tmp_path, {"main.worker": worker(keys)}), "warning")
    assert warning == (
        "main.worker:2:70: worker_create.output_dir changes nothing: new workers are kept for the session, nowhere else"
    )


@pytest.mark.proves("CHECK-STRAYS")
async def test_a_worker_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    files = {"project.yaml": f"model: {MODEL}\n", "main.worker": worker(), "lost.worker": worker()}
    warnings = said(await look(tmp_path, files), "warning")
    assert warnings == [
        "lost.worker: no worker of the project, since its workers are main.worker and what is below workers/; "
        "move it there"
    ]
