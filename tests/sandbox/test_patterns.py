"""Patterns: what a listing shows, and what is protected wherever a root lies."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.sandbox import patterns
from tests.sandbox.conftest import World

FILES = ["a.md", "b.txt", "sub/a.md", "sub/deep/a.md", "sub/deep/c.md", "x/deep/a.md"]

MATCHES = {
    "**/*": FILES,
    "**": FILES,
    "*": ["a.md", "b.txt"],
    "*.md": ["a.md"],
    "**/*.md": ["a.md", "sub/a.md", "sub/deep/a.md", "sub/deep/c.md", "x/deep/a.md"],
    "sub/**": ["sub/a.md", "sub/deep/a.md", "sub/deep/c.md"],
    "*/deep/a.md": ["sub/deep/a.md", "x/deep/a.md"],
    "**/deep/*": ["sub/deep/a.md", "sub/deep/c.md", "x/deep/a.md"],
    "**/**/a.md": ["a.md", "sub/a.md", "sub/deep/a.md", "x/deep/a.md"],
    "sub/*/?.md": ["sub/deep/a.md", "sub/deep/c.md"],
    "[ab].*": ["a.md", "b.txt"],
    "./sub//a.md": ["sub/a.md"],
    "A.MD": [],
    "sub": [],
    "nothing/**": [],
}


@pytest.mark.proves("SANDBOX-LISTING")
@pytest.mark.parametrize(("pattern", "expected"), MATCHES.items(), ids=list(MATCHES))
def test_a_listing_shows_what_matches_in_order(tmp_path: Path, world: World, pattern: str, expected: list[str]) -> None:
    root = tmp_path / "listed"
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(file)
    with world.sandbox(path=str(root)) as sandbox:
        assert [entry.path for entry in sandbox.list("in", pattern).entries] == expected
        below = [path for path in expected if path.startswith("sub/")] if pattern.startswith("**") else None
        if below is not None:
            found = [entry.path for entry in sandbox.list("in", pattern, under="sub").entries]
            assert set(below) <= set(found) <= {path for path in FILES if path.startswith("sub/")}


@pytest.mark.proves("A108")
@pytest.mark.parametrize("pattern", ["**/" * 200 + "*", "a" * 1_000_000, "{a,b}" * 300, "**/a/" * 100])
def test_a_pattern_without_end_is_refused_or_cheap(world: World, pattern: str) -> None:
    with world.sandbox() as sandbox:
        started = time.process_time()
        try:
            listing = sandbox.list("in", pattern)
        except SandboxError as error:
            assert "pattern too long" in str(error)
        else:
            assert len(listing.entries) == 3
        assert time.process_time() - started < 1


@pytest.mark.proves("A108")
def test_the_dearest_allowed_pattern_is_cheap(world: World) -> None:
    folder = world.root.joinpath(*["a" * 30] * 30)
    folder.mkdir(parents=True)
    (folder / ("a" * 200)).touch()
    with world.sandbox() as sandbox:
        started = time.process_time()
        assert sandbox.list("in", "**/*a*a*/" * 15 + "*a*a*a*a*a*a*a*b").entries == ()
        assert time.process_time() - started < 1


PROJECT_PATTERNS = ("workers", "tools.py", "prompts/{id}", "**/*.worker", "templates/*.jinja", "x/**/schemas")

PLACES = {
    "the project itself": (".", {"workers/a.worker", "tools.py", "templates/a.jinja", "x/y/z/schemas/s.json"}, {"x/y"}),
    "a folder beside what is loaded": ("output", {"a.worker", ".git/x"}, {"workers/a.md", "tools.py", "a.md"}),
    "a folder that is loaded": ("workers", {"a.md", "deep/x"}, set()),
    "a folder in a loaded one": ("workers/deep", {"a.md"}, set()),
    "a folder on the way": ("x", {"schemas/s.json", "y/schemas/s.json", "z.worker"}, {"tools.py", "workers"}),
    "further on the way": ("x/y", {"schemas/s.json"}, {"s.json"}),
    "the templates": ("templates", {"a.jinja", "A.JINJA/x"}, {"a.txt"}),
    "around the project": (
        "..",
        {"project/workers/a", "project/tools.py", "other/a.worker"},
        {"tools.py", "workers/a"},
    ),
    "far around": ("../..", {"above/project/workers/a"}, {"project/workers/a", "workers/a"}),
    "elsewhere": ("../beside", {"a.worker", "approvals.lock"}, {"workers/a.md", "tools.py"}),
    "inside git": (".git/info", {"anything"}, set()),
}


@pytest.mark.proves("SANDBOX-PROTECTED")
@pytest.mark.parametrize(("place", "protected", "free"), PLACES.values(), ids=list(PLACES))
def test_protection_follows_to_wherever_a_root_lies(
    tmp_path: Path, place: str, protected: set[str], free: set[str]
) -> None:
    project = tmp_path / "above" / "project"
    project.mkdir(parents=True)
    found = patterns.protected_in(str(project / place), str(project), PROJECT_PATTERNS)
    for path in protected | {".git", ".GIT/config", "sub/.llm-do/runs.db", "libs.lock"}:
        assert patterns.is_protected(found, path.split("/")), path
    for path in free:
        assert not patterns.is_protected(found, path.split("/")), path


@pytest.mark.proves("SANDBOX-PROTECTED")
def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "workers").mkdir(parents=True)
    (project / "notes").symlink_to("workers")
    found = patterns.protected_in(str(project / "notes"), str(project), PROJECT_PATTERNS)
    assert patterns.is_protected(found, ("a.md",))
