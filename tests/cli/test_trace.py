"""`llm-do trace` and `llm-do runs prune`."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import re
import subprocess
from pathlib import Path

import pytest

from llm_do_mcp.cli.trace import lines
from llm_do_mcp.cli.trace_html import page
from llm_do_mcp.runtime.store import Batch, Event, RunRow, Store
from llm_do_mcp.runtime.trace import Trace, trace
from llm_do_mcp.runtime.trace_words import duration
from tests.cli.commands import llm_do
from tests.cli.test_run import PROJECT
from tests.project.conftest import write

EVIL = "</pre></span><script>alert(1)</script>\x1b[31m\u202egnp.exe\x00"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, PROJECT)
    return tmp_path


def ran(project: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return llm_do("trace", "last", "--project", project, *options, env=environment)


def recorded(texts: str = "hello", *, waits_s: float = 3600.0) -> Trace:
    """A run of two workers of which one wrote after it had waited for a person, and one failed."""
    start = 1_000_000.0

    def definition(name: str) -> dict[str, object]:
        return {"kind": "worker", "name": name, "input": texts, "models": ["anthropic:m"], "functions": []}

    def reply(*calls: tuple[str, object]) -> dict[str, object]:
        content = [{"type": "tool_use", "id": f"c{i}", "name": n, "input": g} for i, (n, g) in enumerate(calls)]
        usage = {"input_tokens": 1200, "output_tokens": 30}
        text = [{"type": "text", "text": texts}]
        return {"content": text + content, "stop_reason": "tool_use", "model": "anthropic:m", "usage": usage}

    question = {
        "kind": "approval",
        "function": "files.write",
        "target": f"out/{texts}",
        "chain": ["main"],
        "detail": texts,
        "action": "create the file",
    }
    answer = {"decision": "once", "silence": None, "by": "client", "note": texts}
    put = start + 1.2
    given = put + waits_s
    asked = {"question": question, "answer": answer}
    calls = (("write_file", {"path": texts}), ("worker_call", {"worker": "sub", "input_data": texts}))
    events = [
        Event("definition", "definition", "", "done", {"kind": "call", "name": "worker.call", "input": texts}, start),
        Event("call", "worker.call", "", "done", texts, start, given + 2),
        Event("call/definition", "definition", "", "done", definition("main"), start, start),
        Event("call/t0", "model", "", "done", reply(*calls), start + 0.1, start + 1.1),
        Event("call/t0.1", "worker.call", "", "failed", texts, start + 1.1, start + 1.6),
        Event("call/t0.1/definition", "definition", "", "done", definition(f"sub{texts}"), start + 1.1, start + 1.1),
        Event("call/t0.1/t0", "model", "", "done", reply(), start + 1.1, start + 1.5),
        Event("call/t0.0.ok", "ask", "", "answered", asked, put, given),
        Event("call/t0.0", "files.write", "", "done", {"path": f"out/{texts}"}, given, given + 0.5),
        Event("call/t1", "model", "", "done", reply(), given + 0.5, given + 2),
    ]
    row = RunRow("abc123", None, texts, "done", {"output": texts, "error": ""}, "", 1, start, given + 2)
    return trace(row, events, driven=False, now=given + 2)


class Page(html.parser.HTMLParser):
    """What a browser would make of the page: its elements, and whether they are closed in order."""

    VOID = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.proves("TRACE-TERMINAL")
def test_the_terminal_shows_the_tree_and_what_matters_in_it(project: Path) -> None:
    llm_do(project, "go", "--approve-all")
    shown = ran(project)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.match(r"run [0-9a-f]{16}  main  done\ntook ", shown.stdout)
    for words in (
        "no model was called",
        "├─ turn 1",
        "│  ├─ files.write",
        "? create the file out/a.md: once, by --approve-all, after ",
        "└─ turn 2",
        "\nquestions:\n  create the file out/",
        "\nfiles changed:\n  out/",
    ):
        assert words in shown.stdout, words
    run = shown.stdout.split()[1]
    assert llm_do("trace", run, "--project", project).stdout == shown.stdout


@pytest.mark.proves("TRACE-TERMINAL")
def test_a_failed_and_a_waiting_run_say_so(project: Path) -> None:
    llm_do(project, "go", "--entry", "broken")
    failed = ran(project).stdout
    assert "\nerror: worker broken: the model scripted:model.yaml refused to answer\n" in failed
    assert "stopped: refusal" in failed and "\nfailed:\n  broken: worker broken: " in failed
    llm_do(project, "go")
    waiting = ran(project).stdout
    assert "main  waiting, left by its process\n" in waiting
    assert "waits for a person" in waiting and "no answer yet" in waiting


@pytest.mark.proves("TRACE-TERMINAL")
def test_no_line_is_wider_than_asked_and_none_holds_control_characters() -> None:
    for columns in (40, 100):
        shown = lines(recorded(EVIL), columns)
        assert max(map(len, shown)) <= columns
        assert all(line.isprintable() for line in shown)


@pytest.mark.proves("TRACE-TERMINAL")
@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 ms"),
        (0.0042, "4 ms"),
        (0.9999, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (61, "1 min 1 s"),
        (3599.7, "1 h"),
        (12000, "3 h 20 min"),
    ],
)
def test_times_are_as_short_as_they_can_be_read(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.proves("TRACE-JSON")
def test_json_is_the_tree_as_data(project: Path) -> None:
    llm_do(project, "go", "--approvals", "deny")
    shown = json.loads(ran(project, "--json").stdout)
    (root,) = shown["items"]
    assert (shown["status"], root["name"], root["children"][0]["kind"]) == ("done", "main", "turn")
    assert len(shown["refused"]) == 6  # three calls, and the question about each
    assert {key for key in shown if key.endswith("s")} >= {"items", "failures", "person_s", "status"}


@pytest.mark.anyio
@pytest.mark.proves("TRACE-JSON")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
async def test_half_a_pair_of_surrogates_is_an_escape_in_json(tmp_path: Path, locale: str) -> None:
    store = Store(tmp_path / ".llm-do/runs.sqlite3")
    row = RunRow("r1", None, "main", "done", None, "one", 1, 1.0, 1.0)
    data = {"kind": "worker", "name": "main", "input": "\ud800 \udc80", "models": [], "functions": []}
    await store.write(Batch(row, [Event("definition", "definition", "", "done", data, 1.0, 1.0)], create=True))
    store.close()
    write(tmp_path, PROJECT)
    shown = llm_do("trace", "r1", "--project", tmp_path, "--json", env={"LC_ALL": locale})
    assert shown.returncode == 0
    assert "\ud800 \udc80" in json.loads(shown.stdout)["items"][0]["facts"]["input"]


@pytest.mark.proves("TRACE-USAGE")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nonesuch"], 1, "llm-do: there is no run nonesuch; to list them: llm-do runs --project "),
        (["\udcff"], 1, "llm-do: there is no run \\udcff; to list them: llm-do runs --project "),
        (["last", "--html", "PROJECT/no/such/file.html"], 2, "cannot be written: No such file or directory\n"),
        (["last", "--json", "--html"], 2, "not allowed with argument"),
        ([], 2, "the following arguments are required: RUN"),
    ],
)
def test_what_cannot_be_traced_is_one_line(project: Path, arguments: list[str], code: int, words: str) -> None:
    llm_do(project, "hi", "--entry", "plain")
    got = llm_do("trace", *(a.replace("PROJECT", str(project)) for a in arguments), "--project", project)
    assert (got.returncode, got.stdout) == (code, "")
    assert words in got.stderr and "Traceback" not in got.stderr


@pytest.mark.proves("TRACE-USAGE")
def test_a_project_without_runs_has_no_trace_and_gets_no_state(project: Path) -> None:
    got = ran(project)
    assert (got.returncode, got.stderr) == (1, "llm-do: the project has no runs yet\n")
    assert not (project / ".llm-do").exists()


@pytest.mark.proves("TRACE-HTML")
def test_the_page_is_written_where_asked(project: Path, tmp_path: Path) -> None:
    llm_do(project, "hi", "--entry", "plain")
    named = ran(project, "--html", str(tmp_path / "page.html"))
    assert named.stdout == f"{tmp_path / 'page.html'}\n"
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "plain" in text
    assert ran(project, "--html", "-").stdout == text + "\n"
    here = llm_do("trace", "last", "--project", project, "--html", cwd=tmp_path)
    assert (tmp_path / here.stdout.strip()).read_text(encoding="utf-8") == text


@pytest.mark.proves("TRACE-HTML")
def test_the_page_is_whole_links_lead_somewhere_and_nothing_is_fetched_or_run() -> None:
    text = page(recorded())
    made = Page(text)
    ids = [attributes["id"] for _, attributes in made.elements if "id" in attributes]
    links = [attributes["href"] for attributes in made.all("a") if "href" in attributes]
    assert len(ids) == len(set(ids)) == len(list(recorded().walk()))
    assert links and {link.removeprefix("#") for link in links} <= set(ids)
    assert {tag for tag, _ in made.elements}.isdisjoint({"script", "img", "link", "iframe", "object", "base", "form"})
    assert not [name for _, attributes in made.elements for name in attributes if name in ("src", "srcset")]
    assert not [name for _, attributes in made.elements for name in attributes if name.startswith("on")]
    assert "url(" not in text and "@import" not in text and "http" not in text.replace("http-equiv", "")
    policy = next(a["content"] for a in made.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.proves("TRACE-HTML")
def test_the_page_escapes_whatever_was_recorded() -> None:
    text = page(recorded(EVIL))
    made = Page(text)
    assert made.all("script") == []
    assert "<script" not in text
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.proves("TRACE-HTML")
def test_an_hour_of_waiting_is_drawn_short_and_bars_stay_inside_and_apart() -> None:
    made = Page(page(recorded()))
    bars = [a for a in made.all("a") if a.get("class", "").startswith("bar ")]
    assert {a["class"].split()[1] for a in bars} == {"turn", "worker", "question", "call"}
    drawn = {}
    for bar in bars:
        match = re.fullmatch(r"left:([\d.]+)%;width:([\d.]+)%;--row:(\d+)", bar["style"])
        assert match is not None
        left, width, row = float(match[1]), float(match[2]), int(match[3])
        assert left >= 0 and left + width <= 100.01 and width >= 0.4
        drawn[bar["aria-label"]] = (left, width, row)
    thinking = next(width for label, (_, width, _) in drawn.items() if label.startswith("create the file"))
    assert thinking < 30, "an hour beside three seconds"
    turn = next(width for label, (_, width, _) in drawn.items() if label.startswith("turn 2"))
    assert turn > 25
    (gap,) = [a for a in made.all("div") if a.get("class") == "gap"]
    assert gap["style"].startswith("left:")


@pytest.mark.proves("TRACE-HTML")
def test_the_timeline_begins_with_what_happened_first_and_a_slow_start_is_no_waiting() -> None:
    found = recorded()
    made = Page(page(dataclasses.replace(found, started=found.started - 60)))
    bars = [a for a in made.all("a") if a.get("class", "").startswith("bar ")]
    assert min(float(bar["style"].removeprefix("left:").partition("%")[0]) for bar in bars) == 0
    (gap,) = [a for a in made.all("div") if a.get("class") == "gap"]
    assert not gap["style"].startswith("left:0.000%"), "the hour in which a person thought"


@pytest.mark.proves("TRACE-HTML")
def test_bars_can_be_reached_by_keyboard_and_say_what_they_are() -> None:
    made = Page(page(recorded()))
    bars = [a for a in made.all("a") if a.get("class", "").startswith("bar ")]
    assert all(bar["href"].startswith("#") and bar["aria-label"] for bar in bars)
    (label,) = [bar["aria-label"] for bar in bars if bar["aria-label"].startswith("create the file")]
    assert label.endswith("once “hello”, by client, after 1 h")


@pytest.mark.proves("TRACE-HTML")
@pytest.mark.parametrize("events", [[], [Event("call/t0", "model", "", "started", None, 5.0)]])
def test_a_record_with_hardly_anything_in_it_is_a_page(events: list[Event]) -> None:
    row = RunRow("r", None, "main", "running", None, "", 1, 5.0, 5.0)
    Page(page(trace(row, events, driven=False, now=5.0)))


@pytest.mark.proves("A079", "REDACT-SHOWN")
def test_a_secret_of_the_environment_is_in_no_form_of_the_trace_and_in_no_error(project: Path) -> None:
    secret = "s3cret-value-99"
    model = json.loads((project / "model.yaml").read_text())
    model["workers"]["plain"] = [
        {"text": f"it is {secret}", "tool_calls": [{"name": secret, "input": {"x": secret}}]},
        "fine",
    ]
    (project / "model.yaml").write_text(json.dumps(model))
    known = {"MY_API_TOKEN": secret}
    run = llm_do(project, f"hi {secret}", "--entry", "plain", env=known)
    assert (run.returncode, run.stdout) == (0, "fine\n")
    assert secret not in run.stderr
    for form in ((), ("--json",), ("--html", "-")):
        for looking in (known, {}):  # whoever looks need not have the environment that it ran in
            shown = ran(project, *form, **looking).stdout
            assert secret not in shown
            assert "[redacted MY_API_TOKEN]" in shown
    assert secret.encode() in (project / ".llm-do" / "runs.sqlite3").read_bytes(), "the record is private"
    missing = llm_do("trace", secret, "--project", project, env=known)
    assert missing.stderr.startswith("llm-do: there is no run [redacted MY_API_TOKEN]; to list them: ")
    assert secret not in missing.stderr


# ---- prune


def ids(project: Path) -> list[str]:
    return [run["id"] for run in json.loads(llm_do("runs", "--json", "--project", project).stdout)]


@pytest.mark.proves("PRUNE-COMMAND")
def test_prune_keeps_what_it_is_told_to_and_every_open_run(project: Path) -> None:
    assert llm_do("runs", "prune", "--project", project).stdout.startswith("0 runs and 0 attachments removed")
    assert not (project / ".llm-do").exists()
    llm_do(project, "go")  # waits
    for _ in range(3):
        llm_do(project, "hi", "--entry", "plain")
    newest, *older, waiting = ids(project)
    assert llm_do("runs", "prune", "--project", project).stdout.startswith("0 runs ")  # none is a month old
    tried = llm_do("runs", "prune", "--keep", "1", "--dry-run", "--json", "--project", project)
    assert (tried.returncode, sorted(json.loads(tried.stdout)["runs"])) == (0, sorted(older))
    assert len(ids(project)) == 4
    pruned = llm_do("runs", "prune", "--keep", "1", "--project", project)
    assert pruned.stdout.startswith("2 runs and 0 attachments removed, ")
    assert ids(project) == [newest, waiting]
    assert llm_do("runs", "prune", "--older-than", "0", "--project", project).stdout.startswith("1 runs ")
    assert ids(project) == [waiting]


@pytest.mark.proves("PRUNE-COMMAND")
@pytest.mark.parametrize("options", [["--older-than", "-1"], ["--older-than", "soon"], ["--keep", "-1"]])
def test_numbers_that_mean_nothing_are_refused(project: Path, options: list[str]) -> None:
    got = llm_do("runs", "prune", *options, "--project", project)
    assert (got.returncode, got.stdout) == (2, "") and "Traceback" not in got.stderr
