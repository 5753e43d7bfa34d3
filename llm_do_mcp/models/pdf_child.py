"""Reads one PDF from standard input, and writes what is known of it as JSON to standard output.

A process of its own, started by path: a parser of foreign files may take all memory or never end, and can be killed
here. What it finds wrong is the last line on standard error, and its exit code is 1.
"""

from __future__ import annotations

import io
import json
import sys

MOST_CHARS = 2_000_000


def main() -> None:
    """With the argument `text` also the document's text, page by page."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted:
            json.dump({"encrypted": True, "problem": "it is encrypted"}, sys.stdout)
            return
        pages = len(reader.pages)
        texts: list[str] = []
        room = MOST_CHARS if sys.argv[1:] == ["text"] else 0
        for number in range(pages if room else 0):
            texts.append(reader.pages[number].extract_text()[:room])
            room -= len(texts[-1])
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        sys.exit(f"{type(error).__name__}: {error}".replace("\n", " ")[:300])
    text = "\n\n".join(f"[page {number}]\n{text}" for number, text in enumerate(texts, 1) if text.strip())
    json.dump({"pages": pages, "text": text, "whole": room > 0}, sys.stdout)


if __name__ == "__main__":
    main()
