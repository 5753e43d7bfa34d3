"""The scripted coordinator drives the job from tool results alone, and says what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.examples.scripts import load

Answer = tuple[str, bool]
Tool = Callable[[dict[str, Any]], Answer]


def _listing(*names: str, total: int | None = None) -> Tool:
    files = [{"path": f"pipeline/{name}", "bytes": 9} for name in names]
    return lambda _: (json.dumps({"files": files, "total": len(files) if total is None else total}), False)


def _evaluation(call: dict[str, Any]) -> Answer:
    """An evaluation whose score is in the deck's name: `alpha-70.pdf`."""
    stem = call["attachments"][0].removeprefix("pipeline/").removesuffix(".pdf")
    name, score = stem.rsplit("-", 1)
    mark = {"score": 3, "reason": "so so"}
    evaluation = {
        "deck_id": stem,
        "file_slug": name,
        "company": name.title(),
        "summary": "A company.",
        "dimensions": {"team": mark},
        "score": int(score),
        "verdict": "watch",
        "red_flags": [],
    }
    return json.dumps(evaluation), False


def _procedure(_: dict[str, Any]) -> Answer:
    return "the procedure", False


def _accepted(_: dict[str, Any]) -> Answer:
    return "{}", False


def _failing(message: str, when: Callable[[dict[str, Any]], bool], otherwise: Tool) -> Tool:
    return lambda call: (message, True) if when(call) else otherwise(call)


