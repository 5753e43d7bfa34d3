"""The scripted stand-in for the model behind `main`: it does what the worker's instructions say, one turn at a time.

It keeps nothing between turns. Each turn is read off the conversation so far, the way a model reads it: what was
called, and what came back. Names of decks, scores and refusals come from tool results only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["reply"]

DECKS, PROCEDURE, REPORTS = "pipeline", "pipeline/PROCEDURE.md", "evaluations"
SUMMARY = f"{REPORTS}/summary.md"
LABEL = "Made by the project's script: no model was called."


@dataclass(frozen=True)
class Call:
    """A finished tool call of the conversation."""

    name: str
    input: dict[str, Any]
    result: str
    failed: bool


@dataclass(frozen=True)
class Report:
    """One evaluation, the deck it is of, and the file it goes to."""

    deck: str
    path: str
    evaluation: dict[str, Any]


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`.

    Args:
        request: The turn as the scripted model hands it on.

    Returns:
        `{"tool_calls": […]}` for the next stage, or `{"text": …}` when there is nothing left to do.
    """
    calls = finished_calls(request["messages"])
    listing = _calls_of(calls, "list_files")
    if not listing:
        return _turn(_call("list_files", path=DECKS, pattern="**/*.pdf"))
    if listing[0].failed:
        return {"text": f"The decks could not be listed: {listing[0].result}"}
    listed = json.loads(listing[0].result)
    decks = [file["path"] for file in listed["files"]]
    if not decks:
        return {"text": f"There are no decks in {DECKS}."}

    procedure = _calls_of(calls, "read_file")
    if not procedure:
        return _turn(_call("read_file", path=PROCEDURE))
    evaluations = _calls_of(calls, "worker_call")
    if not evaluations:
        return _turn(*(evaluation_call(deck, procedure[0]) for deck in decks))

    reports = rank(evaluations)
    writes = {call.input["path"]: call for call in _calls_of(calls, "write_file")}
    if reports and not writes:
        return _turn(*(_call("write_file", path=report.path, content=report_text(report)) for report in reports))
    troubles = list(_troubles(procedure[0], evaluations, writes))
    if unlisted := listed["total"] - len(decks):
        troubles.append(f"{unlisted} more decks were not listed")
    if SUMMARY not in writes:
        return _turn(_call("write_file", path=SUMMARY, content=summary_text(reports, troubles)))
    return {"text": closing_text(reports, troubles)}


def finished_calls(messages: Iterable[dict[str, Any]]) -> list[Call]:
    """All tool calls that have a result, in the order in which they were made."""
    made: dict[str, dict[str, Any]] = {}
    results: dict[str, dict[str, Any]] = {}
    for message in messages:
        for block in message["content"] if not isinstance(message["content"], str) else []:
            if block["type"] == "tool_use":
                made[block["id"]] = block
            elif block["type"] == "tool_result":
                results[block["tool_use_id"]] = block
    return [
        Call(use["name"], use["input"], _text(results[key]["content"]), bool(results[key].get("is_error")))
        for key, use in made.items()
        if key in results
    ]


def evaluation_call(deck: str, procedure: Call) -> dict[str, Any]:
    """The call that has one deck evaluated, with the procedure where there is one."""
    arguments = {
        "worker": "pitch_evaluator",
        "input_data": f"Evaluate the attached deck {deck.removeprefix(DECKS + '/')}.",
        "attachments": [deck],
    }
    if not procedure.failed:
        arguments["extra_context"] = procedure.result
    return _call("worker_call", **arguments)


def rank(evaluations: Iterable[Call]) -> list[Report]:
    """The evaluations that succeeded, best first, each with a file name of its own."""
    reports = []
    taken = {"summary"}
    for call in evaluations:
        if call.failed:
            continue
        evaluation = json.loads(call.result)
        slug = name = evaluation["file_slug"]
        number = 1
        while name in taken:
            number += 1
            name = f"{slug}-{number}"
        taken.add(name)
        reports.append(Report(call.input["attachments"][0], f"{REPORTS}/{name}.md", evaluation))
    return sorted(reports, key=lambda report: (-report.evaluation["score"], report.deck))


def report_text(report: Report) -> str:
    """One evaluation as Markdown, in the form of `templates/report.md`."""
    evaluation = report.evaluation
    lines = [
        f"# {evaluation['company']}",
        "",
        f"**{evaluation['verdict']}**, {evaluation['score']:g} of 100 (deck: {evaluation['deck_id']})",
        "",
        evaluation["summary"],
        "",
        "| Dimension | Score | Why |",
        "| --- | --- | --- |",
        *(f"| {name} | {mark['score']} | {mark['reason']} |" for name, mark in evaluation["dimensions"].items()),
        "",
        "## Red flags",
        "",
        *(f"- {flag}" for flag in evaluation["red_flags"] or ["none"]),
        "",
        f"*{LABEL}*",
    ]
    return "\n".join(lines) + "\n"


def summary_text(reports: list[Report], troubles: list[str]) -> str:
    """The ranking as Markdown, with what went wrong under it."""
    rows = (
        f"| {place} | {report.evaluation['company']} | {report.evaluation['score']:g} | {report.evaluation['verdict']} "
        f"| {report.path.removeprefix(REPORTS + '/')} |"
        for place, report in enumerate(reports, start=1)
    )
    not_done = ["## Not done", "", *(f"- {trouble}" for trouble in troubles), ""] if troubles else []
    lines = [
        "# Pitch decks, ranked",
        "",
        "| Rank | Company | Score | Verdict | Report |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
        *not_done,
        f"*{LABEL}*",
    ]
    return "\n".join(lines) + "\n"


def closing_text(reports: list[Report], troubles: list[str]) -> str:
    """What the caller is told at the end."""
    lines = [f"Evaluated ({len(reports)}), best first:" if reports else "No deck could be evaluated."]
    for place, report in enumerate(reports, start=1):
        evaluation = report.evaluation
        lines.append(f"{place}. {evaluation['company']}: {evaluation['score']:g}, {evaluation['verdict']}")
    if troubles:
        lines += ["Not done:", *(f"- {trouble}" for trouble in troubles)]
    return "\n".join([*lines, LABEL])


def _troubles(procedure: Call, evaluations: Iterable[Call], writes: dict[str, Call]) -> Iterator[str]:
    if procedure.failed:
        yield f"{PROCEDURE} was not read: {procedure.result}"
    for call in evaluations:
        if call.failed:
            yield f"{call.input['attachments'][0]} was not evaluated: {call.result}"
    for path, call in writes.items():
        if call.failed:
            yield f"{path} was not written: {call.result}"


def _calls_of(calls: Iterable[Call], name: str) -> list[Call]:
    return [call for call in calls if call.name == name]


def _turn(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(calls)}


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "input": arguments}


def _text(content: str | list[dict[str, Any]]) -> str:
    """A tool result's text, whether it came as a string or as blocks."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
