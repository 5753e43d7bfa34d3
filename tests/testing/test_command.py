"""`llm-do test`, as people and CI services run it: a project with tests of each kind, passing and failing."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.commands import llm_do

FILES = {
    "project.yaml": "name: keeper\nsandbox: {paths: {notes: 'rw:./notes'}}\n",
    "main.worker": """---
toolsets: {filesystem: {}, custom: [stamp], delegation: {allow_workers: [judge]}}
model: anthropic:claude-haiku-4-5
---
Keep what you are told.
""",
    "workers/judge.worker": """---
compatible_models: ["anthropic:*"]
output_schema: {type: object, properties: {mark: {type: integer}}, required: [mark]}
---
Judge.
""",
    "tools.py": "def stamp(text: str) -> str:\n    return f'[{text}]'\n",
    "notes/old.md": "old\n",
    "script.yaml": """workers:
  main:
    - tool_calls:
        - {name: write_file, input: {path: notes/new.md, content: "pears\\n"}}
        - {name: stamp, input: {text: pears}}
        - {name: worker_call, input: {worker: judge, input_data: pears}}
    - Kept.
  judge: ['{"mark": 3}']
""",
    "tests/checks.py": """
def kept(result):
    assert result["status"] == "done"
    assert result["files"] == {"notes/new.md": "pears\\n"}, result["files"]
    assert result["account"]["calls"] >= 3


def never(result):
    assert result["output"] == "Lost.", f"it says {result['output']}"
