"""A run as one page to look at: a timeline, and below it all that the trace holds.

One file without a script and without anything from outside (its own policy forbids both). Each worker has a lane;
a bar is a turn or a call, hatched where a person was thinking. Time in which nothing but waiting happened is drawn
short, and marked: a run of two seconds that waited an hour for its approval is still readable. A bar is a link to its
place in the record; hovered or focused, it tells what it is. All texts are escaped twice over: what could mislead
(control characters, turned direction), then what is HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from llm_do_mcp.cli.trace_style import STYLE
from llm_do_mcp.runtime.display import escape
from llm_do_mcp.runtime.trace import Item, Trace, merged
from llm_do_mcp.runtime.trace_words import (
    STATES,
    course,
    decided,
    duration,
    status,
    stopped,
    summary,
    title,
    tokens,
    took,
)

GAP_SHARE = 0.12
"""A stretch of waiting is drawn no longer than this share of the time in which something was done."""
NARROWEST = 0.45
"""The least width of a bar, in percent of the timeline."""
TICKS = 5


def page(found: Trace) -> str:
    """The page, as HTML."""
    name = f"{_h(found.name)} · run {_h(found.run)}"
    numbers = {item.key: f"i{index}" for index, (_, item) in enumerate(found.walk())}
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f'<meta name="color-scheme" content="light dark"><title>{name}</title>',
            f"<style>{STYLE}</style></head><body>",
            _head(found),
            _timeline(found, numbers),
            "<main>",
            *_lists(found, numbers),
            '<section><h2>Record</h2><div class="record">',
            *(part for item in found.items for part in _record(found, item, numbers)),
            "</div></section></main></body></html>",
            "",
        )
    )


def _h(text: object) -> str:
    return html.escape(escape(str(text)))


def _block(text: object) -> str:
    """A text with its lines."""
    return f"<pre>{html.escape(escape(str(text), lines=True))}</pre>"


def _head(found: Trace) -> str:
    began = datetime.fromtimestamp(found.started).strftime("%Y-%m-%d %H:%M:%S")
    facts = "".join(
        f'<div class="{_h(label)}"><dt>{_h(label)}</dt><dd>{_h(value)}</dd></div>' for label, value in summary(found)
    )
    outcome = ""
    if found.error:
        outcome = f'<div class="outcome bad"><h2>It ended with</h2>{_block(found.error)}</div>'
    elif found.output:
        outcome = f'<details class="outcome"><summary>What it gave</summary>{_block(found.output)}</details>'
    return (
        f'<header><p class="run">run {_h(found.run)} · <time>{began}</time></p>'
        f'<h1>{_h(found.name)} <span class="pill {_h(found.status)}">{_h(status(found))}</span></h1>'
        f"<dl>{facts}</dl>{outcome}</header>"
    )


# ---- the timeline


@dataclass(frozen=True)
class _Bar:
    item: Item
    start: float
    end: float


@dataclass(frozen=True)
class _Stretch:
    """A piece of time, and how long it is drawn."""

    start: float
    end: float
    drawn: float

    @property
    def shortened(self) -> bool:
        return self.drawn < 0.8 * (self.end - self.start)


class _Scale:
    """From seconds to percent of the width: even where something is done, short where a person is waited for."""

    def __init__(self, bars: Sequence[_Bar], start: float, end: float) -> None:
        busy = merged(span for bar in bars for span in _busy(bar, end))
        worked = sum(b - a for a, b in busy) or 1.0
        self.stretches: list[_Stretch] = []
        at = start
        for a, b in [*busy, (end, end)]:
            if a > at:
                self.stretches.append(_Stretch(at, a, min(a - at, GAP_SHARE * worked)))
            if b > a:
                self.stretches.append(_Stretch(a, b, b - a))
            at = max(at, b)
        self._whole = sum(stretch.drawn for stretch in self.stretches) or 1.0

    def at(self, moment: float) -> float:
        """Where a moment is, in percent."""
        drawn = 0.0
        for stretch in self.stretches:
            length = stretch.end - stretch.start
            drawn += stretch.drawn * min(max((moment - stretch.start) / length, 0.0), 1.0)
        return 100.0 * drawn / self._whole

    def moment(self, percent: float) -> float:
        """Which moment is there."""
        left = percent / 100.0 * self._whole
        for stretch in self.stretches:
            if left <= stretch.drawn or stretch is self.stretches[-1]:
                return stretch.start + (stretch.end - stretch.start) * min(left / (stretch.drawn or 1.0), 1.0)
            left -= stretch.drawn
        return 0.0


def _timeline(found: Trace, numbers: dict[str, str]) -> str:
    lanes = list(_lanes(found))
    bars = [bar for _, _, held in lanes for bar in held]
    # It begins with the first bar: what comes before it is no waiting, and would be drawn over the lanes' names.
    start = min((bar.start for bar in bars), default=found.started)
    scale = _Scale(bars, start, max((bar.end for bar in bars), default=found.until))
    ticks = []
    for index in range(TICKS + 1):
        left = 100 * index / TICKS
        ticks.append(f'<i style="left:{left:g}%"><b>{duration(scale.moment(left) - found.started)}</b></i>')
    gaps = "".join(
        f'<div class="gap" style="left:{scale.at(s.start):.3f}%;width:{scale.at(s.end) - scale.at(s.start):.3f}%">'
        f"<b>{duration(s.end - s.start)}</b></div>"
        for s in scale.stretches
        if s.shortened
    )
    drawn = "".join(_lane(found, item, depth, held, scale, numbers) for depth, item, held in lanes)
    legend = "".join(
        f'<li><span class="bar {kind}"></span>{words}</li>'
        for kind, words in (
            ("turn", "a model's turn"),
            ("call", "a call"),
            ("write", "a write"),
            ("worker", "a sub-worker"),
            ("question", "a person thinks"),
            ("failed", "failed or in doubt"),
        )
    )
    cut = '<li><span class="bar cut"></span>waiting, drawn short</li>' if gaps else ""
    return (
        f'<section class="timeline" aria-label="Timeline"><ul class="legend">{legend}{cut}</ul>'
        f'<div class="scroll" tabindex="0"><div class="lanes">{gaps}<div class="axis">{"".join(ticks)}</div>'
        f"{drawn}</div></div></section>"
    )


def _lanes(found: Trace) -> Iterator[tuple[int, Item | None, list[_Bar]]]:
    """(depth, worker, bars) of each lane; a call that a client made itself has a lane without a worker."""
    workers = [(depth, item) for depth, item in found.walk() if item.kind == "worker"]
    outside = [bar for item in found.items if item.kind != "worker" for bar in _bars(found, (item,))]
    if outside:
        yield 0, None, outside
    for depth, worker in workers:
        yield depth, worker, list(_bars(found, worker.children))


def _bars(found: Trace, items: Sequence[Item]) -> Iterator[_Bar]:
    for item in items:
        # A call that was refused, or waits to be allowed, is drawn as its question.
        if item.kind != "call" or item.state not in ("not_made", "refused", "waiting", "withdrawn"):
            yield _Bar(item, item.started, found.until if item.ended is None else item.ended)
        if item.kind != "worker":
            yield from _bars(found, item.children)


def _lane(
    found: Trace, worker: Item | None, depth: int, bars: Sequence[_Bar], scale: _Scale, numbers: dict[str, str]
) -> str:
    rows: list[float] = []
    drawn = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        left = scale.at(bar.start)
        width = max(scale.at(bar.end) - left, NARROWEST)
        left = min(left, 100 - width)
        row = next((index for index, free in enumerate(rows) if free <= left + 0.01), len(rows))
        rows[row : row + 1] = [left + width]
        label = title(bar.item) if width >= 1 + 0.8 * min(len(title(bar.item)), 10) else ""
        drawn.append(_bar(found, bar, label, f"left:{left:.3f}%;width:{width:.3f}%;--row:{row}", numbers))
    name = "the client itself" if worker is None else worker.name
    lasted = "" if worker is None or worker.ended is None else f" <span>{took(worker)}</span>"
    state = "" if worker is None or not STATES[worker.state] else f" <em>{STATES[worker.state]}</em>"
    link = _h(name) if worker is None else f'<a href="#{numbers[worker.key]}">{_h(name)}</a>'
    return (
        f'<div class="lane"><h3 style="--depth:{min(depth // 2, 6)}">{link}{state}{lasted}</h3>'
        f'<div class="bars" style="--rows:{max(len(rows), 1)}">{"".join(drawn)}</div></div>'
    )


def _bar(found: Trace, bar: _Bar, label: str, style: str, numbers: dict[str, str]) -> str:
    item = bar.item
    words = [f"at {duration(item.started - found.started)}", duration(bar.end - bar.start)]
    if item.kind == "question":
        words[1:] = [decided(item)]
    words += [word for word in (STATES[item.state], tokens(item), stopped(item)) if word and item.kind != "question"]
    facts = "".join(
        f"<span>{_h(label)}: {_h(str(item.facts[label])[:280])}</span>"
        for label in ("arguments", "input", "error", "result", "output", "text")
        if item.facts.get(label)
    )
    return (
        f'<a class="bar {_look(item)}" href="#{numbers[item.key]}" style="{style}" '
        f'aria-label="{_h(title(item))}, {_h(", ".join(words))}">{_h(label)}'
        f'<span class="tip" aria-hidden="true"><strong>{_h(title(item))}</strong> {_h(" · ".join(words))}{facts}'
        f"</span></a>"
    )


def _look(item: Item) -> str:
    if item.state in ("failed", "in_doubt"):
        return f"{item.kind} failed"
    if item.kind == "question":
        return "question refused" if item.state == "refused" else "question"
    return "call write" if item.name == "files.write" else item.kind


def _busy(bar: _Bar, end: float) -> Iterator[tuple[float, float]]:
    """When something was done in a turn or call: not while it waited for an answer to a question of its own."""
    if bar.item.kind not in ("turn", "call"):
        return
    at = bar.start
    for start, stop in merged(_waits(bar.item.children, end)):
        if start > at:
            yield at, min(start, bar.end)
        at = max(at, stop)
    if at < bar.end:
        yield at, bar.end


def _waits(items: Sequence[Item], end: float) -> Iterator[tuple[float, float]]:
    for item in items:
        if item.kind == "question":
            yield item.started, end if item.ended is None else item.ended
        yield from _waits(item.children, end)


# ---- below it


def _lists(found: Trace, numbers: dict[str, str]) -> Iterator[str]:
    def link(item: Item, words: str) -> str:
        return f'<li><a href="#{numbers[item.key]}">{_h(title(item))}</a> {words}</li>'

    failed = [link(item, _block(item.facts.get("error", ""))) for item in found.of("failed")]
    doubtful = [link(item, _h(item.facts.get("arguments") or "")) for item in found.of("in_doubt")]
    asked = [
        link(item, f'<span class="{"bad" if item.state == "refused" else "quiet"}">{_h(decided(item))}</span>')
        for item in found.questions()
    ]
    changed = [f"<li>{_h(path)}</li>" for path in found.account["files_changed"]]
    passed_over = [link(item, _block(error)) for item, error in found.passed_over()]
    for head, entries in (
        ("Models passed over", passed_over),
        ("Failed", failed),
        ("In doubt: begun, never ended, and may have happened", doubtful),
        ("Questions", asked),
        ("Files changed", changed),
    ):
        if entries:
            yield f"<section><h2>{head}</h2><ul>{''.join(entries)}</ul></section>"


def _record(found: Trace, item: Item, numbers: dict[str, str]) -> Iterator[str]:
    """An item and all in it. Its anchor is inside what is folded: a browser unfolds what a link leads to."""
    notes = [decided(item)] if item.kind == "question" else course(item)
    state = "bad" if item.state in ("failed", "in_doubt", "refused") else "quiet"
    folded = "" if item.kind in ("call", "question") and not item.children and state == "quiet" else " open"
    yield (
        f'<details class="{_look(item)}"{folded}><summary><b>{_h(title(item))}</b> '
        f'<span class="{state}">{_h(" · ".join(notes))}</span>'
        f"<time>{_h(duration(item.started - found.started))}</time></summary>"
        f'<div class="body"><a id="{numbers[item.key]}"></a>'
    )
    for label in ("input", "arguments", "detail", "note", "error", "text"):
        if item.facts.get(label):
            yield f"<h4>{label}</h4>{_block(item.facts[label])}"
    for child in item.children:
        yield from _record(found, child, numbers)
    for label in ("result", "output"):
        if item.facts.get(label):
            yield f"<h4>{label}</h4>{_block(item.facts[label])}"
    yield "</div></details>"
