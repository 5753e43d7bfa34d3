"""Where libraries are found, in which version, and which of them cannot be had together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidReference, LibraryConflict, LibraryNotFound, ProjectError, UsageError
from llm_do_mcp.project.library import Spec, closure, locate, places, read_library
from llm_do_mcp.project.load import load_project
from tests.project.conftest import problems, worker, write
from tests.project.shelf import load_with, shelve


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home of their own, with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.delenv("LLM_DO_LIBS", raising=False)
    return folder


def at(folder: Path, *names: str) -> Path:
    """Libraries with nothing in them."""
    shelve(folder, {name: {} for name in names})
    return folder


# ---- places


@pytest.mark.proves("LIB-PLACES")
def test_libraries_are_looked_for_where_the_command_says_then_at_home_then_where_the_environment_says(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = home / ".llm-do" / "libs"
    given, more = at(tmp_path / "given", "a"), at(tmp_path / "more", "a", "b", "c")
    at(installed, "a", "b")
    monkeypatch.setenv("LLM_DO_LIBS", str(more))
    where = places([str(given)])
    assert where == (str(given), str(installed), str(more))
    found = [locate(Spec(name), where) for name in "abc"]
    assert found == [str(given / "a"), str(installed / "b"), str(more / "c")]


@pytest.mark.proves("A054")
def test_an_empty_part_of_llm_do_libs_is_no_place_and_one_that_is_not_there_is_harmless(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(tmp_path, "utils")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_DO_LIBS", os.pathsep.join(["", str(tmp_path / "none"), ""]))
    with pytest.raises(LibraryNotFound, match=r"no library 'utils' \(looked in ~/\.llm-do/libs, .*none\)"):
        locate(Spec("utils"), places())


@pytest.mark.proves("A054")
def test_places_that_would_mean_something_else_elsewhere_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_DO_LIBS", "libs")
    with pytest.raises(UsageError, match="LLM_DO_LIBS: 'libs' is not absolute"):
        places()
    monkeypatch.delenv("LLM_DO_LIBS")
    with pytest.raises(UsageError, match=r"--lib .*none: there is no such folder"):
        places([str(tmp_path / "none")])
    with pytest.raises(UsageError, match="is a library itself; name the folder that it lies in"):
        places([str(at(tmp_path, "utils") / "utils")])


# ---- versions


@pytest.mark.proves("LIB-VERSIONS", "A054")
@pytest.mark.parametrize(
    ("there", "spec", "found"),
    [
        (["utils", "utils@9.0"], "utils", "utils"),
        (["utils@1.9", "utils@1.10", "utils@1.10-rc1"], "utils", "utils@1.10"),
        (["utils@1.10-rc1", "utils@1.9"], "utils", "utils@1.10-rc1"),
        (["utils@2.0", "utils@10.0"], "utils", "utils@10.0"),
        (["utils", "utils@2.0"], "utils@2.0", "utils@2.0"),
        (["utils", "utils@1.0"], "utils@2.0", "utils"),  # whether it is that version is seen when it is opened
        (["utils-more@1.0", "utils@1.0"], "utils", "utils@1.0"),
    ],
)
def test_a_name_means_the_plain_folder_or_the_highest_version(
    tmp_path: Path, there: list[str], spec: str, found: str
) -> None:
    assert locate(Spec.parse(spec), [str(at(tmp_path, *there))]) == str(tmp_path / found)


@pytest.mark.proves("LIB-VERSIONS", "A054")
@pytest.mark.parametrize(
    ("files", "needs", "says"),
    [
        ({"utils": "version: 2.1.0"}, "utils@2.0", "no library 'utils@2.0': what is in {}/utils is 2.1.0"),
        ({"utils": ""}, "utils@2.0", "no library 'utils@2.0': what is in {}/utils does not say its version"),
        ({"utils@2.0": "version: 2.1.0"}, "utils@2.0", "no library 'utils@2.0': what is in {}/utils@2.0 is 2.1.0"),
        ({"utils@1.0": "", "utils@1.1": ""}, "utils@2.0", "(looked in {}); there is utils@1.0, utils@1.1"),
        ({}, "utils", "no library 'utils' (looked in {}); install it with `llm-do lib install`"),
        ({"utils": "name: other"}, "utils", "utils:lib.yaml:1:7: name 'other' is not that of the folder, 'utils'"),
        ({"utils": "exprots: [a]"}, "utils", "utils:lib.yaml:1:1: unknown key 'exprots'; did you mean 'exports'?"),
        ({"utils": "version: 2.0"}, "utils", "utils:lib.yaml:1:10: version: must be"),
    ],
)
def test_a_library_that_is_not_the_one_says_what_there_is(
    tmp_path: Path, files: dict[str, str], needs: str, says: str
) -> None:
    shelve(tmp_path / "shelf", {name: {"lib.yaml": text} for name, text in files.items()})
    with pytest.raises(ProjectError) as caught:
        closure("p", [needs], [str(tmp_path / "shelf")])
    assert says.format(tmp_path / "shelf") in str(caught.value)


@pytest.mark.proves("LIB-VERSIONS")
@pytest.mark.parametrize(
    ("folder", "text", "version"),
    [
        ("utils", "version: 2.1.0", "2.1.0"),
        ("utils@2.0", "", "2.0"),
        ("utils", "", None),
        ("utils", "version: 1", None),
    ],
)
def test_a_version_is_what_the_manifest_says_else_the_folder(
    tmp_path: Path, folder: str, text: str, version: str | None
) -> None:
    shelve(tmp_path, {folder: {"lib.yaml": text}})
    (library,) = closure("p", ["utils"], [str(tmp_path)])
    assert (library.name, library.version) == ("utils", version)


@pytest.mark.proves("A054")
@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "@", "@1.0", "a/b", "../a", "a@", "a@..", "a@../b", "a@1/2", "a@1@2", "A", "a b", "a\n", "ä"),
        "a" * 101,
    ],
)
def test_what_is_no_name_of_a_library_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidReference, match=r"is not a library; write its name in a-z, 0-9, _ and -") as caught:
        Spec.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.proves("LIB-NOT-FETCHED")
def test_an_address_names_the_command_that_installs(tmp_path: Path) -> None:
    address = "git+https://example.org/workers.git"
    with pytest.raises(LibraryNotFound) as caught:
        load_with(tmp_path, {"main.worker": worker(), "project.yaml": f"dependencies: [{address}]"}, {})
    assert str(caught.value).startswith("project.yaml:1:15: ")
    assert f"`llm-do lib install {address}`" in str(caught.value)


# ---- one library


@pytest.mark.proves("A054")
def test_a_folder_without_a_manifest_a_file_and_a_dangling_link_are_no_library(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    both = {"lib.yaml": "", "project.yaml": ""}
    shelve(tmp_path, {"both": both})
    for name, says in {
        "empty": r"library empty: no lib\.yaml and no project\.yaml in .*empty",
        "file": "library file: .* is not a folder",
        "gone": "library gone: .* is not a folder",
        "both": r"both:project\.yaml: lib\.yaml and project\.yaml both say what the library is; keep one",
    }.items():
        with pytest.raises(ProjectError, match=says):
            read_library(str(tmp_path / name), name)


@pytest.mark.proves("A054")
def test_a_library_may_be_a_link_to_its_folder_and_nothing_leads_out_of_that(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"lib.yaml": "", "workers/a.worker": worker()})
    (tmp_path / "elsewhere/workers/out.worker").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text(worker())
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf/utils").symlink_to(tmp_path / "elsewhere")
    project = load_with(tmp_path, {"main.worker": worker(), "project.yaml": "dependencies: [utils]"}, {})
    assert project.libraries["utils"].root == str(tmp_path / "elsewhere")
    assert project.worker("utils:a").id == "utils:a"
    with pytest.raises(ProjectError):
        project.worker("utils:out")


@pytest.mark.proves("LIB-MANIFEST")
def test_a_library_that_is_opened_for_itself_needs_a_name_and_tells_all_that_is_wrong(tmp_path: Path) -> None:
    write(tmp_path / "a", {"lib.yaml": "name: utils\nversion: 2.1.0\nexports: [b]", "workers/b.worker": worker()})
    found = read_library(str(tmp_path / "a"))
    assert (found.name, found.version, found.exports) == ("utils", "2.1.0", ("b",))
    write(tmp_path / "a", {"lib.yaml": ""})
    with pytest.raises(ProjectError, match="a library needs a 'name'"):
        read_library(str(tmp_path / "a"))
    write(tmp_path / "a", {"lib.yaml": "name: My Library"})
    with pytest.raises(ProjectError, match="'My Library' has more than a-z, 0-9, _ and -"):
        read_library(str(tmp_path / "a"))
    write(tmp_path / "a", {"lib.yaml": "nam: x\nversion: 2.0"})
    with pytest.raises(ProjectError) as caught:
        read_library(str(tmp_path / "a"))
    assert len(problems(caught.value)) == 2


@pytest.mark.proves("LIB-MANIFEST", "PROJECT-ALL-PROBLEMS")
def test_all_that_is_wrong_with_a_project_used_as_a_library_is_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    keys = "name: utils\nsandbox: {paths: {a b: ro:./x, A-B: ro:./y}}\nversoin: 2\n"
    write(tmp_path, {"project.yaml": keys, "main.worker": worker()})
    with pytest.raises(ProjectError) as caught:
        read_library(str(tmp_path), "utils")
    clash, unknown = problems(caught.value)
    assert clash.startswith("utils:project.yaml:2:32: aliases 'a b' and 'A-B' are both 'a_b'")
    assert unknown.startswith("utils:project.yaml:3:1: unknown key 'versoin'")


# ---- all of them


def needing(*names: str, version: str = "") -> dict[str, str]:
    """A library's manifest that depends on others."""
    head = f"version: {version}\n" if version else ""
    return {"lib.yaml": f"{head}dependencies: [{', '.join(names)}]"}


