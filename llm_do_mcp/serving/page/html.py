"""The approval page as HTML: one document without scripts and without anything from elsewhere.

Every value is escaped twice over: what misleads a reader was written out when the question was made, and what HTML
would read as markup is escaped here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape

from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.display import escape as plain
from llm_do_mcp.runtime.engine import Waiting
from llm_do_mcp.runtime.hint import Hint
from llm_do_mcp.runtime.question import HEADS, LABELS, Kind, Question
from llm_do_mcp.runtime.trace import Trace
from llm_do_mcp.runtime.trace_words import line, status, summary
from llm_do_mcp.serving.asking import NOTE_CHARS

SAID = {
    "done": "Your decision was taken.",
    "late": "That question was settled already; your decision came too late and was only noted.",
}

LOOK_EVERY_S = 5
MAX_ITEMS = 100
"""The latest that has happened in a run is shown, up to so many."""
MAX_CHARS = 240
"""Characters of the line about each."""
NOTE: dict[Kind, str] = {
    "approval": "Note to the worker (optional)",
    "in_doubt": "Note to the worker (optional)",
    "question": "Your answer",
}

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --add: #116329; --del: #b3122a; --go: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --add: #56d364; --del: #ff8982; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 60rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
article { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0 0 .8rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--soft); border-radius: .4rem; padding: .6rem; overflow: auto; max-height: 32rem;
  margin: 0 0 .8rem; font-size: .85rem; white-space: pre-wrap; word-break: break-all; }
pre span { display: block; min-height: 1.5em; padding-left: 3ch; text-indent: -3ch; }
pre .add { color: var(--add); } pre .del { color: var(--del); } pre .at { opacity: .7; }
details { margin-bottom: .8rem; } details p { margin: .4rem 0; }
details ul { margin: .4rem 0; padding: 0; list-style: none; font-size: .85rem; overflow-wrap: anywhere; }
details li { margin-left: calc(var(--depth) * .8rem); padding: .1rem .6rem; border-left: 2px solid var(--line);
  white-space: pre-wrap; }
li.failed, li.refused, li.in_doubt { color: var(--del); } li.waiting { border-color: var(--go); }
form { display: flex; flex-wrap: wrap; gap: .5rem; }
label { flex: 1 0 100%; } textarea { display: block; width: 100%; font: inherit; padding: .4rem .6rem; }
button { font: inherit; padding: .5rem 1rem; border-radius: .4rem; border: 1px solid var(--line); cursor: pointer; }
button.yes { background: var(--go); color: white; border-color: transparent; }
button.no { margin-left: auto; }
iframe { border: 0; width: 100%; height: 1.6rem; } .news { padding: 0; overflow: hidden; } .news p { margin: 0; }
button:focus-visible, textarea:focus-visible, summary:focus-visible, pre:focus-visible {
  outline: 3px solid var(--go); outline-offset: 2px; }
.said { border-left: 4px solid var(--go); padding: .3rem .8rem; background: var(--soft); }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } button { flex: 1 0 100%; margin: 0; } }
"""


def page(waiting: Sequence[Waiting], traces: Mapping[str, Trace | None], hint: Hint, token: str, said: str) -> str:
    """The list of questions.

    Args:
        waiting: The questions, oldest first.
        traces: Run → what has happened in it.
        hint: Makes the command lines that people are told to type.
        token: What a form of this session must carry.
        said: What became of the last decision, or "".
    """
    title = f"{len(waiting)} waiting" if waiting else "Nothing waits"
    parts = [f"<h1>{title} for your decision</h1>"]
    if said:
        parts.append(f'<p class="said" role="status">{escape(said)}</p>')
    parts += [_card(question, traces.get(question.run), hint, token) for question in waiting]
    if waiting:  # a page that is read and typed into is not loaded anew: a frame in it looks for news
        parts.append(f'<iframe src="/news?shown={standing(waiting)}" title="News"></iframe>')
    else:
        again = f"This page looks for new questions every {LOOK_EVERY_S} seconds. "
        parts.append(f'<p>{again}<a href="/">Look for new questions now</a></p>')
    return _document(title, "".join(parts), refresh=None if waiting else (LOOK_EVERY_S, "/"))


def standing(waiting: Sequence[Waiting]) -> str:
    """What stands for these questions and no others."""
    return sha256(repr([(each.run, each.question.key) for each in waiting]).encode()).hexdigest()[:16]


