"""`replay:RUN`: the turns that a recorded run of the same project had, in place of a model. No model is called.

A turn is found by its place in the run, which is the same when the same worker does the same again; so one recording
answers for the whole tree of workers. What is asked must be what was asked then: the record holds a digest of it.
Where it is not the same, the error names the first difference that the record still shows.

The runs' store is not imported but handed in (`Records`): models know nothing of how runs are kept.
"""

from __future__ import annotations

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
        names, now = [function["shown"] for function in then["functions"]], [tool.name for tool in request.tools]
        if names != now:
            yield f"the functions: {_both(', '.join(names), ', '.join(now))}"
        opening = [text for text in (*then["context"], then["prompt"]) if text]
        said = [block["text"] for block in request.messages[0]["content"] if block["type"] == "text"]
        if (opening or said) and opening != said and said != ["(no input)"]:
            yield f"the input: {_both(json.dumps(opening), json.dumps(said))}"
        files = [file["name"] for file in then["attachments"]]
        attached = [block["name"] for block in request.messages[0]["content"] if block["type"] == "attachment"]
        if files != attached:
            yield f"the attachments: {_both(', '.join(files), ', '.join(attached))}"
    yield from _other_results(recorded, request, path)


def _other_results(recorded: Mapping[str, Record], request: Request, path: str) -> Iterator[str]:
    turn = -1
    for message in request.messages:
        if message["role"] == "assistant":
            turn += 1
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        for index, block in enumerate(results):
            record = recorded.get(f"{path}t{turn}.{index}")
            if record is None or record.state not in ("done", "failed"):
                continue
            then = record.data if isinstance(record.data, str) else json.dumps(record.data, ensure_ascii=False)
            if (then or "(nothing)") != block["content"]:
                yield f"what {record.kind} gave in turn {turn + 1}: {_both(then, block['content'])}"


def _both(then: str, now: str) -> str:
    """Both sides from shortly before where they part."""
    same = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    start = max(0, same - SHOWN_CHARS // 3)
    return f"then {_piece(then, start)}, now {_piece(now, start)}"


def _piece(text: str, start: int) -> str:
    before, after = "…" if start else "", "…" if len(text) > start + SHOWN_CHARS else ""
    return f"{before}{text[start : start + SHOWN_CHARS]!r}{after}"