@pytest.mark.proves("LIB-CLOSURE")
def test_what_libraries_need_comes_along_once(tmp_path: Path) -> None:
    shelve(tmp_path, {"a": needing("c", "d"), "b": needing("d"), "c": needing("d"), "d": {}})
    found = closure("p", ["a", "b"], [str(tmp_path)])
    assert [(library.name, library.dependencies) for library in found] == [
        ("a", ("c", "d")), ("c", ("d",)), ("d", ()), ("b", ("d",)),
    ]  # fmt: skip


@pytest.mark.proves("LIB-CYCLE", "A053")
@pytest.mark.parametrize(
    ("libraries", "chain"),
    [
        ({"lib-a": needing("lib-b"), "lib-b": needing("lib-a")}, "lib-a → lib-b → lib-a"),
        ({"lib-a": needing("lib-a")}, "lib-a → lib-a"),
        ({"lib-a": needing("x"), "x": needing("y"), "y": needing("z"), "z": needing("x")}, "x → y → z → x"),
    ],
)
def test_libraries_that_depend_on_each_other_stop_the_start(
    tmp_path: Path, libraries: dict[str, dict[str, str]], chain: str
) -> None:
    files = {"main.worker": worker(), "project.yaml": "name: p\ndependencies:\n  - lib-a"}
    with pytest.raises(LibraryConflict) as caught:
        load_with(tmp_path, files, libraries)
    assert str(caught.value) == f"project.yaml:3:3: Circular dependency detected: {chain}"


