"""`te --handle H [--chunk N]`: what was left out of an answer, piece by piece, every character once.

What is behind a handle is one text. It is cut into chunks by the budget alone, so that chunk N is the same in whatever
process, and in whatever form, it is asked for: each holds as much as fits as JSON, which takes the most room. A chunk
ends with a line; only a line that is longer than a chunk goes on in the next, and the headers of both say so
(`continues`, `continued`).

The text of a large search is not written when the search is answered: that would take longer than the search. What
ripgrep has printed is kept instead, with what is needed to put the same lines into the same order once more, and
how many of them the answer had shown; the text is made from that when the handle is first used. Long lines, of which
an answer shows a part, are read from their files then, and stand whole at the text's end.
"""

from __future__ import annotations

import marshal  # fast and always loaded; what it reads was written by the same user, in a folder that is private

from llm_do_mcp.te.envelope import TeError, cut_lines, text_in_json
from llm_do_mcp.te.handles import LARGEST, Handles, is_handle
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, Protocol

    from llm_do_mcp.te.envelope import Frame, Line, Section

    class Recallable(Protocol):
        """A command that can put its lines into order once more from what it has read."""

        def remembered(self) -> tuple[object, Iterable[bytes]] | None:
            """Facts (of the kinds that `marshal` writes) and bytes; None where its lines are better written at once."""
            ...

        def recalled(self, facts: Any, pieces: Iterable[bytes], budget: int) -> Iterator[tuple[int, Iterable[Line]]]:
            """The sections of an answer of this budget, by number; then (-1) what none had, or had only in part."""
            ...


HEADER_ROOM = 200
"""Characters of a chunk's header at most."""
_PIECE = 1 << 20
_CAPPED = "# TE: the rest is more than is kept\n"


def keep(command: object, handles: Handles, sections: Sequence[Section], about: Mapping[str, Any]) -> str:
    """Keep the lines that were left out; returns their handle, or "" where they cannot be kept.

    Args:
        command: The command that was answered; one that is `Recallable` is remembered, of another the text is written.
        handles: Of its session.
        sections: Its answer's parts, with the lines that were taken.
        about: What is needed to run it once more, as `marshal` writes it.
    """
    of = about["arguments"][0]
    recallable: Recallable | None = command if hasattr(command, "remembered") else None  # type: ignore[assignment]
    if recallable is None or (remembered := recallable.remembered()) is None:
        left_out = (line for section in sections for line in section.rest())
        return handles.keep(lambda file: _write(file, left_out), of=of)
    facts, pieces = remembered
    recipe = {**about, "facts": facts, "taken": [len(section.taken) for section in sections]}

    def write(file: BinaryIO) -> None:
        marshal.dump(recipe, file)
        for piece in pieces:
            file.write(piece)

    return handles.keep(write, of=of, recipe=True)


def make(again: Callable[[Mapping[str, Any]], Recallable], recipe: BinaryIO, file: BinaryIO) -> None:
    """Write the text that a recipe stands for.

    Args:
        again: Makes the command of a recipe.
        recipe: As `keep` wrote it.
        file: Where the text goes.
    """
    about = marshal.load(recipe)
    pieces = iter(lambda: recipe.read(_PIECE), b"")
    sections = again(about).recalled(about["facts"], pieces, about["budget"])
    _write(file, (line for number, lines in sections for line in _left_out(about["taken"], number, lines)))


def _left_out(taken: Sequence[int], number: int, lines: Iterable[Line]) -> Iterable[Line]:
    if number < 0:
        return lines
    shown = taken[number] if number < len(taken) else 0
    return (line for at, line in enumerate(lines) if at >= shown and not line.is_cut)


def _write(file: BinaryIO, lines: Iterable[Line]) -> None:
    size = cut = 0
    for line in lines:
        text = line.text.encode() + b"\n"
        cut += line.is_cut
        size += len(text)
        if size > LARGEST:
            file.write(_CAPPED.encode())
            return
        file.write(text)
    if cut:
        file.write(cut_lines(cut).encode() + b"\n")


def chunk_asked_for(arguments: Sequence[str]) -> tuple[str, int]:
    """The handle and the number in `--handle H [--chunk N]`.

    Raises:
        TeError: `usage`, or `invalid_handle`.
    """
    given: dict[str, str] = {}
    rest = list(reversed(arguments))
    while rest:
        name, equals, value = rest.pop().partition("=")
        if name not in ("--handle", "--chunk") or name in given or not (equals or rest):
            raise TeError("usage", "what was left out is asked for with: te --handle res_… [--chunk N]")
        given[name] = value if equals else rest.pop()
    handle, number = given.get("--handle", ""), given.get("--chunk", "1")
    if not is_handle(handle):
        raise TeError("invalid_handle", f"{one_line(handle, 40)} is no handle: those are res_ and 16 digits")
    if not number.isdecimal() or not 0 < len(number) < 10 or int(number) == 0:
        raise TeError("usage", f"--chunk takes a number from 1 on, not {one_line(number, 20)}")
    return handle, int(number)


def serve(handle: str, number: int, text: BinaryIO, frame: Frame) -> str:
    """One chunk of a text, which begins where its file stands.

    Raises:
        TeError: `no_such_chunk`; or `budget_too_small`, where not even a character has room beside the header.
    """
    room = frame.budget - HEADER_ROOM
    if room < text_in_json("\n"):
        raise TeError(
            "budget_too_small", f"the budget has no room for a chunk beside {HEADER_ROOM} characters of header"
        )
    chunks = 0
    before = last = wanted = ""
    for last in _chunks(text, room):
        chunks += 1
        if chunks == number:
            wanted = last
        elif chunks < number:
            before = last
    if number > chunks:
        raise TeError("no_such_chunk", f"{handle} has {chunks} chunk{'s' if chunks > 1 else ''} at this budget")
    fields: dict[str, int | str] = {"handle": handle, "chunk": number, "chunks": chunks}
    if number < chunks:
        fields["truncated"] = True
    if before and not before.endswith("\n"):
        fields["continued"] = True
    if number < chunks and not wanted.endswith("\n"):
        fields["continues"] = True
    return frame.form.text("handle", fields, wanted)


def _chunks(text: BinaryIO, room: int) -> Iterator[str]:
    """The chunks of a text, each of at most `room` characters as JSON; at least one."""
    at = start = text.tell()
    while piece := _chunk(text, at, room):
        yield piece
        at += len(piece.encode())
    if at == start:
        yield ""


def _chunk(text: BinaryIO, start: int, room: int) -> str:
    text.seek(start)
    read = text.read(4 * room)  # a character has up to four bytes, the last of which may be cut off here
    whole = read.decode("utf-8", "ignore")
    piece = whole[:room]
    while (size := text_in_json(piece)) > room:
        piece = piece[: len(piece) * room // size]  # nearly: what is escaped may stand at its end
    if len(piece) < len(whole) and (newline := piece.rfind("\n")) >= 0:
        return piece[: newline + 1]
    return piece
