"""The approval page: what a person sees and presses in a real browser, and that nothing else grants anything."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.cli.commands import llm_do
from tests.serving.browser import PROGRAM, Browser, Page
from tests.serving.clients import PATIENCE_S, Wire, command, shop, turn, worker, write
from tests.serving.conftest import Open
from tests.serving.visiting import Reply, Visitor
from tests.toolhost.conftest import is_gone_within

URLS = {"elicitation": {"url": {}}}


@dataclass
class Paused:
    """A shop whose run waits for a person.

    Args:
        root: Its project.
        wire: Its server.
        run: The run.
        address: Of the approval page.
    """

    root: Path
    wire: Wire
    run: str
    address: str

    def result(self) -> dict[str, Any]:
        """The result of the run, once it has ended."""
        return self.wire.request("tools/call", {"name": "run_wait", "arguments": {"run_id": self.run}})

    def stays_open(self) -> None:
        """Nothing has been decided."""
        with contextlib.closing(sqlite3.connect(self.root / ".llm-do" / "runs.sqlite3")) as record:
            states = record.execute(
                "SELECT DISTINCT state FROM event WHERE run=? AND kind='ask'", (self.run,)
            ).fetchall()
        assert states == [("asked",)]


Pause = Callable[..., Paused]


@pytest.fixture
def pause(open_wire: Open) -> Pause:
    """`pause(root)` calls the shop's worker for a client that opens addresses."""
    return lambda root: _called(root, open_wire(command(root), capabilities=URLS))


