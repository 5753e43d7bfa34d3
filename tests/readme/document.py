"""The README, and those of the examples, taken apart: sections, fenced blocks, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.examples.scripts import REPOSITORY

PATH = REPOSITORY / "README.md"
TEXT = PATH.read_text(encoding="utf-8")
ELISION = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        section: The heading of the second level that it stands below.
        language: As the fence names it.
        text: What is in it.
        line: The line of the README on which it begins.
    """

    section: str
    language: str
    text: str
    line: int

    @property
    def path(self) -> str:
        """The file that a block shows, which its first comment names."""
        first = next(line for line in self.text.splitlines() if line != "---")
        assert first.startswith("# "), f"README.md:{self.line}: the first line of the block names no file"
        return first.removeprefix("# ")


@dataclass(frozen=True)
class Command:
    """A line to type, and what the README shows of its output: None where it shows none."""

    line: str
    shown: str | None
    block: Block

    def is_shown(self, output: str) -> bool:
        """Whether the output is what is shown, where `…` stands for anything."""
        if self.shown is None:
            return True
        pieces = map(re.escape, self.shown.strip().split(ELISION))
        return re.fullmatch(".*?".join(pieces), output.strip(), re.DOTALL) is not None


def blocks(readme: str = TEXT) -> Iterator[Block]:
    """All fenced blocks, in their order."""
    section = language = ""
    inside: list[str] | None = None
    for number, line in enumerate(readme.splitlines(), 1):
        if line.startswith("```") and inside is None:
            language, inside, begins = line[3:], [], number
        elif line == "```" and inside is not None:
            yield Block(section, language, "".join(inside), begins)
            inside = None
        elif inside is not None:
            inside.append(f"{line}\n")
        elif line.startswith("## "):
            section = line[3:]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block; a line that ends with a backslash goes on in the next."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", " ").partition("\n")
        yield Command(line, output if output.strip() else None, block)


def keys(heading: str) -> list[str]:
    """What stands in the first column of the table below a heading or behind a header cell."""
    table = TEXT[TEXT.index(heading) :]
    rows = re.search(r"^\| --- \|.*\n((?:\|.*\n)+)", table, re.MULTILINE)
    assert rows is not None
    return [name for row in rows[1].splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