""",
}
APPROVALS = """
      - {function: files.write, subject: notes/*}
      - {function: custom.stamp, decision: deny, note: no stamps}
"""


def _project(folder: Path, tests: str, **more: str) -> Path:
    root = folder / "keeper"
    for path, text in {**FILES, "tests/keeping.yaml": tests, **more}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def _suite(test: str, approvals: str = APPROVALS, model: str = "scripted:script.yaml") -> str:
    return f"model: {model}\ntests:\n  it keeps:\n    input: pears\n    approvals:{approvals}{test}"


def _played(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    return llm_do("test", _project(folder, tests), *options)


@pytest.mark.proves("TEST-PASSES")
def test_a_test_passes_where_all_is_as_expected_and_leaves_the_project_as_it_was(tmp_path: Path) -> None:
    root = _project(
        tmp_path,
        _suite("""    expect:
      text: Kept
      output: Kept.
      python: tests/checks.py:kept
      files: {notes/*.md: pears}
"""),
    )
    done = llm_do("test", root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ok     tests/keeping.yaml: it keeps (")
    assert done.stdout.endswith("\n1 test: 1 passed, 0 failed (no model was called)\n")
    left = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert left == {*FILES, "tests/keeping.yaml"}


@pytest.mark.proves("TEST-DIFFERENCES")
@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("    expect: {text: [Kept, Lost]}\n", "text: 'Lost' is not in 'Kept.'"),
        ("    expect: {output: Lost.}\n", 'output: expected "Lost.", got "Kept."'),
        ("    expect: {output: null}\n", 'output: expected null, got "Kept."'),
        ("    expect: {output_schema: {type: integer}}\n", 'output_schema: must be an integer, not "Kept."'),
        ("    expect: {python: 'tests/checks.py:never'}\n", "it says Kept."),
        ("    expect: {files: {}}\n", "files: notes/new.md was written, and is not among them"),
        ("    expect: {files: {notes/new.md: plums}}\n", "files: notes/new.md: 'plums' is not in 'pears\\n'"),
        ("    expect: {files: {notes/*: [], x.md: []}}\n", "files: x.md was not written; written: notes/new.md"),
        ("    expect: {status: failed, error: ''}\n", 'status: expected failed, got done: "Kept."'),
    ],
)
def test_each_difference_is_a_line_that_says_both_sides(tmp_path: Path, test: str, said: str) -> None:
    done = _played(tmp_path, _suite(test))
    assert done.returncode == 1
    first, *lines, last = done.stdout.splitlines()
    assert first.startswith("FAILED tests/keeping.yaml: it keeps (")
    assert len(lines) == 1 and said in lines[0]
    assert last == "1 test: 0 passed, 1 failed (no model was called)"


@pytest.mark.proves("TEST-APPROVALS")
@pytest.mark.parametrize(
    ("approvals", "said"),
    [
        (" []\n", ["asked, and not among `approvals`: custom.stamp", "asked, and not among `approvals`: files.write"]),
        (APPROVALS + "      - {function: shell}\n", ["approvals: shell * was asked 0 times"]),
        (APPROVALS.replace("notes/*}", "notes/*, times: 2}"), ["files.write notes/* was asked 1 times, 2 expected"]),
        (APPROVALS.replace("notes/*", "notes/old.md"), ["notes/old.md was asked 0 times", "files.write notes/new.md"]),
        (" all\n", []),
        (" deny\n", []),
    ],
)
def test_what_is_asked_and_what_is_listed_are_the_same(tmp_path: Path, approvals: str, said: list[str]) -> None:
    done = _played(tmp_path, _suite("", approvals))
    assert done.returncode == (1 if said else 0)
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("       "))
    assert len(lines) == len(said)
    assert all(words in line for words, line in zip(said, lines, strict=True))


@pytest.mark.proves("TEST-APPROVALS")
def test_a_test_without_a_list_may_ask_nothing(tmp_path: Path) -> None:
    done = _played(tmp_path, "model: scripted:script.yaml\ntests: {it asks: {input: pears}}\n")
    assert done.returncode == 1 and "files.write notes/new.md" in done.stdout


@pytest.mark.proves("TEST-APPROVALS")
def test_a_lock_settles_what_is_asked_in_a_test_as_it_does_in_ci(tmp_path: Path) -> None:
    root = _project(tmp_path, _suite("", " locked\n"))
    assert "approvals.lock" in llm_do("test", root).stdout
    env = {"LLM_DO_MODEL": "scripted:script.yaml"}
    (root / "main.worker").write_text(FILES["main.worker"].replace("model: anthropic:claude-haiku-4-5\n", ""))
    (root / "workers/judge.worker").write_text(FILES["workers/judge.worker"].replace('["anthropic:*"]', '["*"]'))
    assert llm_do(root, "pears", "--approve-all", env=env).returncode == 0
    assert llm_do("approvals", "lock", "last", "--project", root, env=env).returncode == 0
    suite = _suite("    expect: {files: {notes/new.md: pears}}\n", " locked\n")
    (root / "tests/keeping.yaml").write_text(suite)
    (root / "notes/new.md").unlink()
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout


@pytest.mark.proves("TEST-WORKER")
def test_any_worker_can_be_tested_with_its_schema(tmp_path: Path) -> None:
    test = "{worker: judge, input: pears, expect: {output: {mark: 3}}}"
    test = f"model: scripted:script.yaml\ntests:\n  it judges: {test}\n"
    assert _played(tmp_path, test).returncode == 0


@pytest.mark.proves("TEST-MODEL")
def test_the_tests_model_answers_for_all_workers_whatever_they_name(tmp_path: Path) -> None:
    """Both workers would need a model of Anthropic's, and there is no key."""
    assert _played(tmp_path, _suite("")).returncode == 0
    done = llm_do("test", tmp_path / "keeper", "--model", "scripted:absent.yaml")
    assert done.returncode == 1 and "absent.yaml" in done.stdout
    done = llm_do("test", tmp_path / "keeper", "--model", "anthropic:claude-haiku-4-5")
    assert done.returncode == 1 and "ANTHROPIC_API_KEY" in done.stdout


@pytest.mark.proves("TEST-REPLAY")
def test_a_recorded_run_is_a_file_of_the_project_and_is_replayed(tmp_path: Path) -> None:
    replays = _suite("    expect: {text: Kept}\n", " all\n", model="replay:tests/pears.json")
    root = _project(tmp_path, replays)
    (root / "workers/judge.worker").write_text(FILES["workers/judge.worker"].replace('["anthropic:*"]', '["*"]'))
    (root / "main.worker").write_text(FILES["main.worker"].replace("model: anthropic:claude-haiku-4-5\n", ""))
    env = {"LLM_DO_MODEL": "scripted:script.yaml", "KEEPER_API_KEY": "sesame-opens-42"}
    assert llm_do(root, "pears", "--approve-all", env=env).returncode == 0
    (root / "notes/new.md").unlink()
    recorded = llm_do("test", root, "--record", "last", "tests/pears.json", env=env)
    assert str(tmp_path) not in (root / "tests/pears.json").read_text()
    assert recorded.returncode == 0 and "look through it before you commit it" in recorded.stdout
    (root / "script.yaml").unlink()
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout

    (root / "tests/keeping.yaml").write_text(replays.replace("input: pears", "input: plums"))
    done = llm_do("test", root)
    assert done.returncode == 1
    assert "something else is asked than in run" in done.stdout and "plums" in done.stdout


@pytest.mark.proves("TEST-REPLAY")
def test_a_recording_holds_no_secret_of_the_environment(tmp_path: Path) -> None:
    root = _project(tmp_path, _suite(""))
    env = {"KEEPER_API_KEY": "sesame-opens-42"}
    (root / "main.worker").write_text(
        FILES["main.worker"].replace("anthropic:claude-haiku-4-5", "scripted:script.yaml")
    )
    judge = FILES["workers/judge.worker"].replace('["anthropic:*"]', '["*"]')
    (root / "workers/judge.worker").write_text(judge.replace("---\ncomp", "---\nmodel: scripted:script.yaml\ncomp"))
    assert llm_do(root, "say sesame-opens-42", "--approve-all", env=env).returncode == 0
    assert llm_do("test", root, "--record", "last", "tests/it.json").returncode == 0
    text = (root / "tests/it.json").read_text()
    assert json.loads(text)["format"] == 1
    assert "sesame-opens-42" not in text and "KEEPER_API_KEY" in text


@pytest.mark.proves("TEST-REPLAY")
def test_a_recording_outside_the_project_is_neither_read_nor_written(tmp_path: Path) -> None:
    root = _project(tmp_path, "tests:\n  a: {model: 'replay:../x.json'}\n  b: {model: 'scripted:script.yaml'}\n")
    (root / "main.worker").write_text("---\nmodel: scripted:said.yaml\n---\nx\n")
    (root / "script.yaml").write_text("workers: {main: [Kept.]}\n")
    done = llm_do("test", root)
    first, said, second, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr, said.strip()[:20]) == (1, "", "'../x.json' has '..'")
    assert first.startswith("FAILED") and second.startswith("ok    ")
    assert last == "2 tests: 1 passed, 1 failed (no model was called)"
    assert llm_do(root, "x").returncode == 1  # there is no said.yaml
    refused = llm_do("test", root, "--record", "last", "../x.json")
    assert (refused.returncode, refused.stderr.count("\n"), (tmp_path / "x.json").exists()) == (2, 1, False)
    failed = llm_do("test", root, "--record", "last", "tests/x.json")
    assert failed.returncode == 0 and ", which is failed, not done, in tests/x.json;" in failed.stdout
    (root / "away").symlink_to(tmp_path)
    led_out = llm_do("test", root, "--record", "last", "away/x.json")
    assert (led_out.returncode, led_out.stderr.count("\n"), (tmp_path / "x.json").exists()) == (1, 1, False)


@pytest.mark.proves("TEST-NO-CLIENT")
@pytest.mark.parametrize("given", [(), ("--model", "sampling:haiku")])
def test_a_test_whose_model_a_client_would_lend_fails_at_once(tmp_path: Path, given: tuple[str, ...]) -> None:
    root = _project(tmp_path, "tests:\n  a: {input: x}\n")
    (root / "main.worker").write_text("---\nmodel: sampling\n---\nx\n")
    done = llm_do("test", root, *given)
    assert done.returncode == 1 and "a test has no MCP client, which could lend its model; name another" in done.stdout


@pytest.mark.proves("TEST-REFUSED")
@pytest.mark.parametrize(
    ("test", "error"),
    [
        ("worker: judg, input: x", "did you mean"),
        ("input: {inptu: x}", "input of worker main: "),
        ("worker: judge, input: x, model: 'anthropic:x', attach: [], approvals: all", "ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_refused_before_it_begins_may_be_expected(tmp_path: Path, test: str, error: str) -> None:
    expected = f"tests:\n  a: {{{test}, expect: {{status: failed, error: {error!r}}}}}\n"
    assert _played(tmp_path, expected).stdout.startswith("ok     tests/keeping.yaml: a (")
    (tmp_path / "keeper/tests/keeping.yaml").write_text(f"tests:\n  a: {{{test}}}\n")
    done = llm_do("test", tmp_path / "keeper")
    assert done.returncode == 1 and "status: expected done, got failed: " in done.stdout and error in done.stdout


@pytest.mark.proves("TEST-JUNIT")
def test_the_outcome_is_written_as_junit_xml(tmp_path: Path) -> None:
    suite = _suite("") + "  it <fails> & says so:\n    input: plums\n    approvals: all\n    expect: {text: <Lost>}\n"
    done = _played(tmp_path, suite, "--junit", str(tmp_path / "report.xml"))
    assert done.returncode == 1
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suites.tag, suites.get("tests"), suites.get("failures")) == ("testsuites", "2", "1")
    (file,) = suites
    assert (file.tag, file.get("name")) == ("testsuite", "tests/keeping.yaml")
    passed, failed = file
    assert passed.get("name") == "it keeps" and len(passed) == 0 and float(passed.get("time") or "") >= 0
    assert failed.get("name") == "it <fails> & says so" and failed.get("classname") == "tests/keeping.yaml"
    assert failed[0].tag == "failure" and failed[0].get("message") == "text: '<Lost>' is not in 'Kept.'"


@pytest.mark.proves("TEST-CHOSEN")
def test_tests_are_listed_and_chosen_by_their_titles(tmp_path: Path) -> None:
    root = _project(tmp_path, _suite("") + "  it fails:\n    expect: {text: Lost}\n")
    listed = llm_do("test", root, "--list")
    assert listed.stdout == "tests/keeping.yaml: it keeps\ntests/keeping.yaml: it fails\n"
    assert llm_do("test", root, "--only", "it keeps").returncode == 0
    assert llm_do("test", "--only", "it keeps", cwd=root).returncode == 0


@pytest.mark.proves("TEST-USAGE")
@pytest.mark.parametrize(
    ("tests", "options", "said"),
    [
        ("tests: {}\n", (), "tests/keeping.yaml: `tests` is empty"),
        ("tests: {}\ncases: {}\n", (), "tests/keeping.yaml:2:1: unknown key 'cases'"),
        ("tests:\n  a: {expects: {}}\n", (), "tests/keeping.yaml:2:7: unknown key 'expects'; did you mean 'expect'?"),
        ("tests:\n  a: {expect: {error: no}}\n", (), "an error is of a run with `status: failed`"),
        ("tests:\n  a: {attach: [../x]}\n", (), ":2:16: tests.a.attach.0: '../x' has '..'"),
        ("tests:\n  a: {attach: [/etc/x]}\n", (), "'/etc/x' is not relative to the project"),
        ("tests:\n  a: {expect: {output_schema: ../x.json}}\n", (), "output_schema: '../x.json' has '..'"),
        ("tests:\n  a: {expect: {output_schema: 5}}\n", (), "output_schema: must be a schema, or a JSON file"),
        ("tests:\n  a: {expect: {output_schema: {type: strin}}}\n", (), ":2:31: tests.a.expect.output_schema: "),
        ("tests:\n  a: {expect: {output_schema: {properties: 5}}}\n", (), "(at properties)"),
        ("tests:\n  a: {expect: {python: '../x.py:f'}}\n", (), "python: '../x.py' has '..'"),
        ("tests:\n  a: {expect: {python: x.py}}\n", (), "'x.py' is no function; write file.py:function"),
        ("tests:\n  a: {approvals: some}\n", (), "must be 'all', 'deny' or 'locked', not 'some'"),
        ("tests:\n  a: {approvals: {all: 1}}\n", (), "must be a list of what is asked, or 'all', 'deny' or 'locked'"),
        (
            "tests:\n  a:\n    approvals: [{function: x, decision: maybe}]\n",
            (),
            "keeping.yaml:3:41: tests.a.approvals.0.decision: must be 'once', 'run' or 'deny', not 'maybe'",
        ),
        ("tests:\n  a: {approvals: [{function: x, times: 0}]}\n", (), ":2:40: tests.a.approvals.0.times: "),
        ("tests:\n  a: {approvals: [{function: x, tims: 1}]}\n", (), "unknown key 'tims'; did you mean 'times'?"),
        (
            "tests:\n  a: {approvals: [{function: x, answer: y, decision: deny}]}\n",
            (),
            "`decision` is for approvals, `answer` for what a tool asks; write one of them",
        ),
        ("tests:\n  a: {input: x}\n", ("--junit", "."), "--junit: . cannot be written: "),
        ("tests:\n  a: {input: x}\n", ("--junit", "nowhere/r.xml"), "nowhere/r.xml cannot be written: No such file"),
        ("tests:\n  a: {input: x}\n", ("--only", "b"), "no test has 'b' in its title"),
        ("tests:\n  a: {input: x}\n", ("--record", "last", "a.json"), "the project has no runs yet"),
    ],
)
def test_what_cannot_be_played_is_one_line_and_exits_2_or_1(
    tmp_path: Path, tests: str, options: tuple[str, ...], said: str
) -> None:
    done = _played(tmp_path, tests, *options)
    assert done.returncode == (1 if "runs" in said else 2)
    assert done.stdout == "" and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.proves("TEST-USAGE")
def test_a_project_without_tests_says_how_to_write_one(tmp_path: Path) -> None:
    root = _project(tmp_path, "")
    (root / "tests/keeping.yaml").unlink()
    done = llm_do("test", root)
    assert done.returncode == 2 and "the project has no tests; write tests/NAME.yaml" in done.stderr


@pytest.mark.proves("TEST-OUTSIDE")
def test_a_worker_that_may_write_outside_the_project_is_not_played(tmp_path: Path) -> None:
    root = _project(tmp_path, _suite("", " all\n"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "project.yaml").write_text(f"name: keeper\nsandbox: {{paths: {{notes: 'rw:{outside.as_posix()}'}}}}\n")
    done = llm_do("test", root)
    assert done.returncode == 1 and "lies outside the project" in done.stdout
    assert list(outside.iterdir()) == []
