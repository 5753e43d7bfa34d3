"""What keeps secrets out of sight: which texts it changes, and that they are changed wherever a person would look."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.models.address import HEADERS
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.question import Question, text
from llm_do_mcp.runtime.redact import NOTHING, Redactor, redactor
from llm_do_mcp.runtime.trace import trace
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker
from tests.runtime.driving import asked, ended
from tests.runtime.workshop import MAIN, Workshop, approve, calling

SECRET = "hunter2-and-more"
"""A secret of a project that has a pattern for it."""


@pytest.mark.proves("REDACT-WHAT")
@pytest.mark.parametrize(
    ("name", "value", "given", "shown"),
    [
        ("API_KEY", "abcd-1234-efgh", "it is abcd-1234-efgh.", "it is [redacted API_KEY]."),
        ("github_token", "abcd-1234-efgh", "xabcd-1234-efghx", "x[redacted github_token]x"),
        ("DB_PASSWORD", 'quo"ted\\pass', json.dumps({"p": 'quo"ted\\pass'}), '{"p": "[redacted DB_PASSWORD]"}'),
        ("SOME_SECRET", "geheimnis-ü", json.dumps("geheimnis-ü"), '"[redacted SOME_SECRET]"'),
        ("SOME_SECRET", "a b/c+d=efgh", "?q=a%20b%2Fc%2Bd%3Defgh&x", "?q=[redacted SOME_SECRET]&x"),
        ("PEM_KEY", "-----BEGIN-----\nMIIabcdefgh\n", "line MIIabcdefgh only", "line [redacted PEM_KEY] only"),
        ("SHORT_KEY", "admin", "admin, administrator", "[redacted SHORT_KEY], administrator"),
        ("TINY_KEY", "us", "just us", "just us"),
        ("EMPTY_KEY", "", "nothing", "nothing"),
        ("PATH_TO_X", "abcd-1234-efgh", "abcd-1234-efgh", "abcd-1234-efgh"),
        (HEADERS, "X-Gate: abcd-1234\nX-No: 1", "X-Gate: abcd-1234, 1", f"X-Gate: [redacted {HEADERS}], 1"),
        (HEADERS, "Authorization: Bearer abcd-1234", "abcd-1234 of a bearer", f"[redacted {HEADERS}] of a bearer"),
        (HEADERS, "X-Title: research assistant", "a research assistant", "a research assistant"),
        (HEADERS, "X-Auth: correcthorse", "correcthorse", f"[redacted {HEADERS}]"),
        ("SOME_URL", "https://me:pw%2F9@host/x", "pw/9 and pw%2F9", "[redacted SOME_URL] and [redacted SOME_URL]"),
        ("SOME_URL", "http://me:secretpw@host", "Basic bWU6c2VjcmV0cHc=", "Basic [redacted SOME_URL]"),
        ("SOME_URL", "ssh://somebody@host", "somebody", "somebody"),
        ("SOME_URLS", "x://a:one-pass@h,x://b:two-pass@h", "one-pass two-pass", " ".join(["[redacted SOME_URLS]"] * 2)),
    ],
)
def test_values_of_secret_variables_are_replaced_in_every_spelling(
    name: str, value: str, given: str, shown: str
) -> None:
    assert redactor({name: value}).text(given) == shown


@pytest.mark.proves("REDACT-WHAT")
def test_of_two_secrets_the_longer_goes_as_a_whole() -> None:
    redact = Redactor({"A": "abcdefgh", "B": "abcdefgh-and-on"})
    assert redact.text("abcdefgh-and-on abcdefgh") == "[redacted B] [redacted A]"


@pytest.mark.proves("REDACT-WHAT")
def test_data_is_redacted_in_names_and_values_and_keeps_its_shape() -> None:
    redact = Redactor({"K": "abcd-1234"}, (re.compile(r"\d{4}-\d{4}"),))
    given = {"abcd-1234": [1, None, True, {"x": "abcd-1234 and 1111-2222"}], "n": 2.5}
    assert redact.data(given) == {"[redacted K]": [1, None, True, {"x": "[redacted K] and [redacted]"}], "n": 2.5}
    assert NOTHING.data(given) == given


@pytest.mark.proves("REDACT-RECORDED")
def test_what_data_holds_is_known_elsewhere_in_every_spelling_and_nothing_else_is() -> None:
    redact = redactor({"A_KEY": "abcd-1234", "B_KEY": "not-in-there", "C_KEY": 'quo"ted'})
    held = redact.held({"abcd-1234": [None, 1, {"deep": json.dumps('say quo"ted')}]})
    assert held == {"abcd-1234": "A_KEY", 'quo"ted': "C_KEY"}
    elsewhere = Redactor({"C_KEY": "other-value"}, (re.compile("x{3}"),)).knowing(held)
    assert elsewhere.text('abcd-1234 quo"ted other-value not-in-there xxx') == (
        "[redacted A_KEY] [redacted C_KEY] [redacted C_KEY] not-in-there [redacted]"
    )
    assert NOTHING.held({"x": "abcd-1234"}) == {} and NOTHING.knowing({}) is NOTHING


@pytest.mark.proves("REDACT-WHAT")
def test_the_manifest_names_patterns_and_what_is_handed_to_its_python(tmp_path: Path) -> None:
    (tmp_path / "main.worker").write_text(worker("description: x"))
    address = "http://me:of-project@host"
    manifest = f"redact: ['card \\d+']\nbase_url: {address}\ntools: {{env: [PLAIN_NAME]}}\n"
    (tmp_path / "project.yaml").write_text(manifest)
    redact = redactor({"PLAIN_NAME": "plain-value", "OTHER": "other-value"}, load_project(tmp_path).manifest)
    assert redact.text("card 123, plain-value, other-value") == "[redacted], [redacted PLAIN_NAME], other-value"
    assert redact.text(address) == "http://me:[redacted base_url]@host"


@pytest.mark.proves("REDACT-PATTERNS")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "is no regular expression: "),
        ("x*", "matches the empty text; it must match"),
        ("(a+)+$", "could be tried in so many ways that it never ends; write no repetition"),
        (r"(?:\w+\s?)+x", "so many ways"),
        ("(a|a)*b", "so many ways"),
        ("((a?)){30}b", "so many ways"),
        ("(a{1,30}){1,30}b", "so many ways"),
        ("(?:x(?:y+)z*)+", "so many ways"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error(tmp_path: Path, pattern: str, words: str) -> None:
    (tmp_path / "main.worker").write_text(worker("description: x"))
    (tmp_path / "project.yaml").write_text(f"redact: ['{pattern}']\n")
    with pytest.raises(ProjectError, match=rf"^project\.yaml:1:10: .*{re.escape(words)}"):
        load_project(tmp_path)


@pytest.mark.proves("REDACT-PATTERNS")
@pytest.mark.parametrize(
    "pattern",
    [
        "sk-[a-z]+", r"(?:\d{4}[ -]?){4}", r"(?:key|token)=\S+", r"(?<=key=)\w+", r"[()|*]+x", r"\(a+\)+", "(a+)?b",
        r"(?i:bearer) [\w.-]+", "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", "(?P<a>x+)y", "x{", "x{a}", "(ab){3,9}", "(ab)+",
    ],
)  # fmt: skip
def test_a_pattern_that_ends_is_taken(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "main.worker").write_text(worker("description: x"))
    (tmp_path / "project.yaml").write_text(f"redact: ['{pattern}']\n")
    assert load_project(tmp_path).manifest.redact == (pattern,)


@pytest.mark.proves("A079", "REDACT-LOG")
def test_a_line_of_the_log_and_its_traceback_are_redacted() -> None:
    redact = Redactor({"K": SECRET})
    handler = logging.Handler()
    handler.addFilter(redact.filter)
    lines: list[str] = []
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    log = logging.getLogger("tests.redact")
    log.propagate = False
    log.addHandler(handler)
    try:
        raise ValueError(f"bad {SECRET}")
    except ValueError:
        log.exception("met %s", SECRET)
    finally:
        log.removeHandler(handler)
    (line,) = lines
    assert SECRET not in line
    assert line.startswith("met [redacted K]") and "ValueError: bad [redacted K]" in line


# ---- in a run

LEAK = f"""
from llm_do_mcp import tool, ToolContext


