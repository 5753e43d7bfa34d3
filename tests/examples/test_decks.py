"""The decks of the example are real PDFs, and the script beside them draws exactly these."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pypdf
import pytest

from tests.examples.scripts import PROJECT, load

DECKS = load("deck_texts.py").DECKS


@pytest.mark.proves("EX-DECKS-REDRAWN")
def test_the_script_draws_the_decks_again_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", PROJECT / "make_decks.py", tmp_path], check=True, timeout=30)

    kept = {deck.name: deck.read_bytes() for deck in (PROJECT / "input").glob("*.pdf")}
    drawn = {deck.name: deck.read_bytes() for deck in tmp_path.iterdir()}
    assert drawn.keys() == kept.keys()
    assert [name for name in drawn if drawn[name] != kept[name]] == []


@pytest.mark.proves("EX-DECKS-SEVERAL")
def test_there_are_several_decks_and_one_has_an_awkward_name() -> None:
    assert len(DECKS) >= 4
    assert any(" " in deck.file_name and "ü" in deck.file_name for deck in DECKS)


@pytest.mark.proves("EX-DECKS-TEXT")
@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.company)
def test_every_page_holds_the_text_of_its_slide(deck) -> None:  # type: ignore[no-untyped-def]
    with pypdf.PdfReader(PROJECT / "input" / deck.file_name) as reader:
        pages = [_squeezed(page.extract_text()) for page in reader.pages]
        title = reader.metadata.title if reader.metadata else None

    assert title == deck.company
    assert 5 <= len(pages) <= 8
    assert len(pages) == 1 + len(deck.slides)
    assert _missing(pages[0], deck.company, deck.tagline, deck.occasion) == []
    for page, slide in zip(pages[1:], deck.slides, strict=True):
        cells = [cell for row in (slide.table.header, *slide.table.rows) for cell in row] if slide.table else []
        assert _missing(page, slide.title, slide.small_print, *slide.points, *cells) == []


@pytest.mark.proves("EX-DECKS-TEXT")
def test_most_pages_of_a_deck_have_a_table_with_rules() -> None:
    for deck in DECKS:
        streams = (PROJECT / "input" / deck.file_name).read_bytes().split(b"stream\n")
        drawn = [stream.count(b" l S") - 1 for stream in streams if b" l S" in stream]  # one is the footer's
        expected = [1 + len(slide.table.rows) if slide.table else 0 for slide in deck.slides]
        assert drawn == expected
        assert sum(rules > 0 for rules in drawn) >= 4


def _squeezed(text: str) -> str:
    """Without white space: how a reader of PDFs spaces lines and cells is its own affair."""
    return "".join(text.split())


def _missing(page: str, *expected: str) -> list[str]:
    return [text for text in expected if _squeezed(text) not in page]