def news(shown: bool) -> str:
    """Looks for news, again and again.

    Args:
        shown: Whether the page around it shows all that waits, and nothing else.
    """
    nothing = f"Nothing new; this page looks every {LOOK_EVERY_S} seconds."
    words = nothing if shown else '<a href="/" target="_top">There is news: show what waits now</a>'
    return _document("News", f"<p>{words}</p>", refresh=(LOOK_EVERY_S, ""), kind="news")


def entrance() -> str:
    """What a new visitor gets, beside the session: it goes on to the page by itself."""
    return _document("Opening", '<p><a href="/">Open the questions</a></p>', refresh=(0, "/"))


def refusal(reason: str) -> str:
    """A page that says why nothing else is shown."""
    return _document("Not allowed", f"<h1>Not allowed</h1><p>{escape(reason)}</p>")


def _document(title: str, body: str, *, refresh: tuple[int, str] | None = None, kind: str = "") -> str:
    """A document; `refresh` is after how many seconds it goes where, "" for itself."""
    head = '<link rel="icon" href="data:,">'
    if refresh is not None:
        after, where = refresh
        head += f'<meta http-equiv="refresh" content="{after}{where and f"; url={where}"}">'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)} · llm-do</title>'
        f'<style>{_STYLE}</style></head><body class="{kind}"><main>{body}</main></body></html>'
    )


def _card(waiting: Waiting, trace: Trace | None, hint: Hint, token: str) -> str:
    question = waiting.question
    head = f"{HEADS[question.kind]}: {question.action} {question.target}".rstrip()
    facts = {
        "Asked by": " > ".join(question.chain) or "the client itself",
        "Function": question.function,
        "Arguments": f"{question.arguments} ({question.size} characters, sha256 {question.digest[:12]})",
        "Waiting": _ago(waiting.asked),
        "Run": waiting.run,
    }
    if not waiting.driven:
        how = hint("runs", "resume", waiting.run)
        facts["Left"] = f"its process is gone; once you have decided, the run goes on with: {how}"
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    detail = f'<pre tabindex="0">{_diff(question.detail)}</pre>' if question.detail else ""
    so_far = "" if trace is None else _so_far(trace)
    form = _form(waiting.run, question, token)
    return f"<article><h2>{escape(head)}</h2><dl>{rows}</dl>{detail}{so_far}{form}</article>"


def _so_far(trace: Trace) -> str:
    """What has happened in a run, as `llm-do trace` tells it."""
    items = list(trace.walk())
    hidden = max(len(items) - MAX_ITEMS, 0)
    facts = " · ".join(f"{label} {value}" for label, value in summary(trace) if value not in ("0", "0 ms"))
    lines = "".join(
        f'<li class="{item.state}" style="--depth:{depth}">{escape(cut(plain(line(item)), MAX_CHARS))}</li>'
        for depth, item in items[hidden:]
    )
    more = f"<p>The first {hidden} lines are left out.</p>" if hidden else ""
    return (
        f"<details><summary>The run so far</summary><p>{escape(plain(f'{trace.name}, {status(trace)}: {facts}'))}</p>"
        f"{more}<ul>{lines}</ul></details>"
    )


def _form(run: str, question: Question, token: str) -> str:
    hidden = {"token": token, "run": run, "key": question.key}
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in hidden.items())
    refusing = question.decisions[-1]
    buttons = "".join(
        f'<button name="decision" value="{decision}" class="{_class(decision, refusing)}">{LABELS[decision]}</button>'
        for decision in question.decisions
    )
    # Of several lines, so that the Enter key in it is no click on the first button.
    note = f'<label>{NOTE[question.kind]}<textarea name="note" rows="2" maxlength="{NOTE_CHARS}"></textarea></label>'
    return f'<form method="post" action="/decide" autocomplete="off">{fields}{note}{buttons}</form>'


def _class(decision: str, refusing: str) -> str:
    return "no" if decision == refusing else "yes" if decision in ("once", "done", "answer") else "more"


def _diff(detail: str) -> str:
    # A line is a block of its own, set in from the second row on: none of its text can pass for another line.
    kinds = {"+": "add", "-": "del", "@": "at"}
    return "".join(f'<span class="{kinds.get(line[:1], "")}">{escape(line)}</span>' for line in detail.split("\n"))


def _ago(then: float) -> str:
    seconds = max(0, int(time.time() - then))
    return f"for {seconds} s" if seconds < 120 else f"for {seconds // 60} min"