@tool(risk="read")
def leak(context: ToolContext) -> str:
    "Says what it must not."
    context.log("it is {SECRET}")
    raise ValueError("bad {SECRET}")


@tool
def send(text: str) -> str:
    "Sends."
    return "sent " + text
"""
FILES = {
    "main.worker": worker(MAIN.replace("toolsets:", "toolsets:\n  custom: all")),
    "tools.py": LEAK,
    "in/key.md": f"the key is {SECRET}\n",
}


def shop(root: Path) -> Workshop:
    made = Workshop(root, FILES)
    made.engine.redact = Redactor({"SHOP_KEY": SECRET})
    return made


@pytest.mark.anyio
@pytest.mark.proves("A079", "REDACT-SHOWN")
async def test_a_secret_in_a_file_reaches_the_model_and_files_and_no_person(tmp_path: Path) -> None:
    padding = "x" * 590  # the arguments are cut right behind the secret's first characters
    calls = calling(
        ("read_file", {"path": "in/key.md"}),
        ("leak", {}),
        ("write_file", {"path": f"out/{SECRET}.md", "content": f"key {SECRET}"}),
        ("send", {"text": padding + SECRET}),
    )
    shown: list[str] = []
    async with shop(tmp_path) as made:
        run = await made.start(calls)
        with made.engine.listening(run, shown.append):
            questions: list[Question] = []
            while len(questions) < 2:
                for question in await asked(made.engine, run, seen=[question.key for question in questions]):
                    questions.append(question)
            for question in questions:
                await made.engine.answer(run, question.key, approve(question))
            done = await ended(made.engine, run)
        events, row = await made.engine.store.events(run), await made.engine.store.get(run)
    results = json.loads(done.output)["results"]
    assert results[0]["content"] == f"the key is {SECRET}\n"
    assert SECRET in results[1]["content"]
    assert results[3]["content"] == f"sent {padding}{SECRET}"
    assert (tmp_path / "out" / f"{SECRET}.md").read_text() == f"key {SECRET}"
    shown += [text(question) for question in questions]
    shown.append(json.dumps(done.account))
    assert row is not None
    shown.append(json.dumps(trace(row, events, driven=False, now=0, redact=made.engine.redact).to_json()))
    for line in shown:
        assert SECRET not in line
        assert SECRET[:7] not in line
    told = "\n".join(shown)
    assert "leak: it is [redacted SHOP_KEY]" in told
    assert "create the file out/[redacted SHOP_KEY].md" in told
    assert "bad [redacted SHOP_KEY]" in told


@pytest.mark.anyio
@pytest.mark.proves("A079", "REDACT-RECORDED")
async def test_a_run_that_goes_on_in_another_environment_shows_no_secret_of_the_one_before(tmp_path: Path) -> None:
    async with shop(tmp_path) as made:
        run = await made.start(calling(("send", {"text": SECRET}), ("leak", {})))
        await asked(made.engine, run)
    shown: list[str] = []
    async with Workshop(tmp_path, FILES) as after:  # it knows of no secret at all
        await after.engine.resume(run)
        with after.engine.listening(run, shown.append):
            (question,) = await asked(after.engine, run)
            shown.append(text(question))
            await after.engine.answer(run, question.key, approve(question))
            done = await ended(after.engine, run)
        found = await after.engine.trace(run)
        assert await after.engine.store.secrets(run) == {SECRET: "SHOP_KEY"}
    async with Workshop(tmp_path, FILES) as later:
        accounts = [done.account, (await later.engine.outcome(run)).account]
    assert found is not None
    shown += [json.dumps(found.to_json()), *map(json.dumps, accounts)]
    told = "\n".join(shown)
    assert SECRET not in told and "[redacted SHOP_KEY]" in told


@pytest.mark.anyio
@pytest.mark.proves("A079", "REDACT-SHOWN")
async def test_a_secret_in_the_error_that_ends_a_run_is_not_shown(tmp_path: Path) -> None:
    async with shop(tmp_path) as made:
        done = await made.run(calling(*[("read_file", {"path": f"in/{SECRET}"})] * 3))
        kept = await made.engine.outcome(done.run)
    assert done.status == "failed"
    assert "[redacted SHOP_KEY]" in done.error
    assert SECRET not in done.error and kept.error == done.error


@pytest.mark.anyio
@pytest.mark.proves("A079", "DEBUG-SHOWS")
async def test_debug_shows_what_a_model_is_sent_and_answers_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_DO_DEBUG", "1")
    call = ("read_file", {"path": "in/key.md"})
    async with shop(tmp_path) as made:
        await made.run(calling(call), attachments=["in/key.md"], extra_context="mind the gap")
    out, err = capfd.readouterr()
    assert out == ""
    assert SECRET not in err
    for words in (
        "debug main turn 1: model: scripted:script.py\n",
        "debug main turn 1: attachment: key.md (text/",
        "debug main turn 1: fragment: mind the gap\n",
        'debug main turn 1: tool call call_0_0: read_file {"path": "in/key.md"}\n',
        "debug main turn 2: result for call_0_0: the key is [redacted SHOP_KEY]\\n\n",
        "debug main turn 2: stopped: end_turn, tokens ",
    ):
        assert words in err, words


@pytest.mark.anyio
@pytest.mark.proves("DEBUG-SHOWS")
@pytest.mark.parametrize("value", [None, "", "0"])
async def test_without_debug_nothing_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("LLM_DO_DEBUG", raising=False)
    else:
        monkeypatch.setenv("LLM_DO_DEBUG", value)
    async with shop(tmp_path) as made:
        await made.run(calling(("read_file", {"path": "in/key.md"})))
    assert "debug" not in capfd.readouterr().err


@pytest.mark.anyio
@pytest.mark.proves("A079", "REDACT-RECORDED")
async def test_a_replay_shows_no_secret_of_the_run_that_it_replays(tmp_path: Path) -> None:
    given = calling(("leak", {}), ("read_file", {"path": "in/key.md"}))
    async with shop(tmp_path) as made:
        first = await made.run(given)
    shown: list[str] = []
    async with Workshop(tmp_path, FILES) as after:  # it knows of no secret itself
        after.bench = Workbench(load_project(tmp_path), model=f"replay:{first.run}")
        after.engine.body = after.bench.body
        run = await after.start(given)
        with after.engine.listening(run, shown.append):
            again = await ended(after.engine, run)
        assert again.output == first.output, again.error
        assert await after.engine.store.secrets(run) == {SECRET: "SHOP_KEY"}
        found = await after.engine.trace(run)
    assert found is not None
    told = "\n".join((*shown, json.dumps(again.account), json.dumps(found.to_json())))
    assert SECRET not in told and "[redacted SHOP_KEY]" in told
