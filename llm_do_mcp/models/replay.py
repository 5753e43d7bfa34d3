"""`replay:RUN`: the turns that a recorded run of the same project had, in place of a model. No model is called.

A turn is found by its place in the run, which is the same when the same worker does the same again; so one recording
answers for the whole tree of workers. What is asked must be what was asked then: the record holds a digest of it.
Where it is not the same, the error names the first difference that the record still shows.

The runs' store is not imported but handed in (`Records`): models know nothing of how runs are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from llm_do_mcp.models.failures import failure
from llm_do_mcp.models.turn import Reply, Request, Usage

SHOWN_CHARS = 80
"""How much of each side of a difference is shown."""
DO = "replay it with the same input and files, or record the run anew"


def replayed(model: str) -> str | None:
    """The id of the run that a model's name has replayed; None for other models."""
    provider, _, run = model.partition(":")
    return run if provider == "replay" else None


class Record(Protocol):
    """A record of a run, as the runs' store has it."""

    @property
    def key(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def data(self) -> Any: ...


Records = Callable[[str], Awaitable[Sequence[Record]]]
"""Gives all records of the run with an id; none where there is no such run."""


class ReplayModel:
    """A recording in place of a model.

    Args:
        run: Id of the recorded run.
        records: Where it is recorded.
    """

    calls_model = False

    def __init__(self, run: str, records: Records) -> None:
        self.name = f"replay:{run}"
        self._run, self._records = run, records
        self._recorded: Mapping[str, Record] | None = None

    async def reply(self, request: Request, *, deadline: float) -> Reply:
        """See `Model.reply`. The record is read once, with the first turn."""
        if self._recorded is None:
            self._recorded = {record.key: record for record in await self._records(self._run)}
        if not self._recorded:
            raise failure(request, f"there is no run {self._run}", "name one that `llm-do runs` lists")
        record = self._recorded.get(request.key)
        if record is not None and record.kind == "model" and record.state == "failed":
            what = f"run {self._run} got no answer to turn {request.turn + 1} either: {record.data['error']}"
            raise failure(request, what, "record a run that a model answers")
        if record is None or record.kind != "model" or record.state != "done":
            raise failure(request, f"run {self._run} has no turn {request.turn + 1} of this worker at this place", DO)
        if record.digest != request.digest:
            found = next(_differences(self._recorded, request), "what differs is not in the record")
            where = f"in turn {request.turn + 1} something else is asked than in run {self._run}"
            raise failure(request, f"{where}: {found}", DO)
        recorded = record.data
        usage = Usage(recorded["usage"]["input_tokens"], recorded["usage"]["output_tokens"])
        return Reply(tuple(recorded["content"]), recorded["stop_reason"], usage, self.name)

    async def aclose(self) -> None:
        """See `Model.aclose`."""


def _differences(recorded: Mapping[str, Record], request: Request) -> Iterator[str]:
    """What differs, as far as the record shows it: instructions, functions, the first message, results of calls."""
    path = request.key.removesuffix(f"t{request.turn}")
    record = recorded.get(path + "definition")
    if record is not None:
        then = record.data
        system = "\n\n".join((then["instructions"], *then["system_context"]))
        if system != request.system:
            yield f"the instructions: {_both(system, request.system)}"
        hidden = then.get("hidden", ())  # functions that could only have been refused, and its model was not told of
        names = [name for function in then["functions"] if (name := function["shown"]) not in hidden]
        now = [tool.name for tool in request.tools]
        if names != now:
            yield f"the functions: {_both(', '.join(names), ', '.join(now))}"
        opening = [text for text in (*then["context"], then["prompt"]) if text.strip()]
        said = [block["text"] for block in request.messages[0]["content"] if block["type"] == "text"]
        if (opening or said) and opening != said and said != ["(no input)"]:
            yield f"the input: {_both(json.dumps(opening), json.dumps(said))}"
        yield from _other_files(then["attachments"], request)
    yield from _other_results(recorded, request, path)


def _other_files(then: Sequence[Mapping[str, Any]], request: Request) -> Iterator[str]:
    names = [file["name"] for file in then]
    attached = [block for block in request.messages[0]["content"] if block["type"] == "attachment"]
    now = [block["name"] for block in attached]
    if names != now:
        yield f"the attachments: {_both(', '.join(names), ', '.join(now))}"
        return
    for file, block in zip(then, attached, strict=True):
        digest = hashlib.sha256(block["data"]).hexdigest()
        if digest != file["blob"]:
            sizes = f"then {file['size']} bytes (sha256 {file['blob'][:12]}), now {len(block['data'])} ({digest[:12]})"
            yield f"the content of the attachment {file['name']}: {sizes}"


def _other_results(recorded: Mapping[str, Record], request: Request, path: str) -> Iterator[str]:
    """Results that are others, and at last those that may be, since they lack what a person noted then."""
    turn = -1
    unnoted = []
    for message in request.messages:
        if message["role"] == "assistant":
            turn += 1
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        for index, block in enumerate(results):
            key, now = f"{path}t{turn}.{index}", block["content"]
            record, answers = recorded.get(key), _answers(recorded, key)
            if record is None and answers and not block["is_error"]:
                yield f"a call in turn {turn + 1}: then it was not made ({answers[-1]['by']}), now {_piece(now)!r}"
            if record is None or record.state not in ("done", "failed"):
                continue
            then = record.data if isinstance(record.data, str) else json.dumps(record.data, ensure_ascii=False)
            notes = [answer["note"] for answer in answers if answer["note"]]
            what = f"what {record.kind} gave in turn {turn + 1}: {_both(chr(10).join((then, *notes)), now)}"
            if not now.startswith(then) or (not notes and now != (then or "(nothing)")):
                yield what
            elif any(note not in now for note in notes):
                unnoted.append(what)
    yield from unnoted


def _answers(recorded: Mapping[str, Record], call: str) -> list[Mapping[str, Any]]:
    """What was answered when a call was asked about."""
    questions = (event for key, event in recorded.items() if key.startswith(f"{call}.") and event.kind == "ask")
    return [event.data["answer"] for event in questions if event.state == "answered"]


def parted(one: str, other: str, most: int = SHOWN_CHARS) -> tuple[str, str]:
    """Two texts as a message has room for them: long ones from shortly before where they part."""
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = 0 if max(len(one), len(other)) <= most else max(0, same - most // 3)
    return _piece(one, start, most), _piece(other, start, most)


def _both(then: str, now: str) -> str:
    then, now = parted(then, now)
    return f"then {then!r}, now {now!r}"


def _piece(text: str, start: int = 0, most: int = SHOWN_CHARS) -> str:
    before, after = "…" if start else "", "…" if len(text) > start + most else ""
    return f"{before}{text[start : start + most]}{after}"