@dataclass
class Conversation:
    """Plays the other side: hands the coordinator's calls to the tools below, and keeps what was called."""

    list_files: Tool = field(default_factory=lambda: _listing("alpha-40.pdf", "beta-90.pdf"))
    read_file: Tool = _procedure
    worker_call: Tool = _evaluation
    write_file: Tool = _accepted
    turns: list[list[dict[str, Any]]] = field(default_factory=list)

    def play(self) -> str:
        """Run to the end; the final text."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Evaluate all decks."}]
        ids = iter(range(1000))
        for turn in range(20):
            request = {"worker": "main", "turn": turn, "system": "…", "messages": messages, "tools": []}
            answer = load("scripted/coordinator.py").reply(request)
            if "text" in answer:
                return str(answer["text"])
            self.turns.append(answer["tool_calls"])
            uses = [{"type": "tool_use", "id": f"t{next(ids)}", **call} for call in answer["tool_calls"]]
            messages.append({"role": "assistant", "content": uses})
            messages.append({"role": "user", "content": [self._result(use) for use in uses]})
        raise AssertionError("the coordinator does not come to an end")

    def _result(self, use: dict[str, Any]) -> dict[str, Any]:
        text, failed = getattr(self, use["name"])(use["input"])
        content = [{"type": "text", "text": text}]
        return {"type": "tool_result", "tool_use_id": use["id"], "content": content, "is_error": failed}

    def called(self, tool: str) -> Iterator[dict[str, Any]]:
        return (call["input"] for turn in self.turns for call in turn if call["name"] == tool)

    def written(self, path: str) -> str:
        return str(next(call["content"] for call in self.called("write_file") if call["path"] == path))


@pytest.mark.proves("EX-COORDINATOR-DRIVES")
def test_it_lists_reads_delegates_and_writes_in_as_few_turns_as_possible() -> None:
    talk = Conversation()
    text = talk.play()

    assert [[call["name"] for call in turn] for turn in talk.turns] == [
        ["list_files"],
        ["read_file"],
        ["worker_call", "worker_call"],
        ["write_file", "write_file"],
        ["write_file"],
    ]
    assert list(talk.called("worker_call")) == [
        {
            "worker": "pitch_evaluator",
            "input_data": f"Evaluate the attached deck {name}.",
            "attachments": [f"pipeline/{name}"],
            "extra_context": "the procedure",
        }
        for name in ("alpha-40.pdf", "beta-90.pdf")
    ]
    assert {call["path"] for call in talk.called("write_file")} == {
        "evaluations/alpha.md",
        "evaluations/beta.md",
        "evaluations/summary.md",
    }
    assert "Not done" not in text


@pytest.mark.proves("EX-COORDINATOR-DRIVES")
def test_the_summary_and_the_answer_rank_best_first() -> None:
    talk = Conversation(list_files=_listing("a-40.pdf", "b-90.pdf", "c-65.pdf"))
    text = talk.play()

    rows = [line for line in talk.written("evaluations/summary.md").splitlines() if line[:3] in ("| 1", "| 2", "| 3")]
    assert rows == ["| 1 | B | 90 | watch | b.md |", "| 2 | C | 65 | watch | c.md |", "| 3 | A | 40 | watch | a.md |"]
    assert text.index("1. B: 90") < text.index("2. C: 65") < text.index("3. A: 40")


@pytest.mark.proves("EX-COORDINATOR-LABEL")
def test_whatever_it_writes_says_that_no_model_was_called() -> None:
    talk = Conversation()
    text = talk.play()
    assert "no model was called" in text
    assert all("no model was called" in call["content"] for call in talk.called("write_file"))


@pytest.mark.proves("EX-COORDINATOR-NAMES")
def test_reports_whose_slug_is_taken_get_names_of_their_own() -> None:
    talk = Conversation(list_files=_listing("x-1.pdf", "x-2.pdf", "summary-3.pdf"))
    talk.play()
    assert [call["path"].removeprefix("evaluations/") for call in talk.called("write_file")] == [
        "summary-2.md",
        "x-2.md",
        "x.md",
        "summary.md",
    ]


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_a_refused_write_is_not_tried_again_and_is_named_at_the_end() -> None:
    refused = _failing("refused by the user", lambda call: call["path"] == "evaluations/beta.md", _accepted)
    talk = Conversation(write_file=refused)
    text = talk.play()

    assert len(list(talk.called("write_file"))) == 3
    assert "evaluations/beta.md was not written: refused by the user" in text
    assert "evaluations/beta.md was not written" in talk.written("evaluations/summary.md")


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_when_every_write_is_refused_it_ends_and_still_gives_the_ranking() -> None:
    talk = Conversation(write_file=lambda _: ("nobody could be asked", True))
    text = talk.play()
    assert "1. Beta: 90" in text
    assert text.count("was not written: nobody could be asked") == 3


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_a_failed_evaluation_is_named_and_the_others_go_on() -> None:
    fails = _failing("not a PDF", lambda call: "alpha" in call["attachments"][0], _evaluation)
    talk = Conversation(worker_call=fails)
    text = talk.play()

    assert "pipeline/alpha-40.pdf was not evaluated: not a PDF" in text
    assert "1. Beta: 90" in text
    assert [call["path"] for call in talk.called("write_file")] == ["evaluations/beta.md", "evaluations/summary.md"]


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_when_every_evaluation_fails_only_the_summary_is_written() -> None:
    talk = Conversation(worker_call=lambda _: ("model error", True))
    text = talk.play()
    assert text.startswith("No deck could be evaluated.")
    assert [call["path"] for call in talk.called("write_file")] == ["evaluations/summary.md"]


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_without_a_procedure_it_goes_on_and_says_so() -> None:
    talk = Conversation(read_file=lambda _: ("no such file", True))
    text = talk.play()
    assert not any("extra_context" in call for call in talk.called("worker_call"))
    assert "pipeline/PROCEDURE.md was not read: no such file" in text


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        (_listing(), "There are no decks in pipeline."),
        (lambda _: ("no such alias", True), "The decks could not be listed: no such alias"),
    ],
)
def test_without_decks_it_ends_at_once(listing: Tool, expected: str) -> None:
    talk = Conversation(list_files=listing)
    assert talk.play() == expected
    assert len(talk.turns) == 1


@pytest.mark.proves("EX-COORDINATOR-TROUBLE")
def test_decks_that_the_listing_left_out_are_counted() -> None:
    talk = Conversation(list_files=_listing("a-40.pdf", total=7))
    assert "6 more decks were not listed" in talk.play()
