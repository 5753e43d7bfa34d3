"""What may be set for `te`, and that every limit that is set holds."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.settings import AGENT_BUDGETS, Settings
from tests.te.searching import Answer, read, search, te, write


@pytest.mark.proves("TE-SETTINGS")
@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[tool_envelope]\nenabeld = true", "llmc.toml: tool_envelope.enabeld is not known; did you mean enabled?"),
        ("[tool_envelope.grep]\npreview = 1", "tool_envelope.grep.preview is not known; did you mean preview_matches?"),
        ("[tool_envelope.cat]\nzzz = 1", "there are preview_lines, max_output_chars, timeout_ms"),
        ("[tool_envelope.cat]\nmax_output_chars = 0", "max_output_chars must be a whole number from 1 on"),
        ("[tool_envelope.cat]\nmax_output_chars = true", "max_output_chars must be a whole number from 1 on"),
        ("[tool_envelope.coach]\nexplore = 2", "explore must be a number from 0 to 1"),
        ("[tool_envelope.coach]\nseed = -1", "seed must be a whole number from 0 on"),
        ("[tool_envelope.coach]\nseed = false", "seed must be a whole number from 0 on"),
        ("[tool_envelope.workspace]\nroot = 1", "root must be a text"),
        ("[tool_envelope]\nenabled = 1", "enabled must be true or false"),
        ("tool_envelope = 1", "tool_envelope must be a table"),
        ('[tool_envelope.agent_budgets]\nme = "x"', "agent_budgets.me must be a whole number from 1 on"),
        ('[tool_envelope.telemetry]\npath = "/tmp/x.jsonl"', "telemetry.path must be a .jsonl file below llmc.toml's"),
        ('[tool_envelope.telemetry]\npath = "../x.jsonl"', "telemetry.path must be a .jsonl file below llmc.toml's"),
        ('[tool_envelope.telemetry]\npath = ".bashrc"', "telemetry.path must be a .jsonl file below llmc.toml's"),
        ("[tool_envelope", "llmc.toml: "),
        (b"\xff", "llmc.toml: "),
    ],
)
def test_what_is_not_known_is_an_error_that_names_the_nearest(tmp_path: Path, toml: str | bytes, told: str) -> None:
    write(tmp_path, {"llmc.toml": toml, "sub/a.py": "needle\n"})
    ran = te("grep", "needle", folder=tmp_path / "sub")
    answer = read(ran.stdout.decode(), ran.returncode)
    assert (answer.code, answer.meta["error"]) == (2, "invalid_config")
    assert len(answer.notes) == 1 and told in answer.notes[0]


@pytest.mark.proves("TE-SETTINGS")
def test_the_nearest_file_above_is_read_and_one_without_the_section_sets_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope.grep]\nmax_output_chars = 300\n", "d/e/a.txt": "needle\n" * 99})
    assert len(te("grep", "needle", folder=tmp_path / "d" / "e").stdout) <= 300
    write(tmp_path, {"d/llmc.toml": "[other]\nx = 1\n"})
    assert len(te("grep", "needle", folder=tmp_path / "d" / "e").stdout) > 300
    assert not list((tmp_path / "d").rglob("*.jsonl"))


@pytest.mark.proves("TE-AGENT-BUDGET")
@pytest.mark.parametrize("agent", [*AGENT_BUDGETS, "never heard of", ""])
def test_the_agent_s_budget_is_used_and_kept(tmp_path: Path, agent: str) -> None:
    write(tmp_path, {f"f{n}.py": "needle = 'in the hay'\n" * 400 for n in range(99)})
    expected = AGENT_BUDGETS.get(agent, AGENT_BUDGETS["default"])
    answer = search("te grep needle", tmp_path, guard="none", budget=None, agent=agent, session="s")
    assert 0.97 * expected < len(answer.text) <= expected
    settings = Settings({"agent_budgets": {"default": 900, "qwen-local": 700}, "grep": {"max_output_chars": 800}})
    answer = search("te grep needle", tmp_path, guard="none", budget=None, agent=agent, settings=settings)
    assert 450 < len(answer.text) <= (700 if agent == "qwen-local" else 800)


@pytest.mark.proves("TE-AGENT-BUDGET")
def test_the_command_takes_the_agent_from_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"f{n}.py": "needle = 'in the hay'\n" * 100 for n in range(99)})
    assert 15_000 < len(te("grep", "needle", folder=tmp_path).stdout.decode()) <= 16_000
    monkeypatch.setenv("TE_AGENT_ID", "qwen-local")
    assert 27_000 < len(te("grep", "needle", folder=tmp_path).stdout.decode()) <= 28_000


@pytest.mark.proves("TE-SETTINGS")
def test_previews_and_times_are_in_force(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "needle = 1\n" * 100, "log.txt": "line\n" * 100})
    given: dict[str, Any] = {"grep": {"preview_matches": 7}, "cat": {"preview_lines": 5}, "find": {"timeout_ms": 1}}
    options = {"guard": "none", "settings": Settings(given)}
    answer = search("te grep needle a.py", tmp_path, **options)
    assert len(answer.hits) == 7 and answer.breadcrumb.startswith("# TE: 93 more")
    assert len(search("te cat log.txt", tmp_path, **options).hits) == 5
    assert len(search("te cat log.txt:10-40", tmp_path, **options).hits) == 31, "what was asked for is no preview"
    assert options["settings"].seconds("find", 30.0) == 0.001


@pytest.mark.proves("TE-SETTINGS", "TE-HANDLE", "TE-BUDGET")
@pytest.mark.parametrize("command", ["grep needle", "find . -name '*.py'", "cat f1.py f2.py"])
def test_what_an_answer_may_have_holds_for_each_chunk_of_the_rest(tmp_path: Path, command: str) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle = 'in the hay'\n" * 40 for n in range(300)})
    limits = {"grep": 1_000, "find": 900, "cat": 800}
    settings = Settings({name: {"max_output_chars": most} for name, most in limits.items()})
    options: dict[str, Any] = {"guard": "none", "settings": settings, "session": "s", "folder": str(tmp_path / "kept")}
    handle = search(f"te {command}", tree, **options).meta["handle"]
    first = search(f"te --handle {handle}", tree, **options)
    assert first.meta["chunks"] > 1 and first.hits
    for number in range(1, first.meta["chunks"] + 1):
        chunk = search(f"te --handle {handle} --chunk {number}", tree, **options)
        assert len(chunk.text) <= limits[command.split()[0]]


@pytest.mark.proves("TE-WORKSPACE", "TE-PATHS")
@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
@pytest.mark.usefixtures("either_search")
def test_links_lead_out_of_the_workspace_only_where_that_is_allowed(tmp_path: Path) -> None:
    inside = write(tmp_path / "in", {"a/x.txt": "needle\n"})
    write(tmp_path / "out", {"o.txt": "needle\n"})
    (inside / "away").symlink_to("../out")
    (inside / "away.txt").symlink_to("../out/o.txt")
    (inside / "inner").symlink_to("a")
    commands = ("grep needle away", "grep needle away/o.txt", "cat away/o.txt", "cat away.txt", "grep -f away.txt")
    for command in commands:
        answer = search(command, inside, guard="none")
        assert answer.meta["error"] == "outside" and not answer.hits, command
        assert answer.notes[-1].endswith("leads through a link out of what may be searched")
    assert search("grep needle inner/x.txt", inside, guard="none").hits == ["inner/x.txt:1: needle"]
    assert not any("away" in hit for hit in search("grep -R needle .", inside, guard="none").hits)
    allowed = Settings({"workspace": {"allow_outside_root": True}})
    for command in commands:
        answer = search(command, inside, guard="none", settings=allowed)
        assert answer.hits and "error" not in answer.meta, command
    hits = search("grep -R needle .", inside, guard="none", settings=allowed).hits
    assert "away/o.txt:1: needle" in hits and "inner/x.txt:1: needle" in hits


@pytest.mark.proves("TE-WORKSPACE")
def test_the_workspace_s_root_holds_wherever_the_command_runs(tmp_path: Path) -> None:
    write(
        tmp_path, {"llmc.toml": "[tool_envelope.workspace]\nroot = '.'\n[tool_envelope.telemetry]\nenabled = false\n"}
    )
    write(tmp_path, {"top.py": "needle\n", "src/a.py": "needle\n", "src/lib/b.py": "needle\n"})
    write(tmp_path.parent / "beside", {"c.py": "needle\n"})

    def hits(*arguments: str, folder: str = "src") -> list[str]:
        ran = te(*arguments, folder=tmp_path / folder)
        return sorted(read(ran.stdout.decode()).hits) or [str(read(ran.stdout.decode()).meta.get("error"))]

    assert hits("grep", "needle") == ["a.py:1: needle", "lib/b.py:1: needle"]
    assert hits("grep", "needle", "..") == ["../top.py:1: needle", "a.py:1: needle", "lib/b.py:1: needle"]
    assert hits("grep", "needle", "../top.py") == ["../top.py:1: needle"]
    assert hits("grep", "needle", str(tmp_path / "top.py")) == ["../top.py:1: needle"]
    assert hits("grep", "-g", "lib/*.py", "needle") == ["lib/b.py:1: needle"]
    assert hits("cat", "../top.py") == ["needle"]
    assert hits("find", "..", "-name", "*.py") == ["../top.py", "a.py", "lib/b.py"]
    beside = str(tmp_path.parent / "beside" / "c.py")
    assert hits("grep", "needle", "../../beside") == ["outside"]
    assert hits("cat", beside) == ["outside"]
    write(tmp_path, {"llmc.toml": "[tool_envelope.telemetry]\nenabled = false\n"})
    assert hits("cat", "../top.py") == ["needle"], "the file's own folder is the root unless it says another"
    assert hits("cat", beside) == ["outside"]
    write(tmp_path, {"llmc.toml": "[tool_envelope.workspace]\nroot = '.'\nallow_outside_root = true\n"})
    assert hits("grep", "needle", "../../beside") == ["../../beside/c.py:1: needle"]
    assert hits("grep", "needle", beside, "a.py") == ["../../beside/c.py:1: needle", "a.py:1: needle"]
    assert hits("find", "../../beside") == ["../../beside", "../../beside/c.py"]
    assert hits("cat", beside) == ["needle"]
    assert hits("find", "/etc", "-maxdepth", "0") == ["/etc"], "nothing in common"
    assert hits("grep", "needle") == ["a.py:1: needle", "lib/b.py:1: needle"]
    write(tmp_path, {"llmc.toml": "[tool_envelope.workspace]\nroot = 'src/lib'\nallow_outside_root = true\n"})
    assert hits("grep", "needle", "a.py", "lib") == ["a.py:1: needle", "lib/b.py:1: needle"]


@pytest.mark.proves("TE-WORKSPACE", "TE-HOT-ZONE")
def test_paths_are_those_of_the_working_folder_wherever_the_root_is(tmp_path: Path) -> None:
    files = {
        "src/a.py": "foo\n" * 900,
        "src/deep/d.py": "foo\n" * 300,
        "src/deep/q/e.py": "foo\n" * 99,
        "lib/l.py": "foo",
    }
    write(tmp_path, files)

    def ask(root: str, folder: str, command: str) -> Answer:
        settings = Settings({"workspace": {"root": root}}, str(tmp_path))
        return search(command, tmp_path / folder, guard="none", settings=settings, budget=1_000)

    plain, inside = search("grep foo", tmp_path / "src", guard="none", budget=1_000), ask(".", "src", "grep foo")
    assert plain.meta == inside.meta and plain.hits == inside.hits and plain.breadcrumb == inside.breadcrumb
    assert inside.meta["hot_zone"] == "./ (69%)" and ": ./ 8" in inside.breadcrumb
    assert ask(".", "src/deep", "grep foo ../..").meta["hot_zone"] == "../ (99%)"
    assert ask("src", ".", "grep foo").meta["hot_zone"] == "src/ (100%)"
    assert ask("src", "lib", "grep foo").meta["hot_zone"] == "../src/ (100%)"
    for root, folder, command, found in (
        (".", "src", "find", [".", "a.py", "deep", "deep/d.py", "deep/q", "deep/q/e.py"]),
        (".", "src", "find . -maxdepth 0", ["."]),
        (".", "src", "find .. -maxdepth 1", ["..", "../lib", "."]),
        (".", "src/deep/q", "find ../.. -type d", ["../..", "..", "."]),
        (".", "src", "find . -path 'deep/*' -name '*.py'", ["deep/d.py", "deep/q/e.py"]),
        (".", "src", "find .. -path '../lib/*'", ["../lib/l.py"]),
        ("src", ".", "find . -type d", ["src", "src/deep", "src/deep/q"]),
        ("src", ".", "find . -path 'src/deep/*' -name d.py", ["src/deep/d.py"]),
        ("src", ".", "grep -l foo", ["src/a.py", "src/deep/d.py", "src/deep/q/e.py"]),
        ("src", ".", "grep -l foo -g 'src/deep/*.py'", ["src/deep/d.py"]),
        ("src", ".", "grep -m1 foo src/a.py", ["src/a.py:1: foo"]),
        ("src/deep", ".", "find src", ["src/deep", "src/deep/d.py", "src/deep/q", "src/deep/q/e.py"]),
        ("src", "lib", "grep -l foo ../src/deep", ["../src/deep/d.py", "../src/deep/q/e.py"]),
        ("src", "lib", "grep -l foo ..", ["../src/a.py", "../src/deep/d.py", "../src/deep/q/e.py"]),
    ):
        assert sorted(ask(root, folder, command).hits) == sorted(found), (root, folder, command)
    for folder, path, root in (
        (".", "lib/l.py", "src"),
        (".", "a.py", "src"),
        ("lib", "l.py", "../src"),
        (".", "..", "src"),
    ):
        answer = ask("src", folder, f"cat {path}")
        assert answer.notes == [f"[TE] {path} is outside what may be searched, which is {root}"]
    assert ask("src", ".", "find .").hits == [
        "src",
        "src/a.py",
        "src/deep",
        "src/deep/d.py",
        "src/deep/q",
        "src/deep/q/e.py",
    ]


@pytest.mark.proves("TE-WORKSPACE", "TE-NOTHING-SEARCHED", "TE-BUILT-IN")
@pytest.mark.parametrize("guard", ["none", "kernel", "verify"])
@pytest.mark.usefixtures("either_search")
def test_ignore_files_hold_as_they_are_set(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {".gitignore": "built/\n", ".llm-doignore": "secret/\n*.key\n", "a.py": "needle\n"})
    write(tmp_path, {"built/b.py": "needle\n", "secret/c.py": "needle\n", "d/e.key": "needle\n"})
    respects, ignores = Settings({}), Settings({"workspace": {"respect_gitignore": False}})
    for settings, found in ((respects, ["a.py"]), (ignores, ["a.py", "built/b.py"])):
        grep = search("te grep -l needle", tmp_path, guard=guard, settings=settings)
        find = search("te find . -type f", tmp_path, guard=guard, settings=settings)
        assert (sorted(grep.hits), sorted(find.hits), grep.meta["matches"]) == (found, found, len(found))
    named = search("te grep -l needle secret d/e.key", tmp_path, guard=guard)
    assert sorted(named.hits) == ["d/e.key", "secret/c.py"], "what is named is found"
    write(tmp_path, {"secret/more/f.py": "needle\n"})
    assert search("te grep -l needle secret/more", tmp_path, guard=guard).hits == ["secret/more/f.py"]
    for command in ("te grep needle d", "te grep nowhere d", "te grep -l needle d -g '*.key'"):
        nothing = search(command, tmp_path, guard=guard).meta
        assert (nothing["matches"], nothing["error"]) == (0, "nothing_searched"), command
    assert "error" not in search("te grep nowhere secret", tmp_path, guard=guard).meta


@pytest.mark.proves("TE-SETTINGS")
def test_what_the_readme_shows_can_be_set() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("\n[tool_envelope]\n")[2].partition("```")[0]
    settings = Settings(tomllib.loads(f"[tool_envelope]\n{shown}")["tool_envelope"], "anywhere")
    assert settings.most("grep", 99_999) == 20_000 and settings.telemetry == ".llmc/te_telemetry.jsonl"


@pytest.mark.proves("TE-SETTINGS")
def test_settings_are_checked_before_anything_is_done() -> None:
    with pytest.raises(TeError, match=r"tool_envelope\.grep must be a table"):
        Settings({"grep": 1})