@pytest.mark.proves("LIB-CONFLICT")
def test_two_versions_of_one_library_stop_the_start_and_are_told_in_the_words_of_the_specification(
    tmp_path: Path,
) -> None:
    libraries = {"lib-a@2.0": {}, "lib-a@1.0": {}, "lib-b@1.0": needing("lib-a@1.0")}
    manifest = "name: my-project\ndependencies: [lib-b@1.0, lib-a@2.0]"
    with pytest.raises(LibraryConflict) as caught:
        load_with(tmp_path, {"main.worker": worker(), "project.yaml": manifest}, libraries)
    assert str(caught.value) == (
        "project.yaml:2:15: Version conflict for lib-a\n"
        "  - my-project requires lib-a@2.0\n"
        "  - lib-b@1.0 requires lib-a@1.0"
    )


@pytest.mark.proves("LIB-CONFLICT")
def test_two_libraries_that_need_two_versions_conflict_whatever_the_project_says_of_others(tmp_path: Path) -> None:
    shelve(tmp_path, {"a": {}, "a@1.0": {}, "a@2.0": {}, "b": needing("a@1.0"), "c": needing("a@2.0")})
    with pytest.raises(LibraryConflict, match=r"Version conflict for a\n  - b requires a@1\.0\n  - c requires a@2\.0"):
        closure("p", ["b", "c"], [str(tmp_path)])


@pytest.mark.proves("LIB-CONFLICT")
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"], ["a@1.0", "c"]])
def test_a_version_that_anybody_names_holds_for_those_who_name_none(tmp_path: Path, order: list[str]) -> None:
    libraries = {
        "a": needing("new", version="3.0.0"),
        "a@1.0": needing("old"),
        "b": needing("a@1.0"),
        "c": needing("a"),
    }
    shelve(tmp_path, {**libraries, "new": {}, "old": {}})
    found = {library.name: library.version for library in closure("p", order, [str(tmp_path)])}
    assert found["a"] == "1.0" and "old" in found and "new" not in found


@pytest.mark.proves("LIB-CLOSURE")
def test_a_dependency_of_a_library_that_is_no_name_points_at_the_librarys_file(tmp_path: Path) -> None:
    shelve(tmp_path, {"a": {"lib.yaml": "dependencies:\n  - ../b"}})
    with pytest.raises(ProjectError, match=r"^a:lib\.yaml:2:5: '\.\./b' is not a library"):
        closure("p", ["a"], [str(tmp_path)])


@pytest.mark.proves("LIB-PLACES")
def test_without_dependencies_no_library_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_DO_LIBS", "relative")
    write(tmp_path / "p", {"main.worker": worker()})
    assert load_project(tmp_path / "p").libraries == {}
