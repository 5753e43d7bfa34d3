"""What the `shell` toolset makes of a line: words, rules, folders and programs, seen in what a real program got."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import InvalidFile, ProjectError, UsageError
from llm_do_mcp.project import commandline
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime import lock
from llm_do_mcp.runtime.question import Answer, Question, text
from llm_do_mcp.toolsets import overview
from tests.runtime.workshop import approve
from tests.toolsets import commands
from tests.toolsets.commands import RULES, Project, install, result

pytestmark = pytest.mark.anyio


def words(given: Any) -> Any:
    """What the program `words` was given, or the error."""
    return json.loads(given["stdout"]) if isinstance(given, dict) else given


# ---- words


@pytest.mark.proves("SHELL-WORDS")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("words", []),
        ("  words \t a   b  ", ["a", "b"]),
        ("words 'a b' \"c d\" e'f g'\"h i\"", ["a b", "c d", "ef gh i"]),
        (r"words a\ b \\ \"", ["a b", "\\", '"']),
        (r'words "a\"b\\c\d" ' + r"'a\b'", ['a"b\\c\\d', r"a\b"]),
        ("words '' \"\"", ["", ""]),
        ("words 'two\nlines' ä ☃", ["two\nlines", "ä", "☃"]),
        ("words -- -x # !", ["--", "-x", "#", "!"]),
        ("'wor'ds a", ["a"]),
    ],
)
async def test_a_program_gets_just_the_words(project: Project, line: str, expected: list[str]) -> None:
    assert words(await project.run(line)) == expected


@pytest.mark.proves("SHELL-OPERATORS")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        *[(f"words a {sign} b", f"`{sign[0]}`") for sign in ("|", "||", "&", "&&", ";", "<", ">", ">>", "(", ")")],
        ("words a;b", "`;`"),
        ("words a 2>&1", "`>`"),
        ("words `id`", "a backtick"),
        ('words "`id`"', "a backtick"),
        ("words $(id)", "`$(`"),
        ('words "$(id)"', "`$(`"),
        ("words $HOME", "`$H`"),
        ('words "${HOME}"', "`${`"),
        ("words a\nwords b", "a line break"),
        ("words a\n", "a line break"),
        ("words a\rwords b", "a line break"),
        ("words a\\\nb", "a line break"),
        ("words a\u2028b", "a line break"),
        ("words 'a", "the quote ' is not closed"),
        ('words "a', 'the quote " is not closed'),
        ("words a\0b", "NUL"),
        ("words 'a\0b'", "NUL"),
        ("", "there is no command"),
        ("  ", "there is no command"),
        ("'' a", "there is no command"),
    ],
)
async def test_what_would_need_a_shell_is_refused_before_anybody_is_asked(
    project: Project, line: str, named: str
) -> None:
    defaults = ("", "default: {approval_required: false}", "default: {allowed: false}")
    for rules, more in ((RULES, "cwd: work"), *(("[]", default) for default in defaults)):
        said = await project.run(line, decide=_nobody, rules=rules, more=more)
        assert isinstance(said, str), said
        assert said.startswith("shell: ") and named in said
        assert "\n" not in said


@pytest.mark.proves("SHELL-OPERATORS")
def test_a_character_that_cannot_be_passed_on_is_refused() -> None:
    with pytest.raises(commandline.BadCommand, match="a character that no word can hold"):
        commandline.words("words \ud800")


@pytest.mark.proves("SHELL-OPERATORS")
async def test_quoted_it_is_a_character_and_globs_stay_as_they_are(project: Project) -> None:
    line = r"words '|&;<>()`$HOME$(id)' \| \$HOME "
    assert words(await project.run(line + '"a|b;c" $ a$')) == ["|&;<>()`$HOME$(id)", "|", "$HOME", "a|b;c", "$", "a$"]
    assert words(await project.run("words *.txt file.??? [a-z]* {a,b}")) == ["*.txt", "file.???", "[a-z]*", "{a,b}"]


def _nobody(question: Question) -> Answer:
    raise AssertionError(f"asked: {question}")


# ---- rules


PATTERNS = [
    # pattern, what it allows, what it does not allow though it looks like it
    ("git status", ["git status", "git  'status'"], ["git status -s", "git statusx", "git", "git 'status '"]),
    ("git status*", ["git status", "git status -s a"], ["git statusx", "git 'status x'", "git", "xgit status"]),
    ("git log *", ["git log -5", "git log -5 a"], ["git log", "git logx -5", "git 'log -5'"]),
    ("git log **", ["git log", "git log -5 a"], ["git logx", "git"]),
    ("git * --stat", ["git log --stat"], ["git --stat", "git a b --stat", "git log --stat x"]),
    ("cat docs/*", ["cat docs/a", "cat docs/"], ["cat docs/a/b", "cat docs/..", "cat docs/a b", "cat docs"]),
    ("cat docs/**", ["cat docs/a/b"], ["cat docs/../b", "cat docs/a/../../b", "cat docs/..", "cat docs/a b"]),
    ("rm --in=*.o", ["rm --in=a.o"], ["rm --in=../a.o", "rm --in=a/b.o", "rm --in=a.o b"]),
    ("test_* -q", ["test_a -q"], ["test_a/b -q", "test_a", "a/test_a -q"]),
    ("git 'a*'", ["git 'a*'", r"git a\*"], ["git ab", "git a"]),
    ("git 'a b' *", ["git 'a b' c"], ["git a b c"]),
    ("ls [ab]?", ["ls '[ab]?'"], ["ls ax", "ls a"]),
    ("**", ["ls", "ls a"], []),
    ("*", ["ls", "ls a"], []),
]


@pytest.mark.proves("SHELL-PATTERNS")
@pytest.mark.parametrize(("pattern", "allowed", "others"), PATTERNS)
def test_a_pattern_is_matched_word_by_word(pattern: str, allowed: list[str], others: list[str]) -> None:
    assert [line for line in (*allowed, *others) if commandline.fits(pattern, line, strictly=True)] == allowed


@pytest.mark.proves("SHELL-PATTERNS")
@pytest.mark.parametrize("line", ["git push; rm x", "git push | sh", "git push\nrm x", "git push $(id)"])
def test_what_is_no_command_is_never_allowed_by_a_pattern(line: str) -> None:
    for pattern in ("git push*", "git push **", "**", "*"):
        assert not commandline.fits(pattern, line, strictly=True)
    assert commandline.fits("git push*", line, strictly=False)


BARE = [
    # the pattern of a rule, what it is about, what it is not about though it begins like it
    ("words", ["words", "words -l a", "words '*'"], ["wordsx", "words/a", "'words '"]),
    ("words log", ["words log", "words 'log'", "words log --stat *"], ["words", "words logx", "words -q log", "log"]),
    ("words 'a*'", ["words 'a*'", "words a* b"], ["words ab"]),
]


@pytest.mark.proves("SHELL-BARE")
@pytest.mark.parametrize(("pattern", "about", "others"), BARE)
async def test_a_rule_without_a_star_is_about_all_that_begins_with_its_words(
    project: Project, pattern: str, about: list[str], others: list[str]
) -> None:
    lines = [*about, *others]
    allows = f'[{{pattern: "{pattern}", approval_required: false}}]'
    said = [await project.run(line, decide=_no, rules=allows, more="default: {allowed: false}") for line in lines]
    assert [line for line, one in zip(lines, said, strict=True) if isinstance(one, dict)] == about
    refuses = f'[{{pattern: "{pattern}", allowed: false}}]'
    said = [await project.run(line, rules=refuses, more="default: {approval_required: false}") for line in about]
    assert all(isinstance(one, str) and "rule 1" in one for one in said), said


@pytest.mark.proves("SHELL-BARE")
async def test_what_follows_is_confined_and_parsed_as_ever(project: Project) -> None:
    rules = "[{pattern: words, approval_required: false, sandbox_paths: [work]}]"
    for line, named in (("words ../in/a", "leads out"), ("words /etc/passwd", "leads out"), ("words a; words", "`;`")):
        said = await project.run(line, decide=_nobody, rules=rules)
        assert isinstance(said, str) and named in said, said


@pytest.mark.proves("SHELL-BARE")
@pytest.mark.parametrize(("line", "runs"), [("words push", True), ("words push --force", False)])
async def test_an_approval_of_a_command_is_of_that_command(project: Project, line: str, runs: bool) -> None:
    keys = "approvals: [{function: shell, subject: 'words push', decision: allow}]"
    said = await project.run(line, decide=_no, keys=keys, rules="[]")
    assert isinstance(said, dict) == runs, said


def _no(question: Question) -> Answer:
    return Answer("deny", by="client")


DOUBT = """
- {pattern: "words push*"}
- {pattern: "words rm*", allowed: false}
- {pattern: "words **", approval_required: false}
"""


@pytest.mark.proves("SHELL-PATTERNS", "SHELL-FIRST-MATCH")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("words x", "run"),
        ("words push", "ask"),
        ("words push now", "ask"),
        ("words pushing", "ask"),  # as text it is like a rule that asks,
        ("words rm x", "refuse"),
        ("words rmdir x", "refuse"),  # or refuses: then that is what was meant
        ("words RMDIR x", "refuse"),
        ("words now push", "run"),
    ],
)
async def test_what_is_in_doubt_is_read_to_the_stricter_side(project: Project, line: str, expected: str) -> None:
    asked: list[Question] = []

    def decide(question: Question) -> Answer:
        asked.append(question)
        return approve(question)

    said = await project.run(line, decide=decide, rules=DOUBT)
    found = "refuse" if isinstance(said, str) else "ask" if asked else "run"
    assert found == expected, said
    if expected == "refuse":
        assert "refused by toolsets.shell of worker main, rule 2 (`words rm*`)" in said


ORDER = [
    # rules, default, what "words a b" comes to
    ('[{pattern: "words a*", approval_required: false}, {pattern: "words **", allowed: false}]', "", "run"),
    ('[{pattern: "words **", allowed: false}, {pattern: "words a*", approval_required: false}]', "", "refuse"),
    ('[{pattern: "words a*"}, {pattern: "words **", approval_required: false}]', "", "ask"),
    ('[{pattern: "words a*", approval_required: false}]', "default: {allowed: false}", "run"),
    ('[{pattern: "words x*", approval_required: false}]', "default: {allowed: false}", "refuse"),
    ('[{pattern: "words x*", allowed: false}]', "default: {approval_required: false}", "run"),
    ('[{pattern: "words x*", approval_required: false}]', "default: {}", "ask"),
    ('[{pattern: "words x*", approval_required: false}]', "", "ask"),
    ("[]", "", "ask"),
]


@pytest.mark.proves("SHELL-FIRST-MATCH")
@pytest.mark.parametrize(("rules", "default", "expected"), ORDER)
async def test_the_first_rule_that_matches_decides(project: Project, rules: str, default: str, expected: str) -> None:
    asked: list[Question] = []

    def decide(question: Question) -> Answer:
        asked.append(question)
        return Answer("deny", by="client")

    said = await project.run("words a b", decide=decide, rules=rules, more=default)
    assert (isinstance(said, dict), bool(asked)) == (expected == "run", expected == "ask"), said


@pytest.mark.proves("SHELL-FIRST-MATCH")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("approvals: [{function: shell, subject: 'words rm*', decision: deny}]", "refuse"),
        ("approvals: [{function: shell, subject: 'words r*', decision: deny}]", "refuse"),
        ("approvals: [{function: shell, subject: 'words rm', decision: deny}]", "refuse"),
        ("approvals: [{function: shell, subject: 'WORDS', decision: deny}]", "refuse"),
        ("approvals: [{function: shell, subject: 'words r', decision: deny}]", "run"),
        ("approvals: [{function: shell, subject: 'rm', decision: deny}]", "run"),
        ("approvals: [{function: '*', decision: deny}]", "refuse"),
        ("tool_rules: {shell: {allowed: false}}", "refuse"),
        ("tool_rules: {shell: {approval_required: true}}", "refuse"),
        ("tool_rules: {shell: {approval_required: false}}", "run"),
    ],
)
async def test_what_another_source_refuses_stays_refused(project: Project, keys: str, expected: str) -> None:
    said = await project.run("words rm x", keys=keys)
    assert isinstance(said, dict) == (expected == "run"), said


@pytest.mark.proves("SHELL-FIRST-MATCH")
async def test_another_source_allows_by_words_too(project: Project) -> None:
    keys = "approvals: [{function: shell, subject: 'words rm*', decision: allow}]"
    assert isinstance(await project.run("words rm x", keys=keys, rules="[]"), dict)
    assert isinstance(await project.run("words rmdir x", keys=keys, rules="[]"), str)


@pytest.mark.proves("SHELL-SETTINGS")
@pytest.mark.parametrize(
    ("rules", "more", "message"),
    [
        ("- {pattern: 'ls | wc'}", "", "no command can match 'ls | wc': no shell runs this, so `|`"),
        ("- {pattern: 'ls $HOME'}", "", "`$H` would not be replaced"),
        ("- {pattern: ''}", "", "there is no command"),
        ("- {pattern: 'a ** b'}", "", "`**` stands for the rest, so it can only be the last word"),
        ("- {pattern: ls, sandbox_paths: [nowhere]}", "", "there is no sandbox 'nowhere'; there are: in, work"),
        ("- {pattern: ls, sandbox_paths: [in]}", "cwd: work", "run in work, which is not in its sandbox_paths"),
        ("[]", "cwd: nowhere", "there is no sandbox 'nowhere'"),
        ("[]", "cwd: work/../in", "`..` is not allowed"),
        ("[]", "cwd: ./work", "there is no sandbox"),
    ],
)
async def test_what_cannot_be_meant_is_an_error_of_the_project(
    project: Project, rules: str, more: str, message: str
) -> None:
    shop = project.workshop(rules=rules, more=more)
    async with shop:
        with pytest.raises(ProjectError, match=r"main\.worker") as raised:
            await shop.bench.declarations(shop.bench.project.worker("main"))
    told = [str(each) for each in (raised.value.problems if isinstance(raised.value, InvalidFile) else [raised.value])]
    assert any(message in each for each in told), told


LISTED = """
- {pattern: "git status*", approval_required: false}
- {pattern: "rm *", allowed: false}
"""


@pytest.mark.proves("SHELL-POLICY")
@pytest.mark.parametrize(
    ("default", "decision", "exceptions"),
    [
        ("", "ask", {("git status*", "allow"), ("rm *", "deny")}),
        ("default: {allowed: false}", "deny", {("git status*", "allow"), ("rm *", "deny")}),
        ("default: {approval_required: false}", "allow", {("rm *", "deny")}),
    ],
)
async def test_a_listing_shows_the_default_and_the_rules_that_say_otherwise(
    project: Project, default: str, decision: str, exceptions: set[tuple[str, str]]
) -> None:
    async with project.workshop(rules=LISTED, more=default) as shop:
        worker = shop.bench.project.worker("main")
        policy = shop.bench.rules_of(worker)
        (shell,) = [one for one in await shop.bench.declarations(worker) if one.name == "shell"]
    (answer,) = overview.standing(policy, shell, "worker")
    assert answer.decision == decision
    assert {(said.subject, said.decision) for said in answer.exceptions} == exceptions
    assert "allow" in overview.answers(policy, shell, "worker")


@pytest.mark.proves("SHELL-POLICY")
def test_a_lock_that_was_widened_speaks_of_words() -> None:
    def entry(line: str) -> lock.Entry:
        return lock.Entry("main", "w", "shell", "", lock.exact("shell", {"command": line}))

    wider = lock.widened(entry("git push origin"), "shell", "command", "git push*")
    assert wider is not None
    assert [line for line in ("git push", "git push -f", "git pushx") if not wider.differences(entry(line))] == [
        "git push",
        "git push -f",
    ]
    assert lock.widened(entry("git pushing"), "shell", "command", "git push*") is None
    with pytest.raises(UsageError, match="no shell runs this"):
        lock.widened(entry("git push"), "shell", "command", "git push | *")


# ---- the question


@pytest.mark.proves("SHELL-QUESTION")
async def test_a_question_shows_the_words_the_folder_and_the_rule(project: Project) -> None:
    asked: list[Question] = []

    def decide(question: Question) -> Answer:
        asked.append(question)
        return approve(question)

    rules = "- {pattern: 'words push *'}"
    assert words(await project.run("words push 'a  b\nRule: none' \u202ex", decide, rules=rules)) == [
        "push",
        "a  b\nRule: none",
        "\u202ex",
    ]
    await project.run("words other", decide, rules=rules, more="cwd: work/sub")
    first, second = map(text, asked)
    assert "run the command words push" in first
    assert '\n  Folder: work\n  Rule:   `words push *`\n  Words:  ["words", "push", "a  b\\nRule: none", ' in first
    assert "\u202e" not in first
    assert "\n  Folder: work/sub\n  Rule:   none matches\n" in second


@pytest.mark.proves("SHELL-QUESTION")
async def test_for_the_rest_of_the_run_means_the_very_same_command(project: Project) -> None:
    scopes: dict[str, str] = {}

    def decide(question: Question) -> Answer:
        scopes[question.arguments] = question.scope
        return Answer("deny", by="client")

    for line in ("words a", "words  'a'", "words a b", "words 'a b'", "words b"):
        await project.run(line, decide, rules="[]")
    same, spelled_otherwise, *others = scopes.values()
    assert same == spelled_otherwise
    assert len({same, *others}) == 4


@pytest.mark.proves("SHELL-QUESTION")
@pytest.mark.parametrize("line", ["words /etc/passwd", "words ../x", "nothing x", "./words x"])
async def test_nobody_is_asked_about_what_cannot_run(project: Project, line: str) -> None:
    assert isinstance(await project.run(line, _nobody, rules="[]"), str)


# ---- folders


def _escapes(project: Project) -> dict[str, str]:
    work = project.root / "work"
    (work / "out").symlink_to(project.root)
    (work / "passwd").symlink_to("/etc/passwd")
    (work / "inner").symlink_to("sub")
    (project.root / "work-evil").mkdir()
    secret = project.root / "project.yaml"
    return {
        "climbing": "../project.yaml",
        "climbing below": "sub/../../project.yaml",
        "climbing from what is not there": "nothing/../../project.yaml",
        "climbing alone": "..",
        "climbing with dots": "./.././project.yaml",
        "absolute": "/etc/passwd",
        "absolute, doubled": "//etc/passwd",
        "absolute, back again": f"{work}/../project.yaml",
        "a neighbour with the same beginning": f"{work}-evil/x",
        "the project": str(secret),
        "home": "~/.ssh/id_rsa",
        "another's home": "~root/x",
        "home alone": "~",
        "a link to a file": "passwd",
        "a link to a folder": "out/project.yaml",
        "a link on the way": "sub/../out/project.yaml",
        "an option's value": "--file=/etc/passwd",
        "an option's climbing value": "--file=../project.yaml",
        "an option's link": "--file=passwd",
        "behind an option's letter": "-f/etc/passwd",
        "behind an option's letters": "-xzf../project.yaml",
        "behind very many letters": "-" + "v" * 300 + "f/etc/passwd",
        "a link behind a letter": "-fpasswd",
        "climbing behind a letter": "-C..",
        "a file with a prefix": "@/etc/passwd",
        "a link with a prefix": "@passwd",
        "a part of a list": "a,b,/etc/passwd",
        "a host's": "host:/etc/passwd",
        "a revision's": "HEAD:../project.yaml",
        "a URL of a file": "file:///etc/passwd",
        "a URL that climbs": "https://x/../../../project.yaml",
        "no URL": "https:///etc/passwd",
        "by an alias": "work/../project.yaml",
        "by an alias, a link": "work/out/project.yaml",
        "by an alias in an option": "--file=work/../project.yaml",
        "the records": ".llm-do/x",
        "the records by an alias": "work/.llm-do/x",
        "the records, spelled otherwise": "sub/../.LLM-DO/x",
        "parts without end": "/".join(["a:b"] * 900),
    }


@pytest.mark.proves("SHELL-PATHS", "A001", "A002", "A005", "A006", "A007")
async def test_no_word_leads_out_of_the_folders(project: Project) -> None:
    async with project.workshop() as shop:
        for name, path in _escapes(project).items():
            for line in (f"words '{path}'", f"words -a -- '{path}' b"):
                said = await result(shop, line, _nobody)
                assert isinstance(said, str), (name, said)
                assert "\n" not in said
                assert len(said) < 400
                assert str(project.root) not in said.replace(path, "")


@pytest.mark.proves("SHELL-PATHS")
async def test_what_stays_inside_passes_and_so_does_what_is_no_path(project: Project) -> None:
    _escapes(project)
    passing = [
        "file.txt",
        "./file.txt",
        "sub/../file.txt",
        "sub/new/er.txt",
        "inner/x",
        str(project.root / "work" / "file.txt"),
        str(project.root / "in" / "notes.md"),
        "../work/file.txt",
        "../in/notes.md",
        "/dev/null",
        "--file=file.txt",
        "-ffile.txt",
        "-",
        "--",
        "-5",
        "main..dev",
        "HEAD~1..HEAD",
        "@~1",
        "a=b",
        "..\\x",
        "....//x",
        "%2e%2e/x",
        "\uff0e\uff0e/x",
        "https://example.org:8080/a/b?c=d",
        "--url=https://example.org/a",
        "s/a/b/",
        "x" * 5000,
        ":" * 5000,
        "",
    ]
    line = commandline.joined(["words", *passing])
    assert words(await project.run(line, _nobody)) == passing


@pytest.mark.proves("SHELL-PATHS")
async def test_a_rule_confines_to_its_own_folders(project: Project) -> None:
    rules = "- {pattern: 'words **', approval_required: false, sandbox_paths: [work]}"
    assert "leads out of what this command may touch: work/" in await project.run("words in/notes.md", rules=rules)
    rules = "- {pattern: 'words **', approval_required: false, sandbox_paths: [work, in]}"
    assert words(await project.run("words in/notes.md", rules=rules)) == ["../in/notes.md"]


@pytest.mark.proves("SHELL-PATHS")
@pytest.mark.parametrize(
    "policy",
    [
        "approvals: [{function: files.read, subject: 'in/**', decision: deny}]",
        "approvals: [{function: files.read, subject: 'in/secret*', decision: ask}]",
    ],
)
async def test_folders_that_cannot_be_read_without_asking_have_to_be_named(project: Project, policy: str) -> None:
    assert isinstance(await project.run("words in/notes.md", keys=policy), str)
    named = "- {pattern: 'words **', approval_required: false, sandbox_paths: [work, in]}"
    assert isinstance(await project.run("words in/notes.md", keys=policy, rules=named), dict)


@pytest.mark.proves("SHELL-PATHS", "A016")
async def test_a_folder_that_was_replaced_is_not_used(project: Project) -> None:
    async with project.workshop() as shop:
        assert isinstance(await result(shop, "words a", _nobody), dict)
        (project.root / "work").rename(project.root / "moved")
        (project.root / "work").mkdir()
        assert "another folder took its place" in await result(shop, "words a", _nobody)
        (project.root / "work").rmdir()
        (project.root / "work").symlink_to("in")
        assert isinstance(await result(shop, "words a", _nobody), str)


@pytest.mark.proves("SHELL-ALIAS")
@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("in/notes.md", "../in/notes.md"),
        ("work/file.txt", "./file.txt"),
        ("work/-rf", "./-rf"),
        ("work/sub/", "./sub/"),
        ("in/", "../in"),
        ("work/", "./."),
        ("--file=in/notes.md", "--file=../in/notes.md"),
        ("in", "in"),
        ("nowhere/x", "nowhere/x"),
        ("./in/x", "./in/x"),
    ],
)
async def test_a_word_may_begin_with_an_alias(project: Project, word: str, expected: str) -> None:
    assert words(await project.run(f"words {word}")) == [expected]


@pytest.mark.proves("SHELL-ALIAS")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls in", ["../in"]),
        ("ls -la in work", ["-la", "../in", "./."]),
        ("ls nowhere", ["nowhere"]),
        ("ls --ignore=in", ["--ignore=in"]),
        ("find in -name work", ["../in", "-name", "work"]),
        ("words in", ["in"]),
    ],
)
async def test_an_alias_alone_is_the_folder_where_the_program_takes_paths(
    project: Project, programs: Path, line: str, expected: list[str]
) -> None:
    install(programs, dict.fromkeys(("ls", "find"), commands.PROGRAMS["words"]))
    rules = "- {pattern: '**', approval_required: false}"
    assert words(await project.run(line, rules=rules)) == expected
    confined = "- {pattern: '**', approval_required: false, sandbox_paths: [work]}"
    if "../in" in expected:
        assert "leads out of what this command may touch: work/" in await project.run(line, rules=confined)


FOLDERS = [
    # sandbox_paths, cwd, roots, where
    ("", "", commands.ROOTS, "in"),
    ("sandbox_paths: [work, in]", "", commands.ROOTS, "work"),
    ("", "cwd: work", commands.ROOTS, "work"),
    ("", "cwd: work/sub", commands.ROOTS, "work/sub"),
    ("", "cwd: work:sub", commands.ROOTS, "work/sub"),
    ("", "", "{made: {root: ./made, mode: rw}}", "made"),
    ("", "", "{in: {root: ./in, mode: ro, read_approval: true}, work: 'rw:./work'}", "work"),
]


@pytest.mark.proves("SHELL-FOLDER")
@pytest.mark.parametrize(("named", "more", "roots", "where"), FOLDERS)
async def test_a_command_runs_in_the_folder_that_is_meant(
    project: Project, named: str, more: str, roots: str, where: str
) -> None:
    rules = f"- {{pattern: 'surroundings', approval_required: false, {named}}}"
    inside = json.loads((await project.run("surroundings", rules=rules, more=more, roots=roots))["stdout"])
    assert inside["folder"] == str(project.root / where)


@pytest.mark.proves("SHELL-FOLDER")
async def test_without_folders_it_runs_in_an_empty_one_of_its_own(project: Project, temporary: Path) -> None:
    inside = json.loads((await project.run("surroundings", more="", roots="{}"))["stdout"])
    assert inside["files"] == []
    assert Path(inside["folder"]).parent.parent == temporary
    assert words(await project.run("words x sub/y", more="", roots="{}")) == ["x", "sub/y"]
    for path in ("/etc/passwd", "../x", "../home/x"):
        assert "its own empty folder" in await project.run(f"words {path}", more="", roots="{}")


@pytest.mark.proves("SHELL-FOLDER")
async def test_a_working_folder_that_is_missing_is_named(project: Project) -> None:
    said = await project.run("words a", more="cwd: work/nothing")
    assert said == "shell: its working folder work/nothing: no such file or folder"


# ---- programs and surroundings


@pytest.mark.proves("SHELL-PROGRAMS")
async def test_a_program_is_a_name_on_the_path_and_never_lies_in_a_sandbox(
    project: Project, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = project.root / "work"
    install(work, {"words": "print('from the sandbox')", "planted": "print('from the sandbox')"})
    (programs / "linked").symlink_to(work / "planted")
    (programs / "plain").write_text("no program")
    (programs / "folder").mkdir()
    (work.parent / "linkedfolder").symlink_to(work)
    monkeypatch.setenv("PATH", f"{work}:.::{work.parent / 'linkedfolder'}:{os.environ['PATH']}")
    rules = "- {pattern: '**', approval_required: false}"
    async with project.workshop(rules=rules) as shop:
        assert words(await result(shop, "words x")) == ["x"]
        for line in ("planted", "linked", "plain", "folder", "nothing", "words2", "A=b words"):
            assert "there is no program" in await result(shop, line)
        for line in ("./words", "work/words", str(work / "words"), "/bin/ls", "../bin/words"):
            assert "is a path; a program is named" in await result(shop, line)
        seen = json.loads((await result(shop, "surroundings"))["stdout"])["environment"]["PATH"]
        assert seen == f"{programs}:/usr/bin:/bin"


@pytest.mark.proves("SHELL-ENVIRONMENT")
@pytest.mark.parametrize("language", ["de_DE.UTF-8", "C", None])
async def test_a_command_sees_a_bare_environment(
    project: Project, programs: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, language: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("GIT_DIR", "/somewhere")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.delenv("LANG", raising=False)
    if language is not None:
        monkeypatch.setenv("LANG", language)
    (programs / "env").symlink_to("/usr/bin/env")
    said = await project.run("env", rules="- {pattern: env, approval_required: false}")
    seen = dict(line.split("=", 1) for line in said["stdout"].splitlines())
    home = seen.pop("HOME")
    assert seen == {"PATH": f"{programs}:/usr/bin:/bin", "LANG": language or "C.UTF-8", "TMPDIR": home}
    assert Path(home).parent.parent == temporary


@pytest.mark.proves("SHELL-ENVIRONMENT")
async def test_a_command_has_no_input_no_terminal_an_empty_home_and_no_file_of_ours(project: Project) -> None:
    inside = json.loads((await project.run("surroundings"))["stdout"])
    assert (inside["input"], inside["terminal"], inside["home"], inside["open"]) == ("", False, [], [])


@pytest.mark.proves("SHELL-SETTINGS")
async def test_the_description_says_what_to_expect(project: Project) -> None:
    project.workshop(rules=DOUBT, more="default: {allowed: false}")
    async with project.workshop(rules=DOUBT, more="cwd: work") as shop:
        worker = shop.bench.project.worker("main")
        (shell,) = [one for one in await shop.bench.declarations(worker) if one.name == "shell"]
    for part in ("No shell", "globs are not expanded", "runs in work/", "in/, work/", "not isolated", "words push*"):
        assert part in shell.description
    assert (shell.risk, shell.idempotent) == ("destructive", False)
    assert load_project(project.root).worker("main").toolsets.shell is not None


@pytest.mark.proves("SHELL-PROTECTED")
@pytest.mark.parametrize(
    "line",
    [
        "words approvals.lock",
        "words main.worker",
        "words all/main.worker",
        "words ./project.yaml",
        "words new.worker",
        "words --output=approvals.lock",
        "words -oapprovals.lock",
        "words .git",
        "words .git/config",
        "words templates/x.md",
        "words APPROVALS.LOCK",
        "words work/link",
    ],
)
async def test_no_word_names_a_protected_file(project: Project, line: str) -> None:
    (project.root / "work/link").symlink_to("../main.worker")
    told = await project.run(line, roots="{all: {root: ., mode: rw}}", more="cwd: all")
    assert isinstance(told, str) and "names a protected file: commands may not change" in told, told


@pytest.mark.proves("SHELL-PROTECTED")
async def test_what_is_not_protected_or_only_read_may_be_named(project: Project) -> None:
    rules = RULES + '\n- {pattern: "cat **", approval_required: false}'
    options = {"rules": rules, "roots": "{all: {root: ., mode: rw}}", "more": "cwd: all"}
    assert words(await project.run("words work/file.txt worker", **options)) == ["work/file.txt", "worker"]
    assert "toolsets:" in (await project.run("cat main.worker", **options))["stdout"]
    reading = {"roots": "{all: {root: ., mode: ro}}", "more": "cwd: all"}
    assert words(await project.run("words main.worker", **reading)) == ["main.worker"], "a folder that is not written"
