"""The scripted stand-in for the model behind `pitch_evaluator`: rules instead of judgement.

It is given what a model would be given, and nothing else: the deck as bytes, the procedure as text. It finds the
rows of the deck's tables in the PDF, applies the procedure's bands, and takes the weights and the verdicts' limits
from the procedure it was handed. It reads only PDFs with uncompressed content streams, as `make_decks.py` writes.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

__all__ = ["reply"]

DIMENSIONS = ("traction", "retention", "team", "market", "ask")
STREAM = re.compile(rb"stream\n(.*?)\nendstream", re.DOTALL)
TEXT = re.compile(rb"1 0 0 1 (\S+) (\S+) Tm \(((?:\\.|[^\\()])*)\) Tj")
NUMBER = re.compile(r"-?[\d,]*\.?\d+")
PROCEDURE_ROW = re.compile(r"^\|\s*(\w+)\s*\|\s*(\d+)\s*\|", re.MULTILINE)
STEERING = re.compile(r"ignore (?:your|all|any) (?:previous )?instructions|automated reviewers", re.IGNORECASE)
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})

Row = tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """What a deck says, as far as the rules look at it; None is what it does not say. Money in millions of euros."""

    company: str
    revenue: float | None
    revenue_before: float | None
    churn: float | None
    years: tuple[float, ...]
    open_roles: tuple[str, ...]
    market: float | None
    market_has_source: bool
    valuation: float | None
    runway: float | None
    steers_the_reader: bool

    @property
    def growth(self) -> float | None:
        """Growth of the last year, 0.4 for 40 %."""
        return self.revenue / self.revenue_before - 1 if self.revenue and self.revenue_before else None

    @property
    def multiple(self) -> float | None:
        """The valuation in years of revenue."""
        return self.valuation / self.revenue if self.valuation and self.revenue else None


@dataclass(frozen=True)
class Mark:
    """The points of one dimension, 1 to 5, and why."""

    score: int
    reason: str


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `pitch_evaluator`.

    Args:
        request: The turn as the scripted model hands it on; attachments are base64.

    Returns:
        `{"text": …}`, the evaluation as JSON; plain words where no deck is attached, which no schema accepts.
    """
    blocks = list(_blocks(request["messages"]))
    decks = [block for block in blocks if block["type"] == "attachment"]
    if not decks:
        return {"text": "No deck is attached, so there is nothing to evaluate."}
    texts = [request["system"], *(block["text"] for block in blocks if block["type"] == "text")]
    deck = decks[0]
    evaluation = evaluate(deck["name"], base64.b64decode(deck["data"]), procedure="\n".join(texts))
    return {"text": json.dumps(evaluation, ensure_ascii=False)}


def evaluate(name: str, pdf: bytes, procedure: str) -> dict[str, Any]:
    """Evaluate one deck by the rules of the procedure.

    Args:
        name: The attachment's name; a folder in front and the suffix are dropped.
        procedure: Text that holds the tables of weights and verdicts; what it lacks has a default.
    """
    facts = read_facts(pdf)
    marks = {dimension: RULES[dimension](facts) for dimension in DIMENSIONS}
    given = {word.lower(): int(number) for word, number in PROCEDURE_ROW.findall(procedure)}
    weights = {dimension: given.get(dimension, 20) for dimension in DIMENSIONS}
    score = round(100 * sum(marks[d].score * weights[d] for d in DIMENSIONS) / (5 * sum(weights.values())), 1)
    verdict = "invest" if score >= given.get("invest", 80) else "watch" if score >= given.get("watch", 50) else "pass"
    best = max(DIMENSIONS, key=lambda dimension: marks[dimension].score)
    worst = min(DIMENSIONS, key=lambda dimension: marks[dimension].score)
    deck_id = unicodedata.normalize("NFC", PurePosixPath(name).stem)
    return {
        "deck_id": deck_id,
        "file_slug": _slug(deck_id),
        "company": facts.company or deck_id,
        "summary": f"Strongest in {best}: {marks[best].reason}. Weakest in {worst}: {marks[worst].reason}.",
        "dimensions": {d: {"score": marks[d].score, "reason": marks[d].reason} for d in DIMENSIONS},
        "score": score,
        "verdict": verdict,
        "red_flags": list(_red_flags(facts))[:3],
    }


def read_pages(pdf: bytes) -> list[list[Row]]:
    """The text of each page as rows of cells: what stands on one baseline, from left to right."""
    pages = []
    for stream in STREAM.findall(pdf):
        lines: dict[float, list[tuple[float, str]]] = {}
        for x, y, literal in TEXT.findall(stream):
            text = re.sub(rb"\\(.)", rb"\1", literal).decode("cp1252")
            lines.setdefault(float(y), []).append((float(x), text))
        pages.append([tuple(text for _, text in sorted(lines[y])) for y in sorted(lines, reverse=True)])
    return pages


