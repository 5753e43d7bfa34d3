"""Names that would lead out of a root, or are none, before every operation and every back end."""

from __future__ import annotations

import random

import pytest

from llm_do_mcp.errors import FileMissing, SandboxError
from llm_do_mcp.sandbox import names
from tests.sandbox.conftest import OPERATIONS, READING, SECRET, Operation, World

CLIMBING = ["../file.txt", "sub/../../file.txt", "sub/./../..", "..", "sub/..", "sub/../file.txt", "inp/../in"]
ABSOLUTE = ["/etc/passwd", "//etc/passwd", "/../etc/passwd"]
NO_NAMES = ["", "\0", "file\0.txt", "sub/\0/file.txt", "\\x00", "\ud800"]
TOO_LONG = ["x" * 256, "ü" * 128, "a/" * 2_500, "/".join(["a"] * 3_000), "/".join(["a"] * 300)]
LOOKALIKES = [
    "....//file.txt",
    "..\\file.txt",
    "%2e%2e/file.txt",
    "．．/file.txt",  # noqa: RUF001
    "‥/file.txt",
    "\\x2e\\x2e/file.txt",
    "\\u002e./file.txt",
    "..\\x2ffile.txt",
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "$HOME/x",
]


@pytest.fixture(params=OPERATIONS.values(), ids=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.proves("A001", "A002", "A003", "A004", "A006", "SANDBOX-ONE-LINE")
@pytest.mark.parametrize("path", [*CLIMBING, *ABSOLUTE, *NO_NAMES, *TOO_LONG])
def test_a_path_that_leaves_or_is_none_is_refused_by_every_operation(
    world: World, operation: Operation, path: str
) -> None:
    around = world.around()
    with world.sandbox() as sandbox, pytest.raises(SandboxError) as refused:
        operation(sandbox, path)
    message = str(refused.value)
    assert message.startswith("in/")
    assert message.isprintable(), "one line, nothing that a terminal would obey"
    assert str(world.root) not in message
    assert len(message) < 300
    assert path in TOO_LONG or names.one_line(path) in message
    assert world.around() == around


@pytest.mark.proves("A004")
@pytest.mark.parametrize("path", TOO_LONG)
def test_too_long_a_path_is_called_that(world: World, path: str) -> None:
    with world.sandbox() as sandbox, pytest.raises(SandboxError, match=r"too long|too deep"):
        sandbox.read_text("in", path)


@pytest.mark.proves("A001", "A002")
@pytest.mark.parametrize("path", LOOKALIKES)
def test_a_lookalike_is_an_ordinary_name(world: World, path: str) -> None:
    around = world.around()
    with world.sandbox() as sandbox:
        for operation in READING:
            with pytest.raises(FileMissing):
                OPERATIONS[operation](sandbox, path)
        written = sandbox.write_text("in", path, "inside")
        assert sandbox.read_text("in", path).text == "inside"
        assert written.path in [entry.path for entry in sandbox.list("in").entries]
    assert world.around() == around


@pytest.mark.proves("A003")
def test_spellings_of_one_path_are_one_path(world: World) -> None:
    with world.sandbox() as sandbox:
        for path in ("sub/file.txt", "sub//file.txt", "./sub/./file.txt", "sub///.//file.txt"):
            assert sandbox.read_text("in", path).text == "INSIDE"
        assert sandbox.write_text("in", "./sub//./file.txt", "INSIDE").path == "sub/file.txt"
        for top in (".", "/", "//", "./", "./."):
            assert len(sandbox.list("in", under=top).entries) == 3
            with pytest.raises(SandboxError, match=r"a folder, not a file"):
                sandbox.read_text("in", top)
        for folder in ("sub", "sub/", "sub/.", "sub//"):
            assert len(sandbox.list("in", under=folder).entries) == 2


@pytest.mark.proves("A003")
@pytest.mark.parametrize("path", ["file.txt/", "file.txt/.", "file.txt//", "file.txt/x"])
def test_a_file_is_no_folder(held_world: World, path: str) -> None:
    with held_world.sandbox() as sandbox:
        for operation in OPERATIONS.values():
            with pytest.raises(SandboxError, match=r"not a folder|a folder, not a file"):
                operation(sandbox, path)
    assert (held_world.root / "file.txt").read_text() == "INSIDE"


@pytest.mark.proves("A005")
def test_a_name_that_begins_like_the_root_is_not_in_it(world: World) -> None:
    (world.root / "evil").symlink_to("../root-evil")
    with world.sandbox() as sandbox:
        for path in ("evil/file.txt", "../root-evil/file.txt", "-evil/file.txt"):
            with pytest.raises(SandboxError):
                sandbox.read_text("in", path)


@pytest.mark.proves("A006")
@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "sub/../../*", "", "a\0", "**/.." + "/x"])
def test_a_pattern_cannot_leave_either(world: World, pattern: str) -> None:
    with world.sandbox() as sandbox, pytest.raises(SandboxError, match=r"^in: .*not a pattern"):
        sandbox.list("in", pattern)


@pytest.mark.proves("A001", "A007")
@pytest.mark.torture
def test_no_path_at_random_leads_out(world: World, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    for link, target in {
        "up": "..",
        "out": "../outside",
        "abs": str(world.outside),
        "leaf": "../file.txt",
        "again": "again",
        "dot": ".",
        "inner": "sub/deep/../../sub",
        "over": "sub/../../outside/file.txt",
        "sub/back": "..",
        "sub/leave": "../..",
    }.items():
        (world.root / link).symlink_to(target)
    pieces = ["..", ".", "", "sub", "deep", "file.txt", "up", "out", "abs", "leaf", "again", "dot", "inner", "over"]
    pieces += ["back", "leave", "outside", "root", "root-evil", "~", "..\\", "\\x2e.", "%2e%2e", "...", "\0", "é", "\n"]
    pick = random.Random(7)
    with world.sandbox() as sandbox:
        read = 0
        for _ in range(torture_scaled(3_000, 100_000)):
            path = "/".join(pick.choices(pieces, k=pick.randint(1, 6)))
            try:
                content = sandbox.read_text("in", path).text
            except SandboxError:
                continue
            assert content == "INSIDE" != SECRET, path
            read += 1
        assert read > 10, "the fuzz must also meet files"
