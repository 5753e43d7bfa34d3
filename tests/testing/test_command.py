"""`llm-do test`, as people and CI services run it: a project with tests of each kind, passing and failing."""

from __future__ import annotations

import json
import os
import socket
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.testing.play import play
from llm_do_mcp.testing.suite import Case, CaseKeys
from tests.cli.commands import llm_do
from tests.testing.keeper import APPROVALS, FILES, keeper, one_test, played


@pytest.mark.proves("TEST-PASSES")
def test_a_test_passes_where_all_is_as_expected_and_leaves_the_project_as_it_was(tmp_path: Path) -> None:
    root = keeper(
        tmp_path,
        one_test("""    expect:
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
        ("    expect: {files: {notes/*: [], '*.md': []}}\n", "files: *.md was not written; written: notes/new.md"),
    ],
)
def test_each_difference_is_a_line_that_says_both_sides(tmp_path: Path, test: str, said: str) -> None:
    done = played(tmp_path, one_test(test))
    assert done.returncode == 1
    first, *lines, last = done.stdout.splitlines()
    assert first.startswith("FAILED tests/keeping.yaml: it keeps (")
    assert len(lines) == 1 and said in lines[0]
    assert last == "1 test: 0 passed, 1 failed (no model was called)"


@pytest.mark.proves("TEST-DIFFERENCES")
def test_values_are_compared_as_json_and_of_long_ones_the_place_is_shown_where_they_part(tmp_path: Path) -> None:
    long = " ".join(map(str, range(400)))
    answers = {"flag": "1", "number": "1.0", "long": f"{long} pears {long}"}
    root = keeper(
        tmp_path,
        f"""model: scripted:answers.yaml
tests:
  a flag: {{worker: flag, expect: {{output: {{n: true}}}}}}
  a number: {{worker: number, expect: {{output: {{n: 1}}}}}}
  long: {{worker: long, expect: {{output: {{n: {long} plums {long}}}}}}}
""",
    )
    for name in answers:
        (root / f"workers/{name}.worker").write_text("---\noutput_schema: {type: object}\n---\nx\n")
    values = {name: [json.dumps({"n": text if name == "long" else json.loads(text)})] for name, text in answers.items()}
    (root / "answers.yaml").write_text(json.dumps({"workers": values}))
    lines = llm_do("test", root).stdout.splitlines()
    assert lines[1].strip() == 'output: expected {"n": true}, got {"n": 1}'
    assert lines[2].startswith("ok ")
    assert "398 399 plums 0 1" in lines[4] and "398 399 pears 0 1" in lines[4] and len(lines[4]) < 600


@pytest.mark.proves("TEST-APPROVALS")
@pytest.mark.parametrize(
    ("approvals", "said"),
    [
        (" []\n", ["asked, and not among `approvals`: custom.stamp", "asked, and not among `approvals`: files.write"]),
        (APPROVALS + "      - {function: shell}\n", ["approvals: shell * was asked 0 times"]),
        (APPROVALS.replace("notes/*}", "notes/*, times: 2}"), ["files.write notes/* was asked 1 times, 2 expected"]),
        (APPROVALS.replace("notes/*", "notes/old.md"), ["notes/old.md was asked 0 times", "files.write notes/new.md"]),
        (APPROVALS.replace("notes/*", "'*.md'"), ["files.write *.md was asked 0 times", "files.write notes/new.md"]),
        (APPROVALS.replace("notes/*", "notes/**"), []),
        (APPROVALS.replace("files.write", "write_file"), []),
        (APPROVALS.replace("files.write, subject: notes/*", "files_notes_write_text"), []),
        (" all\n", []),
        (" deny\n", []),
    ],
)
def test_what_is_asked_and_what_is_listed_are_the_same(tmp_path: Path, approvals: str, said: list[str]) -> None:
    done = played(tmp_path, one_test("", approvals))
    assert done.returncode == (1 if said else 0)
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("       "))
    assert len(lines) == len(said)
    assert all(words in line for words, line in zip(said, lines, strict=True))


@pytest.mark.proves("TEST-APPROVALS")
def test_a_command_is_listed_as_rules_name_it_however_it_is_spelled(tmp_path: Path) -> None:
    command = {"command": "te  grep 'pears'  notes"}
    script = {"workers": {"main": [{"tool_calls": [{"name": "te", "input": command}]}, "Kept."]}}
    main = "---\ntoolsets: {te: {}}\napprovals: [{function: te, decision: ask}]\n---\nx\n"
    suite = one_test("", " [{function: te, subject: te grep pears *}]\n")
    done = llm_do("test", keeper(tmp_path, suite, **{"main.worker": main, "script.yaml": json.dumps(script)}))
    assert done.returncode == 0, done.stdout


@pytest.mark.proves("TEST-APPROVALS")
def test_a_test_without_a_list_may_ask_nothing(tmp_path: Path) -> None:
    done = played(tmp_path, "model: scripted:script.yaml\ntests: {it asks: {input: pears}}\n")
    assert done.returncode == 1 and "files.write notes/new.md" in done.stdout


@pytest.mark.proves("TEST-APPROVALS")
def test_a_lock_settles_what_is_asked_in_a_test_as_it_does_in_ci(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test("", " locked\n"))
    assert "approvals.lock" in llm_do("test", root).stdout
    env = {"LLM_DO_MODEL": "scripted:script.yaml"}
    (root / "main.worker").write_text(FILES["main.worker"].replace("model: anthropic:claude-haiku-4-5\n", ""))
    (root / "workers/judge.worker").write_text(FILES["workers/judge.worker"].replace('["anthropic:*"]', '["*"]'))
    assert llm_do(root, "pears", "--approve-all", env=env).returncode == 0
    assert llm_do("approvals", "lock", "last", "--project", root, env=env).returncode == 0
    suite = one_test("    expect: {files: {notes/new.md: pears}}\n", " locked\n")
    (root / "tests/keeping.yaml").write_text(suite)
    (root / "notes/new.md").unlink()
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout


@pytest.mark.proves("TEST-WORKER")
def test_any_worker_can_be_tested_with_its_schema(tmp_path: Path) -> None:
    test = "{worker: judge, input: pears, expect: {output: {mark: 3}}}"
    test = f"model: scripted:script.yaml\ntests:\n  it judges: {test}\n"
    assert played(tmp_path, test).returncode == 0


@pytest.mark.proves("TEST-MODEL")
def test_the_tests_model_answers_for_all_workers_whatever_they_name(tmp_path: Path) -> None:
    """Both workers would need a model of Anthropic's, and there is no key."""
    assert played(tmp_path, one_test("")).returncode == 0
    done = llm_do("test", tmp_path / "keeper", "--model", "scripted:absent.yaml")
    assert done.returncode == 1 and "absent.yaml" in done.stdout
    done = llm_do("test", tmp_path / "keeper", "--model", "anthropic:claude-haiku-4-5")
    assert done.returncode == 1 and "ANTHROPIC_API_KEY" in done.stdout


@pytest.mark.anyio
@pytest.mark.proves("TEST-FAULT")
async def test_a_fault_of_ours_fails_the_test_that_met_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others can be played then. What no file can say stands for whatever we did not think of."""
    impossible = Case("tests/x.yaml", "a", CaseKeys(), model=5)  # type: ignore[arg-type]
    with (tmp_path / "printed").open("w+b") as printed:
        played = await play(impossible, load_project(keeper(tmp_path, "")), "/project", printed)
    assert played.failures[0].startswith("internal error: AttributeError: ")
    assert "tests/x.yaml: a met a fault of ours" in caplog.text


@pytest.mark.proves("TEST-NO-CLIENT")
@pytest.mark.parametrize("given", [(), ("--model", "sampling:haiku")])
def test_a_test_whose_model_a_client_would_lend_fails_at_once(tmp_path: Path, given: tuple[str, ...]) -> None:
    root = keeper(tmp_path, "tests:\n  a: {input: x}\n")
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
    assert played(tmp_path, expected).stdout.startswith("ok     tests/keeping.yaml: a (")
    (tmp_path / "keeper/tests/keeping.yaml").write_text(f"tests:\n  a: {{{test}}}\n")
    done = llm_do("test", tmp_path / "keeper")
    assert done.returncode == 1 and "status: expected done, got failed: " in done.stdout and error in done.stdout


@pytest.mark.proves("TEST-REFUSED")
@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("notes/none.txt", "notes/none.txt: no such file"),
        ("notes/odd.pdf", "notes/odd.pdf: named .pdf, but its content is text/plain"),
        ("notes/old.md", "attachment notes/old.md: the worker called denies .md"),
        ("notes/long.txt", "notes/long.txt: at least 101 bytes, allowed are 100"),
    ],
)
def test_a_file_that_cannot_be_attached_is_named_as_the_test_names_it(tmp_path: Path, file: str, error: str) -> None:
    root = keeper(tmp_path, f"model: scripted:script.yaml\ntests:\n  a: {{worker: judge, attach: [{file}]}}\n")
    (root / "notes/odd.pdf").write_text("no PDF")
    (root / "notes/long.txt").write_text("x" * 101)
    policy = "attachment_policy: {denied_suffixes: [.md], max_total_bytes: 100}"
    (root / "workers/judge.worker").write_text(f"---\n{policy}\n---\nx\n")
    done = llm_do("test", root)
    assert done.returncode == 1 and error in done.stdout and "attached1" not in done.stdout


@pytest.mark.proves("TEST-JUNIT")
def test_the_outcome_is_written_as_junit_xml(tmp_path: Path) -> None:
    suite = one_test("") + "  it <fails> & says so:\n    input: plums\n    approvals: all\n    expect: {text: <Lost>}\n"
    done = played(tmp_path, suite, "--junit", str(tmp_path / "report.xml"))
    assert done.returncode == 1
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suites.tag, suites.get("tests"), suites.get("failures")) == ("testsuites", "2", "1")
    (file,) = suites
    assert (file.tag, file.get("name")) == ("testsuite", "tests/keeping.yaml")
    passed, failed = file
    assert passed.get("name") == "it keeps" and len(passed) == 0 and float(passed.get("time") or "") >= 0
    assert failed.get("name") == "it <fails> & says so" and failed.get("classname") == "tests/keeping.yaml"
    assert failed[0].tag == "failure" and failed[0].get("message") == "text: '<Lost>' is not in 'Kept.'"


@pytest.mark.proves("TEST-JUNIT", "TEST-CHOSEN")
def test_names_of_tests_are_shown_escaped_wherever_they_stand(tmp_path: Path) -> None:
    """Also where they pass: JUnit's XML has no place for most control characters, and a terminal obeys them."""
    name = r'"bad\x01\e[31m\uFFFE\nname"'
    shown = r"bad\x01\x1b[31m\ufffe\nname"
    suite = f"model: scripted:script.yaml\ntests:\n  {name}: {{approvals: all}}\n"
    done = played(tmp_path, suite, "--junit", str(tmp_path / "r.xml"))
    assert done.stdout.startswith(f"ok     tests/keeping.yaml: {shown} (")
    (found,) = ElementTree.parse(tmp_path / "r.xml").iter("testcase")
    assert found.get("name") == shown
    assert llm_do("test", tmp_path / "keeper", "--list").stdout == f"tests/keeping.yaml: {shown}\n"


@pytest.mark.proves("TEST-CHOSEN")
def test_tests_are_listed_and_chosen_by_their_titles(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test("") + "  it fails:\n    expect: {text: Lost}\n")
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
        (
            "tests:\n  a: {approvals: [{function: files.write, subject: a/../b}]}\n",
            (),
            "subject 'a/../b': not a pattern",
        ),
        ("tests:\n  a: {expect: {files: {/x: []}}}\n", (), "not a pattern; allowed are names below the root"),
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
    done = played(tmp_path, tests, *options)
    assert done.returncode == (1 if "runs" in said else 2)
    assert done.stdout == "" and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.proves("TEST-USAGE")
def test_a_project_without_tests_says_how_to_write_one(tmp_path: Path) -> None:
    root = keeper(tmp_path, "")
    (root / "tests/keeping.yaml").unlink()
    done = llm_do("test", root)
    assert done.returncode == 2 and "the project has no tests; write tests/NAME.yaml" in done.stderr


@pytest.mark.proves("TEST-OUTSIDE")
def test_a_worker_that_may_write_outside_the_project_is_not_played(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test("", " all\n"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "project.yaml").write_text(f"name: keeper\nsandbox: {{paths: {{notes: 'rw:{outside.as_posix()}'}}}}\n")
    done = llm_do("test", root)
    assert done.returncode == 1 and "lies outside the project" in done.stdout
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no FIFOs there")
@pytest.mark.proves("TEST-COPY")
def test_what_is_neither_file_nor_folder_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = keeper(tmp_path, one_test("", " all\n"))
    os.mkfifo(root / "notes/pipe")
    monkeypatch.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("server.sock")
        done = llm_do("test", root)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.proves("TEST-COPY")
def test_a_project_that_cannot_be_copied_is_one_line_with_the_place(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test("", " all\n"))
    (root / "notes/old.md").chmod(0)
    done = llm_do("test", root)
    said = "llm-do: the project cannot be copied for a test: notes/old.md: Permission denied\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.proves("TEST-COPY")
def test_messages_name_the_project_and_not_its_copy(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test("", " locked\n"))
    done = llm_do("test", root)
    assert f"--project {root}" in done.stdout and "llm-do-test-" not in done.stdout


@pytest.mark.proves("TEST-PRINTS")
def test_what_python_prints_is_shown_with_the_test_that_fails_and_nowhere_else(tmp_path: Path) -> None:
    checks = """import sys

def fine(result):
    print("all is well")

def wrong(result):
    print("seen: \\x1b", result["output"])
    print("and an error", file=sys.stderr)
    assert False, "not so"
"""
    each = "  {name}: {{input: pears, approvals: all, expect: {{python: 'tests/checks.py:{name}'}}}}\n"
    suite = "model: scripted:script.yaml\ntests:\n" + each.format(name="fine") + each.format(name="wrong")
    done = llm_do("test", keeper(tmp_path, suite, **{"tests/checks.py": checks}), "--junit", str(tmp_path / "r.xml"))
    assert (done.returncode, done.stderr) == (1, "")
    passed, failed, why, *printed, _ = done.stdout.splitlines()
    assert passed.startswith("ok ") and failed.startswith("FAILED") and "not so" in why
    assert printed == ["       printed:", r"         seen: \x1b Kept.", "         and an error"]
    (output,) = ElementTree.parse(tmp_path / "r.xml").iter("system-out")
    assert output.text == "seen: \\x1b Kept.\nand an error"


@pytest.mark.proves("TEST-PRINTS")
def test_a_tool_that_raises_is_told_with_the_test_that_fails(tmp_path: Path) -> None:
    tools = "def stamp(text: str) -> str:\n    raise ValueError('no ink')\n"
    root = keeper(tmp_path, one_test("", " all\n"), **{"tools.py": tools})
    done = llm_do("test", root)
    assert (done.returncode, done.stderr, "no ink" in done.stdout) == (0, "", False)
    (root / "tests/keeping.yaml").write_text(one_test("    expect: {text: Lost}\n", " all\n"))
    done = llm_do("test", root)
    assert done.stderr == "" and done.stdout.splitlines()[2:4] == [
        "       printed:",
        "         stamp failed: tools.py:2: ValueError: no ink",
    ]


@pytest.mark.proves("TEST-PRINTS")
def test_of_much_that_is_printed_the_end_is_shown(tmp_path: Path) -> None:
    checks = "def wrong(result):\n    print('x' * 5000)\n    print('the end')\n    raise ValueError('no')\n"
    suite = one_test("    expect: {python: 'tests/checks.py:wrong'}\n", " all\n")
    done = llm_do("test", keeper(tmp_path, suite, **{"tests/checks.py": checks}))
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[3] == "… (1009 bytes before)" and lines[-2] == "the end" and len(done.stdout) < 5000
