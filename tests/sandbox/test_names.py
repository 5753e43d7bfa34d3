"""What names look like, and that what is shown leads back to the file."""

from __future__ import annotations

import os
import random
import sys
import unicodedata

import pytest

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.sandbox import names
from tests.sandbox.conftest import World

ODD_NAMES = {
    "a\nb": "a\\nb",
    "a\tb": "a\\tb",
    "a\x1b[31mred": "a\\x1b[31mred",
    "abc\u202etxt.exe": "abc\\u202etxt.exe",
    "zero\u200bwidth": "zero\\u200bwidth",
    "\U000e0041tag": "\\U000e0041tag",
    "c1\u0085": "c1\\u0085",
    "nbsp\u00a0": "nbsp\\u00a0",
    "back\\slash": "back\\\\slash",
    "a\\nb": "a\\\\nb",
    " leading": "\\x20leading",
    "trailing ": "trailing\\x20",
    "trailing.": "trailing.",
    "-rf": "-rf",
    "--": "--",
    "😀.txt": "😀.txt",
    "Ünïcode ok.txt": "Ünïcode ok.txt",
    "\udcff.txt": "\\xff.txt",
    "in\udcc3valid": "in\\xc3valid",
}


@pytest.mark.proves("A019", "A020")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps any bytes as a name")
def test_odd_names_are_listed_escaped_and_opened_by_what_is_shown(world: World) -> None:
    for name in ODD_NAMES:
        (world.root / "sub" / name).write_text(ascii(name))
    with world.sandbox() as sandbox:
        listed = {entry.path for entry in sandbox.list("in", "*", under="sub").entries}
        assert {f"sub/{shown}" for shown in ODD_NAMES.values()} <= listed
        for name, shown in ODD_NAMES.items():
            assert shown.isprintable()
            assert sandbox.read_text("in", f"sub/{shown}").text == ascii(name)
            assert sandbox.list("in", shown.replace("[", "[[]"), under="sub").entries[0].path == f"sub/{shown}"
            assert sandbox.write_text("in", f"sub/{shown}", "new").created is False
            assert (world.root / "sub" / name).read_text() == "new"
            if "\\" not in name:
                assert sandbox.read_text("in", f"sub/{name}").text == "new", "the real name works as well"


@pytest.mark.proves("SANDBOX-NAMES-LEAD-BACK")
def test_every_shown_name_leads_back() -> None:
    pick = random.Random(3)
    alphabet = [*"ab.\\nxuU0 2e[*é\n\x1b", "\udcff", "\udc80", "\u0301", "\u202e", "\U0001f600", "\U000e0041", "\xff"]
    for _ in range(5_000):
        name = "".join(pick.choices(alphabet, k=pick.randint(1, 8)))
        for form in (names.shown(name), names.marked(name)):
            assert form.isprintable()
            assert names.real(form) == name


@pytest.mark.proves("A018")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep one of the two")
def test_names_that_look_the_same_are_told_apart(world: World) -> None:
    composed = unicodedata.normalize("NFC", "é.txt")
    decomposed = unicodedata.normalize("NFD", "é.txt")
    (world.root / composed).write_text("composed")
    (world.root / decomposed).write_text("decomposed")
    with world.sandbox() as sandbox:
        listed = [entry.path for entry in sandbox.list("in", "*").entries]
        assert listed == ["e\\u0301.txt", "file.txt", composed]
        assert sandbox.read_text("in", "e\\u0301.txt").text == "decomposed"
        assert sandbox.read_text("in", composed).text == "composed"


@pytest.mark.proves("A021")
@pytest.mark.parametrize(
    "path",
    [
        *("CON", "nul", "aux.txt", "sub/COM1", "lpt9.tar.gz", "con.worker", "CONIN$", "COM¹"),
        *("a:b", "a|b", "C:x", "C:/x", "\\\\srv\\x", "..\\x", "a?", "tab\tname"),
        *("PROGRA~1", "GIT~1/config", "x.", "x "),
    ],
)
def test_windows_takes_no_name_for_something_else(world: World, path: str) -> None:
    with pytest.raises(names.BadName, match=r"not a file name on Windows"):
        names.components(path, windows=True)
    if os.name != "nt":
        with world.sandbox() as sandbox:
            written = sandbox.write_text("in", path, "plain")
            assert sandbox.read_text("in", path).text == sandbox.read_text("in", written.path).text == "plain"


@pytest.mark.proves("A021")
@pytest.mark.parametrize("path", ["a.b/c d.txt", "console.txt", "nullable", "com10", "~/x~", "é"])
def test_windows_takes_ordinary_names(path: str) -> None:
    assert names.components(path, windows=True) == tuple(path.split("/"))


@pytest.mark.proves("SANDBOX-SPLIT")
def test_a_path_begins_with_its_alias(world: World) -> None:
    with world.sandbox() as sandbox:
        assert sandbox.split("in/sub/file.txt") == ("in", "sub/file.txt")
        assert sandbox.split("in:sub/a:b") == ("in", "sub/a:b")
        assert sandbox.split("in/a:b") == ("in", "a:b")
        assert sandbox.split("in") == sandbox.split("in/") == ("in", ".")
        for path in ("inp/../in/file.txt", "", "/in/file.txt", "../in", "In/file.txt", "C:\\x", "\n/x"):
            with pytest.raises(SandboxError, match=r"no such sandbox; allowed are in$"):
                sandbox.split(path)
