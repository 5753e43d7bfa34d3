"""The outline of a text: the lines that define something, with their numbers, by the table of languages."""

from __future__ import annotations

from llm_do_mcp.te.languages import Language, language_of
from llm_do_mcp.te.text import shown_text

MOST = 300
ENTRY = 60
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"


def outline(path: str, text: bytes) -> list[str]:
    """Entries such as `12 class Engine`, in the order of the file; the deepest are left out where there are many."""
    language = language_of(path.encode("utf-8", "replace"))
    entries: list[tuple[int, int, str]] = []
    fenced = False
    for number, line in enumerate(text.split(b"\n"), 1):
        if "heading" in language.forms:
            fenced ^= line.startswith((b"```", b"~~~"))
            found = None if fenced else _heading(line)
        else:
            found = _entry(line, language)
        if found is not None:
            depth, told = found
            entries.append((depth, number, shown_text(told, ENTRY)))
    depths = sorted({depth for depth, _, _ in entries})
    while len(entries) > MOST and len(depths) > 1:
        deepest = depths.pop()
        entries = [entry for entry in entries if entry[0] < deepest]
    told_entries = [f"{number} {told}" for _, number, told in entries]
    more = len(told_entries) - MOST
    return [*told_entries[:MOST], f"{more} more"] if more > 0 else told_entries


def _heading(line: bytes) -> tuple[int, bytes] | None:
    title = line.lstrip(b"#")
    depth = len(line) - len(title)
    return (depth, line.rstrip(b" \r#")) if 0 < depth <= 6 and title[:1] == b" " else None


def _entry(line: bytes, language: Language) -> tuple[int, bytes] | None:
    body = line.lstrip()
    if not body or len(body) > 500 or body.startswith(language.comments):
        return None
    depth = len(line) - len(body)
    if "key" in language.forms:
        return _key(body) if not depth else None
    words = body.split(None, 6)
    first = 0
    while first < len(words) - 1 and words[first] in language.modifiers and words[first] not in language.keywords:
        first += 1
    if words[first] in language.keywords and first + 1 < len(words):
        return (depth, _named(body)) if words[first + 1][:1] in _WORD or words[first + 1][:1] in b"(*" else None
    if not depth and {"called", "split", "label"} & language.forms and _is_function(body):
        return depth, _named(body)
    return None


def _key(body: bytes) -> tuple[int, bytes] | None:
    if body.startswith(b"["):
        return 0, body.partition(b"]")[0] + b"]"
    name, colon, _ = body.partition(b":")
    return (0, name) if colon and name.strip(_WORD + b"-. \"'") == b"" else None


def _is_function(body: bytes) -> bool:
    """`type name(…)` at the margin that is no statement and no mere declaration."""
    before, bracket, _ = body.partition(b"(")
    end = body.rstrip()[-1:]
    return bool(bracket) and before[-1:] in _WORD and end not in (b";", b",", b"\\") and b"=" not in before


def _named(body: bytes) -> bytes:
    """A definition's start: without its arguments and its body."""
    end = min(
        (at for at in (body.find(mark, 1) for mark in (b"(", b"{", b":", b"=", b"<")) if at > 0), default=len(body)
    )
    if body.startswith(b"func ("):  # Go's receiver belongs to the name
        end = body.find(b"(", body.find(b")"))
    return body[: end if end > 0 else len(body)].rstrip()