def read_facts(pdf: bytes) -> Facts:
    """Find in the deck's tables what the rules look at."""
    pages = read_pages(pdf)
    rows = [row for page in pages for row in page]
    revenue = _numbers(rows, "revenue")
    team = [row for page in pages for row in _below(page, head="Role") if len(row) >= 3]
    is_open = {row: bool(re.search(r"open|to be hired", row[1])) for row in team}
    market_page = next((page for page in pages if _numbers(page, "serviceable market")), [])
    return Facts(
        company=rows[0][0] if rows else "",
        revenue=revenue[-1] if revenue else None,
        revenue_before=revenue[-2] if len(revenue) > 1 else None,
        churn=_last(_numbers(rows, "churn")),
        years=tuple(_number(row[2]) or 0.0 for row in team if not is_open[row]),
        open_roles=tuple(row[0] for row in team if is_open[row]),
        market=_last(_numbers(market_page, "serviceable market")),
        market_has_source=any(row[0].lower().startswith("source") for row in market_page),
        valuation=_last(_numbers(rows, "valuation")),
        runway=_last(_numbers(rows, "runway")),
        steers_the_reader=bool(STEERING.search(" ".join(cell for row in rows for cell in row))),
    )


def _traction(facts: Facts) -> Mark:
    if not facts.revenue:
        return Mark(1, "no revenue")
    growth = facts.growth
    score = 2 + (facts.revenue >= 1) + _met(growth, 0.25, 0.6)
    change = "growth not stated" if growth is None else f"{growth:+.0%} in a year"
    return Mark(score, f"revenue of € {facts.revenue:g} m, {change}")


def _retention(facts: Facts) -> Mark:
    if facts.churn is None:
        return Mark(1, "churn not stated")
    return Mark(1 + _met(-facts.churn, -25, -12, -6, -3), f"annual churn of {facts.churn:g} %")


def _team(facts: Facts) -> Mark:
    if not facts.years:
        return Mark(1, "the team is not named")
    average = sum(facts.years) / len(facts.years)
    score = 1 + _met(average, 5, 10) + (len(facts.years) >= 3) + (not facts.open_roles)
    missing = f", open: {', '.join(facts.open_roles)}" if facts.open_roles else ""
    return Mark(score, f"{len(facts.years)} people with {average:.3g} years on average{missing}")


def _market(facts: Facts) -> Mark:
    if facts.market is None:
        return Mark(1, "market not stated")
    if not facts.market_has_source:
        return Mark(2, f"€ {facts.market:,.0f} m without a source")
    return Mark(3 + _met(facts.market, 100, 500), f"€ {facts.market:,.0f} m that they can serve, with a source")


def _ask(facts: Facts) -> Mark:
    score = 1 + _met(facts.runway, 12, 18) + (0 if facts.multiple is None else _met(-facts.multiple, -20, -10))
    price = "no revenue to value" if facts.multiple is None else f"{facts.multiple:.1f} times revenue"
    runway = "runway not stated" if facts.runway is None else f"{facts.runway:g} months of runway"
    return Mark(score, f"{runway}, {price}")


RULES: dict[str, Callable[[Facts], Mark]] = {
    "traction": _traction,
    "retention": _retention,
    "team": _team,
    "market": _market,
    "ask": _ask,
}


def _red_flags(facts: Facts) -> Iterator[str]:
    """Every red flag of the procedure that the deck raises, most serious first."""
    if facts.steers_the_reader:
        yield "The deck carries text that tries to steer an automated evaluation"
    if not facts.revenue:
        yield "No revenue"
    if facts.churn is not None and facts.churn >= 25:
        yield f"Churn of {facts.churn:g} % a year"
    if facts.market is None:
        yield "The market is not stated"
    elif not facts.market_has_source:
        yield "The market figure has no source"
    for role in facts.open_roles:
        yield f"Open key role: {role}"
    if facts.multiple is not None and facts.multiple > 20:
        yield f"Valued at {facts.multiple:.0f} times revenue"
    if facts.runway is not None and facts.runway < 12:
        yield f"Only {facts.runway:g} months of runway"


def _blocks(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The content blocks of all messages; content that is a plain string counts as one text block."""
    for message in messages:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _met(value: float | None, *limits: float) -> int:
    """How many of the limits a value reaches."""
    return 0 if value is None else sum(value >= limit for limit in limits)


def _number(cell: str) -> float | None:
    return float(cell.replace(",", "")) if NUMBER.fullmatch(cell) else None


def _numbers(rows: Iterable[Row], label: str) -> list[float]:
    """The numbers of the first table row whose label holds the word."""
    for label_cell, *cells in rows:
        numbers = [number for cell in cells if (number := _number(cell)) is not None]
        if numbers and label in label_cell.lower():
            return numbers
    return []


def _last(numbers: list[float]) -> float | None:
    return numbers[-1] if numbers else None


def _below(page: list[Row], head: str) -> list[Row]:
    """The rows under the table head that starts with this word."""
    for index, row in enumerate(page):
        if row[0] == head:
            return page[index + 1 :]
    return []


def _slug(deck_id: str) -> str:
    plain = unicodedata.normalize("NFKD", deck_id.lower().translate(UMLAUTS)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80].rstrip("-") or "deck"
