"""Handles: what was left out of an answer is served once, to its session, and to nobody else."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm_do_mcp.te import handles
from llm_do_mcp.te.envelope import Frame, Json
from llm_do_mcp.te.recall import serve
from tests.te.searching import GUARDS, Answer, search, te, write


def left_out(answer: Answer, folder: Path, kept: Path, *, budget: int = 2_000, guard: str = "none") -> list[str]:
    """All chunks behind the handle of an answer."""
    chunks: list[str] = []
    handle = answer.meta["handle"]
    while True:
        asked = ["--handle", handle, "--chunk", str(len(chunks) + 1)]
        chunk = search(asked, folder, guard=guard, budget=budget, session="s", folder=str(kept))
        assert len(chunk.text) <= budget
        assert (chunk.code, chunk.meta["chunk"]) == (0, len(chunks) + 1)
        chunks.append(chunk.text.split("\n", 3)[3])
        if not chunk.meta.get("truncated"):
            assert chunk.meta["chunks"] == len(chunks)
            return chunks


COMMANDS = (
    "te grep needle",
    "te grep -C1 needle",
    "te grep -o -e needle -e hay",
    "te grep -l needle",
    "te grep -c needle",
    "te find . -name '*.py'",
    "te cat a/with_a_long_name_2.py b/with_a_long_name_59.py",
)


@pytest.mark.proves("TE-HANDLE")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("guard", GUARDS)
def test_every_character_that_was_left_out_is_served_once(tmp_path: Path, command: str, guard: str) -> None:
    hay = "    x = 'a needle in the häy'\nhay\n"
    tree = write(tmp_path / "tree", {f"{'ab'[n % 2]}/with_a_long_name_{n}.py": hay * (n + 1) for n in range(60)})
    write(tree, {f"tests/test_{n}.py": "needle = 1\n" * 9 for n in range(9)})
    whole = search(command, tree, guard=guard, budget=2_000_000)
    answer = search(command, tree, guard=guard, budget=1_500, session="s", folder=str(tmp_path / "kept"))
    chunks = left_out(answer, tree, tmp_path / "kept", guard=guard)
    assert chunks
    served = [*answer.hits, *"".join(chunks).removesuffix("\n").split("\n")]
    headings = [line for line in served if line.startswith("==> ")]  # of files that are shown in parts
    assert Counter(served) - Counter(headings) == Counter(whole.hits) - Counter(
        line for line in whole.hits if "==>" in line
    )


LONG = {
    "short.py": "needle\n" * 30,
    "wide.py": "語" * 180 + "needle\n" + "語" * 290 + "needle\n" + "é" * 480 + "needle\n",
    "a.js": "x = 1\n" + "ä" * 700 + "needle" + "ö" * 5_000 + "\n" + "x" * 505 + "needle\n" + " " * 600 + "needle\n",
    "b.js": ("needle" + "y" * 40_000 + "needle\n") * 3 + "no newline, needle" + "z" * 1_000,
}


@pytest.mark.proves("TE-HANDLE", "TE-LONG-LINES", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("flags", ["", "-C1", "-o", "-oE", "-v", "-m2 -A1", "-i"])
@pytest.mark.parametrize("guard", GUARDS)
def test_what_was_cut_out_of_long_lines_is_served_too(tmp_path: Path, flags: str, guard: str) -> None:
    tree = write(tmp_path / "tree", LONG)
    patterns = {"-o": ["needle.*"], "-oE": ["n(e|eedle.*)"], "-v": ["x = 1"]}.get(flags, ["needle"])
    plain = ["grep", "-rnH", *flags.split(), *patterns, *sorted(LONG)]
    printed = subprocess.run(plain, cwd=tree, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, check=True)
    lines = [re.split("[:-]", line, maxsplit=2) for line in printed.stdout.decode().splitlines() if line != "--"]
    wanted = Counter((name, int(number), text.strip()) for name, number, text in lines)
    for budget in (1_000, 5_000):
        kept = {"guard": guard, "budget": budget, "session": "s", "folder": str(tmp_path / "kept")}
        answer = search(["grep", *flags.split(), *patterns], tree, **kept)
        assert answer.meta["truncated"] and answer.meta.get("cut_lines", 0) == sum("…" in hit for hit in answer.hits)
        behind = "".join(left_out(answer, tree, tmp_path / "kept", guard=guard, budget=budget))
        assert "…" not in behind and "# TE" not in behind
        shown = [hit for hit in answer.hits if "…" not in hit]
        served = [re.split("[:-]", line, maxsplit=2) for line in [*shown, *behind.splitlines()] if line != "--"]
        assert Counter((name, int(number), text.strip()) for name, number, text in served) == wanted


@pytest.mark.proves("TE-HANDLE")
def test_of_a_long_line_that_is_gone_the_handle_has_what_was_printed(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a.js": "needle" + "y" * 9_000 + "\n", "b.js": "needle" + "z" * 9_000 + "\n"})
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    first = search("te grep needle", tree, **kept)
    (tree / "a.js").unlink()
    rest = search(f"te --handle {first.meta['handle']}", tree, **kept)
    assert sorted(rest.hits) == [f"a.js:1: needle{'y' * 293}…", f"b.js:1: needle{'z' * 9_000}"]
    assert rest.breadcrumb == "# TE: 1 long line cut: te cat -n FILE:LINE shows one whole"


@pytest.mark.proves("TE-HANDLE", "TE-LONG-LINES")
@pytest.mark.usefixtures("either_search")
def test_a_line_that_has_taken_the_place_of_a_long_one_is_no_part_of_it(tmp_path: Path) -> None:
    long = ["needle" + "y" * 3_000, "x" * 3_000 + "needle"]
    tree = write(tmp_path / "tree", {"a.js": f"{long[0]}\nshort needle\n{long[1]}\n"})
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    first = search("te grep needle", tree, **kept)
    assert first.hits[2] == f"a.js:3: …{'x' * 80}needle…", "cut around the match"
    write(tree, {"a.js": f"new\n{long[0]}\nshort needle\n{long[1]}\n"})
    rest = search(f"te --handle {first.meta['handle']}", tree, **kept)
    whole = [f"a.js:2: {long[0]}", f"a.js:4: {long[1]}"]
    assert rest.hits == [*whole, f"a.js:3: {'x' * 299}…"], "what was printed of the one that is not there any more"


@pytest.mark.skipif(os.name != "posix", reason="a FIFO")
@pytest.mark.proves("TE-HANDLE", "TE-SPECIAL-FILES")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_fifo_in_the_place_of_a_file_that_was_found_holds_no_handle_up(
    tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do_mcp.te.grep.PER_FILE", 100)
    long = "needle" + "y" * 3_000 + "\n"
    tree = write(tmp_path / "tree", {"cut.js": long + "needle\n" * 50, "large.js": "needle\n" * 150})
    asked = {"guard": guard, "session": "s", "folder": str(tmp_path / "kept"), "seconds": 5}
    first = search("te grep needle", tree, budget=700, **asked)
    for path in tree.iterdir():
        path.unlink()
        os.mkfifo(path)
    rest = search(f"te --handle {first.meta['handle']}", tree, **asked)
    assert "error" not in rest.meta
    printed = {f"cut.js:1: {long[:299]}…"}
    printed |= {f"cut.js:{n}: needle" for n in range(2, 52)} | {f"large.js:{n}: needle" for n in range(1, 101)}
    still = printed if guard != "verify" else set()  # there a line is shown only while the file has it
    assert {*rest.hits} == still - {hit for hit in first.hits if "…" not in hit}


@pytest.mark.proves("TE-HANDLE")
def test_what_ripgrep_did_not_print_of_a_large_file_is_served_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do_mcp.te.grep.PER_FILE", 100)
    tree = write(tmp_path / "tree", {"a.py": "".join(f"needle {n}\n" for n in range(950)), "b.py": "needle\n" * 30})
    for flags in ("", "-C1", "-o", "-m 500"):
        command = f"te grep {flags} needle"
        answer = search(command, tree, guard="none", budget=1_000, session="s", folder=str(tmp_path / "kept"))
        served = "".join(left_out(answer, tree, tmp_path / "kept"))
        numbers = re.findall(r"^a\.py:(\d+): ", "\n".join(answer.hits) + "\n" + served, re.MULTILINE)
        assert sorted(map(int, numbers)) == list(range(1, 501 if "-m" in flags else 951)), command
        assert answer.meta["matches"] == len(numbers) + 30


@pytest.mark.proves("TE-HANDLE")
def test_a_handle_holds_in_the_next_process_of_its_session_and_in_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": f"needle {n}\n" * 50 for n in range(99)})
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TE_SESSION_ID", "mine")
    ran = te("grep", "needle", folder=tree)
    handle = re.search(rb'"handle":"(res_\w+)"', ran.stdout)
    assert handle is not None
    first = te("--handle", handle[1].decode(), folder=tmp_path)  # whatever the working directory
    assert (first.returncode, first.stderr) == (0, b"")
    assert b'"chunk":1' in first.stdout and b"needle 98" in first.stdout + ran.stdout
    assert te("--handle", handle[1].decode(), "--chunk=2", folder=tree).stdout != first.stdout
    (kept,) = tmp_path.glob("llm-do-te*")
    assert {path.stat().st_mode & 0o077 for path in (kept, *kept.rglob("*"))} == {0}
    monkeypatch.setenv("TE_SESSION_ID", "another")
    other = te("--handle", handle[1].decode(), folder=tree)
    assert other.returncode == 2 and b'"error":"unknown_handle"' in other.stdout and b"needle" not in other.stdout


@pytest.mark.proves("TE-HANDLE", "TE-JSON", "TE-BUDGET")
@pytest.mark.parametrize("budget", [206, 207, 400, 1_000, 16_000])
def test_chunks_are_the_same_in_every_form_and_end_with_lines(budget: int) -> None:
    lines = [
        'quoted "x" \\ and\ttabbed',
        "",
        "\U0001f600ü" * 3_000,
        "x" * 40_000,
        *map(str, range(2_000)),
        '"\\"' * 300,
    ]
    text = io.BytesIO("\n".join(lines).encode() + b"\n" * 50)
    number, plain, goes_on = 0, [""], False
    while True:
        number += 1
        text.seek(0)
        as_text = serve("res_0123456789abcdef", number, text, Frame(budget))
        text.seek(0)
        as_json = serve("res_0123456789abcdef", number, text, Frame(budget, Json()))
        assert max(len(as_text), len(as_json)) <= budget
        chunk, told = as_text.split("\n", 3)[3], json.loads(as_json)
        assert told["meta"] == json.loads(as_text.split("\n")[1])
        assert told["lines"] == chunk.removesuffix("\n").split("\n")
        assert told["meta"].get("continued", False) == goes_on
        plain.append(chunk)
        goes_on = told["meta"].get("continues", False)
        if "truncated" not in told["meta"]:
            break
        assert chunk.endswith("\n") != goes_on
        assert not goes_on or "\n" not in chunk, "only a line that is longer than a chunk is parted"
        if number > 60:
            return
    assert "".join(plain).encode() == text.getvalue()


@pytest.mark.proves("TE-HANDLE")
def test_without_an_id_a_session_is_an_agent_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": f"needle {n}\n" * 50 for n in range(99)})
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    handle = re.search(rb'"handle":"(res_\w+)"', te("grep", "needle", folder=tree).stdout)
    assert handle is not None
    assert te("--handle", handle[1].decode(), folder=tree).returncode == 0
    assert te("--handle", handle[1].decode(), folder=tmp_path).returncode == 2


@pytest.mark.proves("TE-HANDLE-BAD")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--handle", "res_../../etc/passwd"], "invalid_handle"),
        (["--handle", "res_0123456789abcdeF"], "invalid_handle"),
        (["--handle", "res_0123456789abcdef0"], "invalid_handle"),
        (["--handle", ""], "invalid_handle"),
        (["--chunk", "1"], "invalid_handle"),
        (["--handle"], "usage"),
        (["--handle", "res_0123456789abcdef", "--chunk", "0"], "usage"),
        (["--handle", "res_0123456789abcdef", "--chunk", "-1"], "usage"),
        (["--handle", "res_0123456789abcdef", "--handle", "x"], "usage"),
        (["--handle", "res_0123456789abcdef", "grep", "x"], "usage"),
        (["--handle", "res_0123456789abcdef"], "unknown_handle"),
    ],
)
def test_a_handle_that_is_none_is_an_error(tmp_path: Path, arguments: Sequence[str], error: str) -> None:
    answer = search(arguments, tmp_path, guard="none", session="s", folder=str(tmp_path / "kept"))
    assert (answer.code, answer.meta["error"], len(answer.notes)) == (2, error, 1)
    assert str(tmp_path) not in answer.text


CRUMB = re.compile(
    r"# TE: (\d+ more( lines?| definitions?)?( in (\d+ files?|[a-z ]+))?(: \S.*[\d)s])?|.* left out"
    r"|\d+ long .* (whole|all))"
)
"""A breadcrumb that is whole, or only tells how much it is."""


@pytest.mark.proves("TE-HANDLE", "TE-BUDGET")
@pytest.mark.parametrize(
    "command", ["grep needle", "grep needle -C1", "find . -type f", "cat f1.txt", "cat f1.txt f2.txt"]
)
def test_whatever_the_budget_no_breadcrumb_is_cut_and_a_handle_can_be_used(tmp_path: Path, command: str) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.txt": "def needle():\n    needle\n" * 50 for n in range(60)})
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    for budget in range(140, 420, 7):
        answer = search(command, tree, budget=budget, **kept)
        for line in answer.text.split("\n")[3:]:
            assert not line.startswith("# TE") or CRUMB.fullmatch(line), line
        if handle := answer.meta.get("handle"):
            assert search(f"--handle {handle}", tree, budget=budget, **kept).meta["chunk"] == 1
    assert handle, "with 400 characters there is one"


@pytest.mark.proves("TE-HANDLE-BAD")
def test_a_chunk_that_is_not_there_and_a_file_that_has_changed_are_told(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"long.txt": "line\n" * 200_000})
    settings = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    answer = search("te cat long.txt", tree, **settings)
    handle = answer.meta["handle"]
    write(tree, {"long.txt": "other\n" * 200_000})
    changed = search(f"--handle {handle}", tree, **settings)
    assert changed.meta["error"] == "changed"
    answer = search("te cat long.txt", tree, **settings)
    chunks = search(f"--handle {answer.meta['handle']}", tree, **settings).meta["chunks"]
    beyond = search(f"--handle {answer.meta['handle']} --chunk {chunks + 1}", tree, **settings)
    assert beyond.meta["error"] == "no_such_chunk" and f"has {chunks} chunks" in beyond.notes[0]
    small = search(f"--handle {answer.meta['handle']}", tree, **{**settings, "budget": 200})
    assert small.meta["error"] == "budget_too_small"


@pytest.mark.proves("TE-HANDLE-PRIVATE", "TE-NOT-KEPT")
@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
@pytest.mark.parametrize("planted", ["link", "open"])
def test_a_folder_that_is_not_private_is_not_used(tmp_path: Path, planted: str) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle\n" * 50 for n in range(99)})
    (tmp_path / "theirs").mkdir(mode=0o700)
    if planted == "link":
        (tmp_path / "kept").symlink_to(tmp_path / "theirs")
    else:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept").chmod(0o755)
    answer = search("te grep needle", tree, guard="none", session="s", folder=str(tmp_path / "kept"))
    assert answer.meta["truncated"] and "handle" not in answer.meta
    assert answer.meta["not_kept"] == "not a private folder of this user"
    assert len(answer.text) <= 16_000 and answer.left_out + len(answer.hits) == answer.meta["matches"]
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.proves("TE-NOT-KEPT", "TE-HANDLE-BAD")
def test_a_text_that_cannot_be_written_says_why_and_waits_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle\n" * 50 for n in range(99)})
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    handle = search("te grep needle", tree, **kept).meta["handle"]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        answer = search(f"te --handle {handle}", tree, **kept)
        assert answer.code == 2 and answer.meta["error"] == "not_kept"
        assert handle in answer.notes[0] and os.strerror(errno.ENOSPC).lower() in answer.notes[0]
    assert search(f"te --handle {handle}", tree, **kept).meta["chunk"] == 1
    monkeypatch.setattr(os, "utime", full)  # as in a folder that may only be read
    assert search(f"te --handle {handle}", tree, **kept).meta["chunk"] == 1


@pytest.mark.proves("TE-HANDLE-PRIVATE")
def test_the_newest_are_kept_and_what_is_old_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "CAP", 3_010)
    mine, other = handles.Handles("mine", str(tmp_path / "kept")), handles.Handles("other", str(tmp_path / "kept"))
    made = [mine.keep(lambda file: file.write(b"x" * 1_000)) for _ in range(3)]
    for age, handle in zip((300, 200, 100), made, strict=True):
        (path,) = tmp_path.rglob(f"*{handle}")
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    other.keep(lambda file: file.write(b"x" * 1_500))
    assert [bool(list(tmp_path.rglob(f"*{handle}"))) for handle in made] == [False, False, True]
    (path,) = tmp_path.rglob(f"*{made[2]}")
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - handles.LIFE_SECONDS))
    other.keep(lambda file: file.write(b"x"))
    assert not list(tmp_path.rglob(f"*{made[2]}"))
    assert mine.text(made[2], lambda recipe, file: None) is None


@pytest.mark.proves("TE-HANDLE-MEMORY")
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is measured in Linux's units")
def test_keeping_a_million_matches_keeps_memory_flat(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.txt": "a needle in the hay\n" * 10_000 for n in range(100)})
    program = (
        "import resource, sys\n"
        "from llm_do_mcp.te import run\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "run('grep needle', roots={'.': sys.argv[1]}, confine=False)\n"
        "before = peak()\n"
        "answer = run('grep needle', roots={'.': sys.argv[1]}, confine=False, session='s')\n"
        'handle = answer.partition(\'"handle":"\')[2][:20]\n'
        "assert '\"chunks\"' in run(f'--handle {handle}', roots={'.': sys.argv[1]}, confine=False, session='s')\n"
        "print(peak() - before)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program, str(tree)], env=environment, capture_output=True, check=True)
    assert int(ran.stdout) < 30, "MB more than without a handle, and of what the text is made from"


@pytest.mark.proves("TE-NOT-ITSELF")
def test_a_search_never_finds_what_te_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope]\n", **{f"f{n}.py": "needle = 1\n" * 50 for n in range(99)}})
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for flags in ((), ("--hidden", "--no-ignore")):
        for _ in range(2):
            ran = te("grep", "-c", *flags, "needle", folder=tmp_path)
            assert b'"matches":4950,"files":99' in ran.stdout
            te("grep", "needle", folder=tmp_path)
    assert (tmp_path / ".llmc" / "te_telemetry.jsonl").read_text().count("needle") > 3
    assert list(tmp_path.glob("llm-do-te*/*-res_*"))
    monkeypatch.setenv("TMPDIR", "/tmp")  # what was kept while it was another folder is not found either
    assert b'"matches":4950,"files":99' in te("grep", "-c", "--no-ignore", "needle", folder=tmp_path).stdout
    found = te("find", ".", "--hidden", "--no-ignore", folder=tmp_path).stdout
    assert b"te_telemetry" not in found and b"res_" not in found.partition(b"# TE_END_META")[2]
    assert te("cat", ".llmc/te_telemetry.jsonl", folder=tmp_path).returncode == 2


@pytest.mark.proves("TE-HANDLE", "TE-CONCURRENT")
def test_chunks_that_are_asked_for_at_once_are_all_served(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": f"needle {n}\n" * 500 for n in range(40)})
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    for _ in range(3):
        handle = search("te grep needle", tree, **kept).meta["handle"]
        with ThreadPoolExecutor(8) as threads:
            asked = [f"te --handle {handle} --chunk {number}" for number in range(1, 9)]
            chunks = list(threads.map(lambda command: search(command, tree, **kept), asked))
        assert [chunk.meta.get("chunk") for chunk in chunks] == list(range(1, 9))
    assert not [path for path in (tmp_path / "kept").iterdir() if "." in path.name], "a draft, or a recipe"


def _planted_fifo(path: Path, elsewhere: Path) -> None:
    os.mkfifo(path)


def _planted_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def _planted_text(path: Path, elsewhere: Path) -> None:
    path.write_bytes(b"\xff\xfe no command\n")


def _planted_recipe(path: Path, elsewhere: Path) -> None:
    path.with_name(path.name + handles.RECIPE).write_bytes(b"grep\n\x00")


def _planted_cut_recipe(path: Path, elsewhere: Path) -> None:
    path.with_name(path.name + handles.RECIPE).write_bytes(b"")


@pytest.mark.proves("TE-HANDLE-BAD", "TE-HANDLE-PRIVATE")
@pytest.mark.skipif(os.name != "posix", reason="FIFOs and links")
@pytest.mark.parametrize("plant", [_planted_fifo, _planted_link, _planted_text, _planted_recipe, _planted_cut_recipe])
def test_what_te_has_not_written_is_behind_no_handle(tmp_path: Path, plant: Callable[[Path, Path], None]) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle\n" * 50 for n in range(99)})
    (tmp_path / "secret").write_text("grep\nSECRET\n")
    kept = {"guard": "none", "session": "s", "folder": str(tmp_path / "kept")}
    handle = search("te grep needle", tree, **kept).meta["handle"]
    (recipe,) = (tmp_path / "kept").glob(f"*{handle}{handles.RECIPE}")
    recipe.unlink()
    plant(recipe.with_name(recipe.name.removesuffix(handles.RECIPE)), tmp_path / "secret")
    answer = search(f"te --handle {handle}", tree, seconds=5.0, **kept)
    assert answer.meta["error"] == "unknown_handle" and "SECRET" not in answer.text
