"""Attacks by renaming: another process exchanges a name with a link, without pause, while we open it.

What is proved is an absence, so the attack itself is tested as well: an opener that checks a path and then opens it
leaks within seconds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.sandbox.opener import Directory, WouldWait
from tests.sandbox.conftest import SECRET, World, make_world

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names in one step"),
]

if sys.platform == "linux":
    from llm_do_mcp.sandbox.descriptors import NameByName, openat2

Swapping = Callable[[Path, Path], contextlib.AbstractContextManager[None]]


@pytest.fixture(scope="session")
def swapper(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the attacker."""
    here = Path(__file__).parent
    compiler = shutil.which("cc")
    if compiler is None:
        return [sys.executable, str(here / "swap.py")]
    program = tmp_path_factory.mktemp("swap") / "swap"
    subprocess.run([compiler, "-O2", "-o", str(program), str(here / "swap.c")], check=True)
    return [str(program)]


@pytest.fixture
def swapping(swapper: list[str]) -> Swapping:
    """Run the attack on two names for as long as the block lasts."""

    @contextlib.contextmanager
    def attack(first: Path, second: Path) -> Iterator[None]:
        attacker = subprocess.Popen([*swapper, str(first), str(second)], stdout=subprocess.PIPE, text=True)
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == "started\n"
            yield
        finally:
            attacker.terminate()
            swaps, _ = attacker.communicate()
        assert int(swaps) > 0, "the attack must have run"

    return attack


def outcomes(attempt: Callable[[], str], seconds: float) -> Counter[str]:
    """What an attempt gave, counted; `refused` where it gave an error."""
    found: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(50):
            try:
                found[attempt()] += 1
            except SandboxError:
                found["refused"] += 1
    return found


def plant(world: World) -> dict[str, tuple[Path, Path, str]]:
    """What is exchanged with what, and the path that is opened meanwhile."""
    (world.root / "to folder").symlink_to(world.outside)
    (world.root / "to folder, relative").symlink_to("../outside")
    (world.root / "to file").symlink_to(world.outside / "file.txt")
    (world.root / "to inner folder").symlink_to("sub/deep/../../../outside")
    return {
        "folder": (world.root / "sub", world.root / "to folder", "sub/file.txt"),
        "folder, relative": (world.root / "sub", world.root / "to folder, relative", "sub/file.txt"),
        "leaf": (world.root / "file.txt", world.root / "to file", "file.txt"),
    }


@pytest.mark.proves("A008", "A009")
@pytest.mark.parametrize("attack", ["folder", "folder, relative", "leaf"])
def test_no_read_is_led_out(
    held_world: World,
    swapping: Swapping,
    attack: str,
    torture_scaled,  # type: ignore[no-untyped-def]
) -> None:
    first, second, path = plant(held_world)[attack]
    with held_world.sandbox() as sandbox, swapping(first, second):
        found = outcomes(lambda: sandbox.read_text("in", path).text, torture_scaled(1.5, 30))
    assert set(found) == {"INSIDE", "refused"}, "both sides of the exchange must have been met, and nothing else"


@pytest.mark.proves("A008", "A009", "SANDBOX-AT-ONCE")
@pytest.mark.parametrize("attack", ["folder", "folder, relative", "leaf"])
def test_no_read_at_once_is_led_out(
    held_world: World,
    swapping: Swapping,
    attack: str,
    torture_scaled,  # type: ignore[no-untyped-def]
) -> None:
    first, second, path = plant(held_world)[attack]
    with held_world.usual_and_hasty() as (usual, hasty):
        usual.read_text("in", path)

        def read() -> str:
            try:
                return hasty.read_text("in", path).text
            except WouldWait:
                return "refused"

        with swapping(first, second):
            found = outcomes(read, torture_scaled(1.5, 30))
    assert found["refused"] and set(found) <= {"INSIDE", "refused"}


@pytest.mark.proves("A008", "A009")
@pytest.mark.parametrize("attack", ["folder", "leaf"])
def test_the_attack_leads_a_checked_path_out(tmp_path: Path, swapping: Swapping, attack: str) -> None:
    world = make_world(tmp_path, NameByName())
    first, second, path = plant(world)[attack]
    end = time.monotonic() + 60
    with swapping(first, second):
        leaked = False
        while not leaked and time.monotonic() < end:
            with contextlib.suppress(OSError):
                real = os.path.realpath(world.root / path)
                if os.path.commonpath([real, world.root]) == str(world.root):
                    leaked = Path(real).read_text() == SECRET
    assert leaked


@pytest.mark.proves("A010")
@pytest.mark.parametrize("resolver", ["kernel", "link"])
def test_climbing_back_from_a_folder_that_is_moved_away_stays_inside(
    held_world: World,
    swapping: Swapping,
    resolver: str,
    torture_scaled,  # type: ignore[no-untyped-def]
) -> None:
    """`c` is moved out of the root while `c/..` is resolved, so that its `..` is somewhere else."""
    if resolver == "kernel" and isinstance(held_world.backend, NameByName) and type(held_world.backend) is NameByName:
        pytest.skip("asks openat2 itself, which is the same for both back ends")
    root, away = held_world.root / "a", held_world.root / "b"
    (root / "c").mkdir(parents=True)
    away.mkdir()
    climbing = "/".join(["c", ".."] * 20)
    (root / "climb").symlink_to(climbing)
    own = root.stat()
    met: Counter[str] = Counter()
    with Directory.open(root, backend=held_world.backend) as directory, swapping(root / "c", away):
        top = os.open(root, os.O_PATH | os.O_DIRECTORY)
        for _ in range(torture_scaled(10_000, 400_000)):
            try:
                if resolver == "link":
                    found = directory.stat("climb")
                else:
                    fd = openat2(top, climbing, os.O_PATH)
                    found = os.fstat(fd)
                    os.close(fd)
            except (OSError, SandboxError):
                met["refused"] += 1
            else:
                met["inside" if os.path.samestat(found, own) else "escaped"] += 1
        os.close(top)
    assert met["escaped"] == 0
    assert met["inside"] > 0


@pytest.mark.proves("A011")
def test_no_write_is_led_out(held_world: World, swapping: Swapping, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    first, second, _ = plant(held_world)["folder, relative"]
    around = held_world.around()
    number = 0

    def write() -> str:
        nonlocal number
        number += 1
        path = f"sub/{number % 40}/new.txt" if number % 2 else f"sub/{number % 40}.txt"
        return str(bool(sandbox.write_text("in", path, "written").path))

    with held_world.sandbox() as sandbox, swapping(first, second):
        found = outcomes(write, torture_scaled(1.5, 20))
    assert held_world.around() == around
    assert sorted(os.listdir(held_world.outside)) == ["file.txt"]
    assert found["True"] > 0
    assert found["refused"] > 0


@pytest.mark.proves("A012")
def test_no_listing_is_led_out(held_world: World, swapping: Swapping, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    first, second, _ = plant(held_world)["folder"]
    (held_world.outside / "foreign.txt").write_text(SECRET)
    (held_world.outside / "deep").mkdir()
    (held_world.outside / "deep" / "foreign.txt").write_text(SECRET)
    with held_world.sandbox() as sandbox, swapping(first, second):
        found = outcomes(lambda: " ".join(e.path for e in sandbox.list("in").entries), torture_scaled(1.5, 30))
    assert not any("foreign" in paths for paths in found)
    assert any("sub/deep/file.txt" in paths for paths in found)
