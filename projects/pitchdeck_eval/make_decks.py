"""Draws the example decks: `python make_decks.py [FOLDER]` (default: `input/` beside this file).

Standard library only, and the same bytes every time (no dates, no random ids), so that the decks in git can be
checked against this script. Content streams are not compressed: the text of a page can be found in the file as
it stands, which is what the scripted evaluator (`scripted/evaluator.py`) does. Text is WinAnsi (cp1252), which
has the umlauts and the euro sign.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from deck_texts import DECKS, Deck, Slide, Table

WIDTH, HEIGHT, MARGIN = 960, 540, 60
WHITE, INK, GREY, HAIRLINE = (1.0, 1.0, 1.0), (0.13, 0.13, 0.15), (0.45, 0.45, 0.48), (0.80, 0.80, 0.82)
REGULAR, BOLD = "F1", "F2"
POINT_SIZE, POINT_LEADING, POINT_CHARACTERS = 22, 31, 78
CELL_SIZE, ROW_HEIGHT, COLUMN_WIDTH = 19, 42, 200
# Helvetica's widths in thousandths of the size, for what numbers and column heads are made of; the rest is close
# to the width of a digit.
DIGIT_WIDTH = 556
WIDTHS = {" ": 278, ".": 278, ",": 278, "-": 333, "f": 278, "t": 278, "i": 222, "l": 222, "r": 333, "%": 889}

Colour = tuple[float, float, float]


class Page:
    """The content stream of one page, built from the three things that a slide is drawn with."""

    def __init__(self) -> None:
        self._operations: list[bytes] = []

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Fill a rectangle; the lower left corner is given, in points."""
        self._operations.append(f"{_rgb(colour)} rg {x:g} {y:g} {width:g} {height:g} re f".encode("ascii"))

    def rule(self, x: float, y: float, width: float, colour: Colour, thickness: float = 0.8) -> None:
        """Draw a horizontal line."""
        line = f"{_rgb(colour)} RG {thickness:g} w {x:g} {y:g} m {x + width:g} {y:g} l S"
        self._operations.append(line.encode("ascii"))

    def text(self, x: float, y: float, text: str, *, size: float, colour: Colour = INK, font: str = REGULAR) -> None:
        """Write one line; the left end of its baseline is given."""
        head = f"BT /{font} {size:g} Tf {_rgb(colour)} rg 1 0 0 1 {x:g} {y:g} Tm "
        self._operations.append(head.encode("ascii") + _literal(text) + b" Tj ET")

    def stream(self) -> bytes:
        return b"\n".join(self._operations)


def _rgb(colour: Colour) -> str:
    return " ".join(f"{part:g}" for part in colour)


def _literal(text: str) -> bytes:
    raw = text.encode("cp1252")
    return b"(" + raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


def _width(text: str, size: float) -> float:
    return sum(WIDTHS.get(character, DIGIT_WIDTH) for character in text) * size / 1000


def title_page(deck: Deck) -> Page:
    """The cover: the company on its own colour."""
    page = Page()
    page.box(0, 0, WIDTH, HEIGHT, deck.colour)
    page.box(MARGIN, 262, 72, 5, WHITE)
    page.text(MARGIN, 300, deck.company, size=54, colour=WHITE, font=BOLD)
    page.text(MARGIN, 218, deck.tagline, size=22, colour=WHITE)
    page.text(MARGIN, 60, deck.occasion, size=14, colour=WHITE)
    return page


def slide_page(deck: Deck, slide: Slide, number: int) -> Page:
    """One slide: heading, points, table, small print, footer."""
    page = Page()
    page.box(0, 0, 14, HEIGHT, deck.colour)
    page.text(MARGIN, 462, slide.title, size=30, colour=deck.colour, font=BOLD)
    y = 408.0
    for point in slide.points:
        page.box(MARGIN, y + 4, 7, 7, deck.colour)
        for line in textwrap.wrap(point, POINT_CHARACTERS):
            page.text(MARGIN + 22, y, line, size=POINT_SIZE)
            y -= POINT_LEADING
        y -= 9
    if slide.table:
        _draw_table(page, slide.table, top=y + 12, colour=deck.colour)
    if slide.small_print:
        page.text(MARGIN, 60, slide.small_print, size=13, colour=GREY)
    page.rule(MARGIN, 46, WIDTH - 2 * MARGIN, HAIRLINE)
    page.text(MARGIN, 26, deck.company, size=11, colour=GREY)
    page.text(WIDTH - MARGIN - 12, 26, str(number), size=11, colour=GREY)
    return page


def _draw_table(page: Page, table: Table, *, top: float, colour: Colour) -> None:
    full = WIDTH - 2 * MARGIN
    columns = len(table.header)
    starts = [MARGIN, *(MARGIN + full - COLUMN_WIDTH * left for left in range(columns - 1, 0, -1))]
    ends = [*starts[1:], MARGIN + full]
    numeric = [all(_is_number(row[column]) for row in table.rows) for column in range(columns)]
    page.box(MARGIN, top - ROW_HEIGHT, full, ROW_HEIGHT, colour)
    for index, row in enumerate((table.header, *table.rows)):
        bottom = top - ROW_HEIGHT * (index + 1)
        ink, font = (WHITE, BOLD) if index == 0 else (INK, REGULAR)
        for column, cell in enumerate(row):
            x = ends[column] - 16 - _width(cell, CELL_SIZE) if numeric[column] else starts[column] + 12
            if cell:
                page.text(round(x, 2), bottom + 14, cell, size=CELL_SIZE, colour=ink, font=font)
        page.rule(MARGIN, bottom, full, colour if index == 0 else HAIRLINE)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("-").replace(",", "").replace(".", "").isdigit()


def pdf(deck: Deck) -> bytes:
    """The whole file: header, numbered objects, cross-reference table."""
    pages = [title_page(deck)]
    pages += [slide_page(deck, slide, number) for number, slide in enumerate(deck.slides, start=2)]
    first_page = 6
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode("ascii"),
        (font % "Helvetica").encode("ascii"),
        (font % "Helvetica-Bold").encode("ascii"),
        b"<< /Title " + _literal(deck.company) + b" >>",
    ]
    for index, page in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {first_page + 2 * index + 1} 0 R "
            f"/Resources << /Font << /{REGULAR} 3 0 R /{BOLD} 4 0 R >> >> >>".encode("ascii")
        )
        stream = page.stream()
        objects.append(f"<< /Length {len(stream)} >>\nstream\n".encode("ascii") + stream + b"\nendstream")

    # The comment with bytes above 127 tells tools that move files about that this one is not text.
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table_at = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 5 0 R >>\n" % (len(objects) + 1)
    out += b"startxref\n%d\n%%%%EOF\n" % table_at
    return bytes(out)


def main(folder: Path) -> None:
    """Write every deck into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for deck in DECKS:
        (folder / deck.file_name).write_bytes(pdf(deck))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "input")