def _invited(wire: Wire) -> str:
    """The address that the client's person is shown, and opens."""
    asked = wire.asked()
    wire.write({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
    return str(asked["params"]["url"])


def _called(root: Path, wire: Wire) -> Paused:
    called = wire.call("shop", {"input": "go"})
    address = _invited(wire)
    result = wire.answer(called)["result"]
    return Paused(root, wire, result["_meta"]["llm-do/run"]["id"], address)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no chromium is installed (Debian: apt-get install chromium)")
    started = Browser(PROGRAM)
    yield started
    started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.page() as opened:
        yield opened


def enter(page: Page, address: str) -> None:
    """Open an address that was given: the entrance, and then the page."""
    page.open(address, loads=2)


def two(root: Path) -> Path:
    """A shop that asks twice."""
    return shop(root, turn(("read_file", {"path": "in/stock.txt"}), write("out/ledger.txt", "opened\nclosed\n")))


# ---- in a browser


@pytest.mark.proves("PAGE-SHOWS")
def test_a_question_is_shown_with_its_chain_difference_and_the_run_so_far(
    tmp_path: Path, pause: Pause, page: Page
) -> None:
    turns = {
        "main": [turn(("worker_call", {"worker": "clerk", "input_data": "x"}))],
        "clerk": [turn(("read_file", {"path": "in/stock.txt"})), turn(write("out/ledger.txt", "opened\nclosed\n"))],
    }
    files = {
        "turns.json": json.dumps(turns),
        "main.worker": worker({"toolsets": {"delegation": {"allow_workers": ["clerk"]}}}),
        "workers/clerk.worker": worker({"toolsets": {"filesystem": {}}}),
    }
    waiting = pause(shop(tmp_path, files=files))
    enter(page, waiting.address)
    assert page.evaluate("document.title") == "1 waiting · llm-do"
    words = page.text
    assert "Approval needed: change the file out/ledger.txt" in words
    assert "main > clerk" in words and "files.write" in words and waiting.run in words
    assert page.evaluate("[...document.querySelectorAll('pre .add')].map(e => e.innerText)") == ["+++ then", "+closed"]
    assert "files.read" not in words
    page.evaluate("document.querySelector('summary').click()")
    steps = page.evaluate("[...document.querySelectorAll('li')].map(e => [e.className, e.innerText])")
    traced = llm_do("trace", waiting.run, "--project", waiting.root).stdout
    assert [state for state, _ in steps] == [*["running", "done"] * 2, "done", "done", "waiting", "waiting"]
    for name in ("main", "clerk", "files.read", "files.write", "? change the file out/ledger.txt"):
        assert any(step.startswith(name) for _, step in steps) and f" {name}" in traced
    assert any('{"path": "in/stock.txt"} → three pears' in step for _, step in steps)
    assert [
        button.strip() for button in page.evaluate("[...document.querySelectorAll('button')].map(e => e.innerText)")
    ] == ["Allow this one", "Allow for the rest of this run", "Refuse"]


@pytest.mark.proves("PAGE-SHOWS")
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_at_any_width_and_in_the_dark(
    tmp_path: Path, pause: Pause, browser: Browser, width: int, dark: bool
) -> None:
    long = "".join(
        f"line {number} of a report that is wider than any phone, {'and wider ' * 20}\n" for number in range(60)
    )
    root = shop(tmp_path, turn(write("out/report.txt", long), write(f"out/{'long-name' * 10}.txt")))
    with browser.page(width, dark=dark) as page:
        enter(page, pause(root).address)
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing lies beyond the edge"
        found = "[...document.querySelectorAll('pre, dd, h2, li, button')]"
        assert page.evaluate(f"{found}.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0
        smallest = page.evaluate("Math.min(...[...document.querySelectorAll('button')].map(e => e.offsetHeight))")
        assert smallest >= 40, "a thumb finds it"
        assert page.evaluate(CONTRAST) >= 4.5
        page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const over = (below, colour) => { canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data; return `rgb(${r}, ${g}, ${b})`; };
  const light = colour => colour.match(/\\d+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const ground = e => e === null ? (dark ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)')
    : over(ground(e.parentElement), getComputedStyle(e).backgroundColor);
  return Math.min(...[...document.querySelectorAll('dt, dd, h1, h2, pre span, li, button, label, a')].map(e => {
    const style = getComputedStyle(e), below = ground(e);
    const mixed = style.color.replace('rgb(', 'rgba(').replace(')', `, ${style.opacity})`);
    const pair = [light(below), light(over(below, mixed))].sort((a, b) => b - a);
    return (pair[0] + .05) / (pair[1] + .05); }));
})()
"""
"""The least contrast of any text with what is behind it, as the accessibility guidelines reckon it."""


@pytest.mark.proves("PAGE-DECIDES")
@pytest.mark.parametrize(
    ("button", "decision", "asked"),
    [("Allow this one", "once", 2), ("Allow for the rest of this run", "run", 1), ("Refuse", "deny", 2)],
)
def test_a_click_decides(tmp_path: Path, pause: Pause, page: Page, button: str, decision: str, asked: int) -> None:
    waiting = pause(shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt"))))
    enter(page, waiting.address)
    page.evaluate("document.querySelector('textarea').focus()")
    page.type("as you like\nit")
    with page.loads():
        page.click(button)
    assert "Your decision was taken." in page.text
    if asked == 2:
        while "out/b.txt" not in page.text:
            with page.loads():
                page.click("Look for new questions now")
        with page.loads():
            page.click("Refuse")
    result = waiting.result()
    first = result["_meta"]["llm-do/run"]["approvals"][0]
    assert (first["decision"], first["by"]) == (decision, "approval page")
    assert first["note"].split() == ["as", "you", "like", "it"]
    written = {"once": ["out/a.txt"], "run": ["out/a.txt", "out/b.txt"], "deny": []}[decision]
    assert result["_meta"]["llm-do/run"]["files_changed"] == written
    assert set(page.shown) == {200, 303} or set(page.shown) == {200}


HEADINGS = "[...document.querySelectorAll('h2')].map(e => e.innerText)"


@pytest.mark.proves("PAGE-KEYBOARD")
def test_the_keyboard_alone_is_enough_and_no_key_decides_by_accident(tmp_path: Path, pause: Pause, page: Page) -> None:
    waiting = pause(shop(tmp_path, turn(write("out/a.txt"), write("out/b.txt"))))
    enter(page, waiting.address)
    first, second = (name.rpartition(" ")[2] for name in page.evaluate(HEADINGS))
    for key in ("Enter", " "):
        page.press(key)  # on arrival nothing has the focus
    page.tab_to("note")
    page.type("not this one")
    page.press("Enter")  # in the note it is a new line
    assert page.evaluate("document.activeElement.value") == "not this one\n"
    waiting.stays_open()
    page.tab_to("Refuse")
    outlined = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outlined == "solid", "one sees where one is"
    with page.loads():
        page.press("Enter")
    assert "1 waiting" in page.text
    page.tab_to("Allow this one")
    with page.loads():
        page.press(" ")
    account = waiting.result()["_meta"]["llm-do/run"]
    assert account["files_changed"] == [second]
    notes = {approval["target"]: approval["note"].strip() for approval in account["approvals"]}
    assert notes == {first: "not this one", second: ""}


@pytest.mark.proves("PAGE-HOSTILE", "A078")
def test_names_and_content_are_text_and_nothing_is_fetched_from_elsewhere(
    tmp_path: Path, pause: Pause, page: Page
) -> None:
    hostile = (
        "</pre></article></main><script>document.title = 'owned'</script>\n"
        "<img src=http://evil.example/x onerror=alert(1)>\n"
        "<meta http-equiv=refresh content='0;url=http://evil.example/'>\n"
        "<link rel=stylesheet href=//evil.example/a.css>\n"
        "\x1b[31mred\u202edetrever\u200b\n"
        "<form action=http://evil.example/><button>Allow this one</button></form>\n"
    )
    name = 'out/<img src=x onerror=alert(1)>\u202etxt.exe".md'
    waiting = pause(shop(tmp_path, turn(write(name, hostile))))
    enter(page, waiting.address)
    assert page.evaluate("document.title") == "1 waiting · llm-do"
    assert page.evaluate("document.querySelectorAll('script, img, iframe, object, form').length") == 2, "ours"
    words = page.text
    assert '<img src=x onerror=alert(1)>\\u202etxt.exe".md' in words
    assert "\\x1b[31mred\\u202edetrever\\u200b" in words
    assert not {"\x1b", "\u202e", "\u200b"} & set(words)
    lines = page.evaluate("[...document.querySelectorAll('pre span')].map(e => e.innerText)")
    assert [line[0] for line in lines] == [*"-+@", *"++++++"]
    origin = Visitor(waiting.address).origin
    assert all(address.startswith((origin, "data:")) for address in page.requested), page.requested
    frame = 'iframe[src^="/news?"]'
    assert page.evaluate(f"document.querySelector('[src]:not({frame}), [href^=http], [onclick], script')") is None


@pytest.mark.proves("PAGE-SHOWS")
def test_the_page_without_questions_finds_new_ones_by_itself(tmp_path: Path, pause: Pause, page: Page) -> None:
    waiting = pause(shop(tmp_path, turn(write("out/a.txt"))))
    enter(page, waiting.address)
    with page.loads():
        page.click("Refuse")
    waiting.result()
    with page.loads():
        page.click("Look for new questions now")
    assert "Nothing waits" in page.text and page.evaluate("document.title") == "Nothing waits · llm-do"
    waiting.wire.request("tools/call", {"name": "files_out_write_text", "arguments": {"path": "b.txt", "content": "x"}})
    while "out/b.txt" not in page.text:
        with page.loads():
            pass
    assert "the client itself" in page.text


@pytest.mark.proves("PAGE-SHOWS", "ASK-TOOL")
def test_a_question_of_a_tool_is_answered_in_words(tmp_path: Path, pause: Pause, page: Page) -> None:
    tools = (
        "from llm_do_mcp import ToolContext, tool\n\n\n@tool(risk='read')\ndef choose(ctx: ToolContext) -> str:\n"
        "    return 'took the ' + ctx.ask('Which fruit?')\n"
    )
    keys = {"toolsets": {"custom": ["choose"]}}
    waiting = pause(shop(tmp_path, turn(("choose", {})), files={"tools.py": tools, "main.worker": worker(keys)}))
    enter(page, waiting.address)
    assert "A tool asks" in page.text and "Which fruit?" in page.text and "Your answer" in page.text
    page.tab_to("note")
    page.type("pear")
    with page.loads():
        page.click("The answer is in the note")
    assert waiting.result()["content"][0]["text"] == "took the pear"


@pytest.mark.proves("PAGE-ENTRANCE")
def test_the_address_works_from_a_link_of_another_site(tmp_path: Path, pause: Pause, page: Page) -> None:
    """A client may be a web page: the visitor comes from elsewhere, and is let in all the same."""
    waiting = pause(two(tmp_path))
    with elsewhere(f'<a href="{waiting.address}">approve</a>') as site:
        page.open(site)
        with page.loads(2):
            page.click("approve")
    assert "1 waiting" in page.text


@pytest.mark.proves("PAGE-ENTRANCE")
def test_two_pages_of_one_machine_do_not_push_each_other_out(tmp_path: Path, pause: Pause, page: Page) -> None:
    first, second = pause(two(tmp_path / "first")), pause(two(tmp_path / "second"))
    for waiting in (first, second):
        enter(page, waiting.address)
    page.open(Visitor(first.address).origin)
    assert "1 waiting" in page.text and first.run in page.text
    page.open(first.address, loads=2)
    assert first.run in page.text, "who is in may use the old address again"


@pytest.mark.proves("PAGE-FORGED")
def test_a_page_of_another_site_cannot_decide_in_the_persons_browser(tmp_path: Path, pause: Pause, page: Page) -> None:
    waiting = pause(two(tmp_path))
    enter(page, waiting.address)
    origin = Visitor(waiting.address).origin
    fields = json.loads(
        page.evaluate(
            "JSON.stringify(Object.fromEntries([...document.querySelectorAll('input')].map(e => [e.name, e.value])))"
        )
    )
    fields["decision"] = "once"  # even a site that knew everything that the form holds
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    form = f'<form method="post" action="{origin}/decide">{inputs}<button>win a prize</button></form>'
    with elsewhere(form + f'<iframe src="{origin}/"></iframe>') as site:
        page.open(site)
        with page.loads():
            page.click("win a prize")
    assert "Not allowed" in page.text and page.shown[-1] == 403
    waiting.stays_open()


class _Site(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


class elsewhere:
    """Another web site, as a context manager that gives its address."""

    def __init__(self, body: str) -> None:
        handler = type("Site", (_Site,), {"body": f"<!doctype html><body>{body}".encode()})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://site.localhost:{self._server.server_port}/"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


# ---- forged requests


@dataclass
class Inside:
    """A visitor who was let in, and the fields of the question's form, complete with a decision that allows."""

    waiting: Paused
    visitor: Visitor
    fields: dict[str, str]


@pytest.fixture
def inside(tmp_path: Path, pause: Pause) -> Inside:
    return _let_in(pause(two(tmp_path)))


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """One for all tests after which everything must be as before."""
    root = two(tmp_path_factory.mktemp("shop"))
    wire = Wire(command(root), capabilities=URLS)
    wire.open()
    yield _let_in(_called(root, wire))
    wire.close()


def _let_in(waiting: Paused) -> Inside:
    visitor = Visitor(waiting.address)
    assert visitor.enter().status == 200
    (fields,) = visitor.forms()
    return Inside(waiting, visitor, {**fields, "decision": "once"})


Forgery = Callable[[Inside], Reply]


def _as(**headers: str | None) -> Forgery:
    return lambda inside: inside.visitor.post(inside.fields, **headers)


def _with(**fields: str) -> Forgery:
    return lambda inside: inside.visitor.post({**inside.fields, **fields})


def _without(name: str) -> Forgery:
    return lambda inside: inside.visitor.post({key: value for key, value in inside.fields.items() if key != name})


def _method(method: str) -> Forgery:
    return lambda inside: inside.visitor.request(
        method, "/decide", urlencode(inside.fields), origin=inside.visitor.origin, content_type=FORM
    )


def _of_another_session(inside: Inside) -> Reply:
    other = Visitor(inside.waiting.address)
    other.way_in = _address(inside)
    assert other.enter().status == 200 and other.cookie != inside.visitor.cookie
    return other.post(inside.fields)


def _address(inside: Inside) -> str:
    """A second way in: another call of a client that opens addresses is given one."""
    wire = inside.waiting.wire
    call = wire.call("files_out_write_text", {"path": "z.txt", "content": "z"})
    url = _invited(wire)
    wire.answer(call)
    return Visitor(url).way_in


FORM = "application/x-www-form-urlencoded"
FORGERIES: dict[str, tuple[Forgery, set[int]]] = {
    "another name for this machine": (_as(host="evil.example:80"), {421}),
    "a name that begins like ours": (_as(host="127.0.0.1.evil.example"), {421}),
    "our name without the port": (_as(host="127.0.0.1"), {421}),
    "no name": (_as(host=None), {400, 421}),
    "another origin": (_as(origin="http://evil.example"), {403}),
    "the origin null": (_as(origin="null"), {403}),
    "no origin": (_as(origin=None), {403}),
    "our origin over TLS": (lambda inside: inside.visitor.post(inside.fields, origin="https://127.0.0.1:1"), {403}),
    "the origin of another port": (_as(origin="http://127.0.0.1:1"), {403}),
    "no cookie": (_as(cookie=None), {403}),
    "a made-up cookie": (_as(cookie="llm-do-approvals=x"), {403}),
    "the token of another session": (_of_another_session, {403}),
    "a made-up token": (_with(token="x"), {403}),
    "a token that is no ASCII": (_with(token="é"), {403}),
    "no token": (_without("token"), {403}),
    "no decision": (_without("decision"), {400}),
    "an unknown decision": (_with(decision="yes"), {400}),
    "a decision of another kind of question": (_with(decision="again"), {400}),
    "no run": (_without("run"), {404}),
    "another run": (_with(run="0" * 16), {404}),
    "no question": (_without("key"), {404}),
    "another question": (_with(key="t9.9.ok"), {404}),
    "a key that is no question": (_with(key="definition"), {404}),
    "a GET": (lambda inside: inside.visitor.request("GET", f"/decide?{urlencode(inside.fields)}"), {405}),
    "a GET of the page": (lambda inside: inside.visitor.request("GET", f"/?{urlencode(inside.fields)}"), {200}),
    "a GET without the token in it": (
        lambda inside: inside.visitor.request("GET", f"/?{urlencode({**inside.fields, 'token': ''})}"),
        {200},
    ),
    "PUT": (_method("PUT"), {405}),
    "HEAD": (_method("HEAD"), {405}),
    "OPTIONS": (_method("OPTIONS"), {405}),
    "a POST to the page": (
        lambda inside: inside.visitor.request("POST", "/", urlencode(inside.fields), origin=inside.visitor.origin),
        {405},
    ),
    "a body of JSON": (
        lambda inside: inside.visitor.request(
            "POST",
            "/decide",
            json.dumps(inside.fields),
            origin=inside.visitor.origin,
            content_type="application/json",
        ),
        {403},
    ),
    "JSON as plain text": (_as(content_type="text/plain"), {403}),
    "a body without a type": (_as(content_type=None), {403}),
    "a form of several parts": (_as(content_type="multipart/form-data; boundary=x"), {403}),
    "a huge body": (_with(note="n" * 10_000_000), {403}),
    "a thousand fields": (_with(**{f"f{number}": "x" for number in range(1000)}), {403}),
    "bytes that are no text": (
        lambda inside: inside.visitor.request(
            "POST", "/decide", b"\xff\xfe\x00", origin=inside.visitor.origin, content_type=FORM
        ),
        {403},
    ),
    "escapes that are no text": (
        lambda inside: inside.visitor.request(
            "POST",
            "/decide",
            urlencode(inside.fields) + "&note=%ff%fe",
            origin=inside.visitor.origin,
            content_type=FORM,
        ),
        {403},
    ),
}


@pytest.mark.proves("PAGE-FORGED")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_nothing_but_the_persons_own_click_grants_anything(standing: Inside, forgery: str) -> None:
    send, statuses = FORGERIES[forgery]
    try:
        reply = send(standing)
    except ConnectionError:
        assert forgery in ("a huge body", "no name"), "the server hangs up on what is too long, or no request"
    else:
        assert reply.status in statuses, reply
        assert "set-cookie" not in reply.headers
    standing.waiting.stays_open()
    assert standing.fields["token"] in standing.visitor.look(), "the true form is still good"


@pytest.mark.proves("PAGE-FORGED")
def test_the_same_request_as_a_click_does_count(inside: Inside) -> None:
    """What the forgeries are forged from."""
    assert inside.visitor.post(inside.fields).status == 303
    assert inside.waiting.result()["_meta"]["llm-do/run"]["files_changed"] == ["out/ledger.txt"]


@pytest.mark.proves("PAGE-FORGED")
def test_a_decision_counts_once_and_a_second_one_is_noted(inside: Inside) -> None:
    first = inside.visitor.post({**inside.fields, "decision": "deny"})
    second = inside.visitor.post(inside.fields)
    assert (first.headers["location"], second.headers["location"]) == ("/?said=done", "/?said=late")
    assert "came too late and was only noted" in inside.visitor.request("GET", "/?said=late").text
    account = inside.waiting.result()["_meta"]["llm-do/run"]
    assert account["files_changed"] == [] and account["approvals"][0]["decision"] == "deny"


@pytest.mark.proves("PAGE-ENTRANCE")
def test_the_address_lets_in_once_and_nothing_is_shown_without_it(inside: Inside) -> None:
    again = Visitor(inside.waiting.address)
    for way_in in (again.way_in, "/", "/?token=", "/?token=x", f"{again.way_in}x"):
        reply = again.request("GET", way_in)
        assert reply.status == 403 and "set-cookie" not in reply.headers
        assert "ledger" not in reply.text and inside.waiting.run not in reply.text
    for path in ("/nothing", "/decide/", "/..%2f"):
        assert again.request("GET", path).status in (403, 404, 405, 307)
    head = Visitor(inside.waiting.address)
    head.way_in = _address(inside)
    assert "set-cookie" not in head.request("HEAD", head.way_in).headers
    assert head.enter().status == 200, "a look ahead does not use it up"


@pytest.mark.proves("PAGE-ENTRANCE")
def test_answers_are_kept_by_nobody_and_framed_by_nobody(inside: Inside) -> None:
    fresh = Visitor(inside.waiting.address)
    fresh.way_in = _address(inside)
    entered = fresh.enter()
    assert {"HttpOnly", "SameSite=strict"} <= set(entered.headers["set-cookie"].split("; "))
    for reply in (entered, fresh.request("GET", "/"), fresh.post({}), Visitor(inside.waiting.address).enter()):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script" not in policy
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store" and reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.proves("PAGE-NEWS")
def test_a_page_that_is_typed_into_is_told_of_news_and_keeps_what_was_typed(
    tmp_path: Path, pause: Pause, page: Page
) -> None:
    waiting = pause(shop(tmp_path, turn(write("out/a.txt"))))
    enter(page, waiting.address)
    frame = "document.querySelector('iframe')"
    words = f"{frame}.contentDocument.body.innerText"
    assert page.evaluate(words).startswith("Nothing new")
    again = f"{frame}.contentDocument.querySelector('meta[http-equiv=refresh]').content"
    assert page.evaluate(again) == "5", "by itself, again and again"
    page.evaluate("document.querySelector('textarea').focus()")
    page.type("half a word")
    waiting.wire.request("tools/call", {"name": "files_out_write_text", "arguments": {"path": "b.txt", "content": "x"}})
    arrived = page.send(
        "Runtime.evaluate",
        expression=f"new Promise(done => {{{frame}.onload = () => done({words}); "
        f"{frame}.contentWindow.location.reload(); }})",
        awaitPromise=True,
    )
    assert arrived["result"]["value"] == "There is news: show what waits now"
    assert page.evaluate("document.querySelector('textarea').value") == "half a word"
    with page.loads():
        page.evaluate(f"{frame}.contentDocument.querySelector('a').click()")
    assert page.evaluate("document.title") == "2 waiting · llm-do"


@pytest.mark.proves("PAGE-NEWS", "PAGE-FORGED")
def test_what_looks_for_news_shows_nothing_else_and_only_inside_the_page(inside: Inside) -> None:
    news = inside.visitor.request("GET", "/news")
    assert news.status == 200 and "out/" not in news.text and "<form" not in news.text
    assert "frame-ancestors 'self'" in news.headers["content-security-policy"]
    assert news.headers["x-frame-options"] == "SAMEORIGIN"
    assert Visitor(inside.waiting.address.partition("?")[0]).request("GET", "/news").status == 403


@pytest.mark.proves("PAGE-LEFT")
def test_a_run_whose_process_is_gone_says_how_it_goes_on(tmp_path: Path, pause: Pause) -> None:
    left = pause(shop(tmp_path, turn(write("out/a.txt"))))
    left.wire.process.kill()
    left.wire.process.wait(PATIENCE_S)
    visitor = Visitor(pause(tmp_path).address)
    visitor.enter()
    hint = f"llm-do runs resume {left.run} --project {tmp_path}"
    assert visitor.look().count("its process is gone") == 1 and hint in visitor.look()
    assert visitor.decide("once", index=0).status == 303
    shown = llm_do("trace", left.run, "--project", tmp_path).stdout
    assert "files.write  not finished" in shown and "not made" not in shown
    assert llm_do(*hint.split()[1:]).returncode == 0 and (tmp_path / "out/a.txt").exists()


# ---- the end of the server


@pytest.mark.proves("PAGE-END", "A093")
def test_the_page_ends_with_the_server_at_once_whatever_its_visitors_do(inside: Inside) -> None:
    wire, address = inside.waiting.wire, ("127.0.0.1", inside.visitor.port)
    with socket.create_connection(address) as idle, socket.create_connection(address) as half:
        idle.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 421")
        half.sendall(b"POST /decide HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
        wire.end_input()
        assert wire.process.wait(2.0) == 0
        assert is_gone_within(wire.process.pid, 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    assert "Traceback" not in wire.stderr() and wire.stderr() == ""


@pytest.mark.proves("PAGE-END")
def test_what_waited_can_be_answered_by_the_next_server(tmp_path: Path, pause: Pause, open_wire: Open) -> None:
    root = two(tmp_path)
    first = pause(root)
    first.wire.end_input()
    first.wire.process.wait(PATIENCE_S)
    second = open_wire(command(root), capabilities=URLS)
    call = second.call("files_out_write_text", {"path": "b.txt", "content": "x"})
    visitor = Visitor(_invited(second))
    second.answer(call)
    visitor.enter()
    assert "its process is gone; once you have decided, the run goes on with: llm-do runs resume " in visitor.look()
    index = next(index for index, form in enumerate(visitor.forms()) if form["run"] == first.run)
    assert visitor.decide("once", index=index).headers["location"] == "/?said=done"
