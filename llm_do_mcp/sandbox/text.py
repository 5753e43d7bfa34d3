"""Bytes of a file to text and back: what is text, and in which encoding, told from the bytes alone.

UTF-8 is assumed; a byte order mark says otherwise. Nothing is guessed beyond that: what does not decode, and what
holds a NUL, is refused with the offset of the byte where it shows, so that no reader is handed garbage.
"""

from __future__ import annotations

import codecs
from typing import Literal

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(ValueError):
    """Bytes that are not text; the message says where and why."""


def encoding_of(head: bytes) -> Encoding:
    """The encoding that a file's first three bytes tell."""
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


def decode(data: bytes, *, whole: bool) -> str:
    """Text without its byte order mark, line ends as they are.

    Args:
        data: A file from its beginning.
        whole: Whether the file ends there. Otherwise a character that is cut at the end is left out.

    Raises:
        NotText: Not in the encoding that it begins with, or not text at all.
    """
    encoding = encoding_of(data)
    start = len(_mark_of(encoding))
    body = data[start:]
    try:
        text = codecs.getincrementaldecoder("utf-8" if encoding == "utf-8-sig" else encoding)().decode(body, whole)
    except UnicodeDecodeError as error:
        offset = start + error.start
        raise NotText(f"not {encoding} text: byte {offset} is {data[offset]:#04x} ({error.reason})") from None
    if (position := text.find("\0")) >= 0:
        raise NotText(f"not text: a NUL character at byte {len(encode(text[:position], encoding))}")
    return text


def encode(text: str, encoding: Encoding) -> bytes:
    """The bytes of a text, with the byte order mark that its encoding has in a file, and never with two.

    Raises:
        NotText: A lone surrogate, which no encoding can hold.
    """
    try:
        mark = _mark_of(encoding)
        return mark + (text.removeprefix("\ufeff") if mark else text).encode(encoding.removesuffix("-sig"))
    except UnicodeEncodeError as error:
        raise NotText(f"character {error.start} is half of a surrogate pair and cannot be written") from None


def _mark_of(encoding: Encoding) -> bytes:
    return next((mark for mark, marked in _MARKS if marked == encoding), b"")
