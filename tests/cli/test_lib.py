"""`llm-do lib`: libraries come, are shown, are locked, and go."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.project.conftest import worker, write

LIBRARY = {
    "lib.yaml": "name: utils\nversion: '2.1.0'\ndescription: Text things.\nexports: [shout]\n",
    "workers/shout.worker": worker("description: Shouts."),
    "workers/kept.worker": worker(),
}
PROJECT = {
    "project.yaml": "name: mine\nmodel: scripted:model.yaml\ndependencies: [utils]\n",
    "main.worker": worker("allow_workers: ['utils:shout']"),
    "model.yaml": "workers: {main: [done]}\n",
}


class Person:
    """Somebody with a home of their own."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.libs = self.home / ".llm-do" / "libs"
        self.source = root / "source"
        self.project = root / "mine"
        self.home.mkdir()
        write(self.source, LIBRARY)
        write(self.project, PROJECT)

    def llm_do(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        home = {"HOME": str(self.home), "USERPROFILE": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        return llm_do(*arguments, cwd=self.home, env={**home, **env})

    def lib(self, *arguments: str | Path, **env: str) -> str:
        """What a command prints that works."""
        done = self.llm_do("lib", *arguments, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str | Path, **env: str) -> str:
        """The one line with which a command is refused."""
        done = self.llm_do(*arguments, **env)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        (line,) = done.stderr.splitlines()
        return line.removeprefix("llm-do: ")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.mark.proves("LIB-COMMANDS")
def test_a_library_comes_is_shown_and_goes(person: Person) -> None:
    source = os.path.realpath(person.source)
    assert person.lib("list") == f"{person.libs}\n  (none)\n"
    assert person.lib("install", "../source") == f"installed utils 2.1.0 (3 files) from {source}\n"
    assert person.lib("list").splitlines() == [str(person.libs), f"  {'utils':24}  2.1.0       {source}"]
    (listed,) = json.loads(person.lib("list", "--json"))
    assert (listed["folder"], listed["version"], listed["description"]) == ("utils", "2.1.0", "Text things.")
    shown = dict(line.split(maxsplit=1) for line in person.lib("info", "utils").splitlines())
    told = json.loads(person.lib("info", "utils", "--json"))
    assert shown["exports"] == "shout" and shown["from"] == source and shown["folder"] == str(person.libs / "utils")
    assert shown["content"] == f"{told['content']} (3 files)" and len(told["content"]) == 64
    assert (told["name"], told["version"], told["exports"], told["dependencies"]) == ("utils", "2.1.0", ["shout"], [])
    assert (told["commit"], told["changed"]) == (None, False)
    write(person.libs, {"utils/workers/shout.worker": worker("description: Changed.")})
    assert "(changed since)" in person.lib("info", "utils")
    assert json.loads(person.lib("info", "utils", "--json"))["content"] != told["content"]
    assert person.lib("remove", "utils") == "removed utils\n"
    assert person.lib("list") == f"{person.libs}\n  (none)\n"


@pytest.mark.proves("LIB-COMMANDS")
def test_versions_places_and_what_was_put_there_by_hand(person: Person, tmp_path: Path) -> None:
    shutil.copytree(person.source, tmp_path / "more" / "utils")
    write(tmp_path / "more", {"odd/lib.yaml": "nam: odd\n"})
    assert person.lib("install", person.source, "--versioned").startswith("installed utils@2.1.0 2.1.0 (3 files)")
    assert person.lib("info", "utils@2.1.0").splitlines()[0] == "name          utils"
    text = person.lib("list", LLM_DO_LIBS=str(tmp_path / "more"))
    assert "utils@2.1.0" in text and "2.1.0       (put there by hand)" in text
    assert "broken: odd:lib.yaml:1:1: unknown key 'nam'; did you mean 'name'?" in text
    assert "(put there by hand)" in person.lib("info", "utils", "--lib", tmp_path / "more")
    assert person.lib("install", person.source, "--to", tmp_path / "other").startswith("installed utils")
    assert person.lib("remove", "utils", "--from", tmp_path / "other") == "removed utils\n"
    assert person.lib("remove", "utils@2.1.0") == "removed utils@2.1.0\n"


@pytest.mark.proves("LIB-COMMANDS")
def test_what_a_library_needs_besides_is_named(person: Person, tmp_path: Path) -> None:
    write(tmp_path / "top", {"lib.yaml": "name: top\ndependencies: [utils, 'other@1.0']\n"})
    person.lib("install", person.source)
    done = person.llm_do("lib", "install", tmp_path / "top")
    assert done.returncode == 0 and done.stderr == "top needs other@1.0, which is not installed\n"


@pytest.mark.proves("LIB-COMMANDS", "LIB-GIT")
@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_a_commit_is_shown_from_which_the_same_can_be_installed(person: Person) -> None:
    who = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "1"]):
        subprocess.run([*who, *words], cwd=person.source, check=True, timeout=60)
    url = f"git+{person.source.as_uri()}"
    done = person.lib("install", url)
    shown = json.loads(person.lib("info", "utils", "--json"))
    assert len(shown["commit"]) == 40 and shown["from"] == f"{url}@{shown['commit']}"
    assert done == f"installed utils 2.1.0 (3 files) from {shown['from']}\n" and shown["from"] in person.lib("list")
    assert person.lib("install", shown["from"]).startswith("installed utils 2.1.0, in place of 2.1.0 (3 files)")


@pytest.mark.proves("LIB-COMMANDS-REFUSED", "A054")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lib", "install", "nowhere"], "there is no folder 'nowhere'; name a library's folder, or git+https://"),
        (["lib", "install", "."], "'.' holds the folder of libraries itself"),
        (["lib", "install", "../mine/nothing"], "there is no folder"),
        (["lib", "install", "git+ext::sh -c x"], "'git+ext::sh -c x' is not of the form git+https://"),
        (["lib", "remove", "utils"], "there is no library utils in "),
        (["lib", "remove", "../source"], "'../source' is not a library; write its name in a-z"),
        (["lib", "remove", "a/b"], "'a/b' is not a library"),
        (["lib", "remove", ".."], "'..' is not a library"),
        (["lib", "remove", "@"], "'@' is not a library"),
        (["lib", "info", "utils"], "no library 'utils' (looked in "),
        (["lib", "info", ".."], "'..' is not a library"),
        (["lib", "list", "--lib", "nowhere"], "--lib nowhere: there is no such folder"),
        (["lib", "lock", "nowhere"], "there is no "),
        (["lib", "lock", "../mine"], "project.yaml:3:15: no library 'utils' (looked in "),
    ],
)
def test_what_cannot_be_done_is_one_line(person: Person, arguments: list[str], words: str) -> None:
    assert person.refused(*arguments).startswith(words)
    assert (person.source / "lib.yaml").exists() and not (person.project / "libs.lock").exists()


@pytest.mark.proves("LIB-COMMANDS-REFUSED")
def test_a_command_line_that_cannot_be_used_says_how(person: Person) -> None:
    for arguments in ((), ("instal",), ("install",), ("remove",)):
        done = person.llm_do("lib", *arguments)
        assert done.returncode == 2 and done.stderr.endswith(" --help\n") and done.stdout == ""
        assert done.stderr.startswith("llm-do lib") and done.stderr.count("\n") == 1


@pytest.mark.proves("LIBS-LOCK-COMMAND", "LIBS-LOCK-REFUSES")
def test_a_changed_library_is_refused_until_it_is_accepted(person: Person) -> None:
    person.lib("install", person.source)
    assert person.llm_do("list", person.project).returncode == 0, "without a lock it may be as it is"
    made = person.llm_do("lib", "lock", person.project)
    content = json.loads(person.lib("info", "utils", "--json"))["content"]
    assert (made.returncode, made.stdout) == (0, f"utils 2.1.0: new (3 files, {content[:12]})\n")
    assert made.stderr == "Review libs.lock and what has changed before you commit it\n"
    text = (person.project / "libs.lock").read_text()
    assert f'  utils:\n    version: "2.1.0"\n    content: {content}\n    files: |\n' in text
    assert person.llm_do("list", person.project).returncode == 0
    assert person.lib("lock", person.project) == "utils 2.1.0: as before\n"
    assert (person.project / "libs.lock").read_text() == text

    newer = LIBRARY["lib.yaml"].replace("2.1.0", "2.2.0")
    write(person.source, {"lib.yaml": newer, "tools.py": ""})
    (person.source / "workers" / "kept.worker").unlink()
    person.lib("install", person.source)
    refused = person.refused("list", person.project)
    assert "library utils: lib.yaml has changed since libs.lock was written; look at it, and accept it" in refused
    assert person.refused(person.project, "go").endswith("accept it with `llm-do lib lock`")
    assert person.lib("lock", person.project).splitlines() == [
        "utils 2.2.0: changed (2.1.0 → 2.2.0)",
        "  changed  lib.yaml",
        "  added    tools.py",
        "  removed  workers/kept.worker",
    ]
    assert person.llm_do("list", person.project).returncode == 0


@pytest.mark.proves("LIBS-LOCK-COMMAND")
def test_a_lock_follows_what_the_project_needs_and_survives_a_bad_merge(person: Person) -> None:
    assert person.lib("lock", person.source.parent / "mine", "--lib", _place(person)) != ""
    lock = person.project / "libs.lock"
    lock.write_text("<<<<<<< ours\n" + lock.read_text())
    assert person.refused("list", person.project, LLM_DO_LIBS=str(_place(person))).startswith("libs.lock:1:")
    made = person.llm_do("lib", "lock", person.project, LLM_DO_LIBS=str(_place(person)))
    assert made.returncode == 0 and made.stdout.startswith("utils 2.1.0: new") and "it is written anew" in made.stderr
    write(person.project, {"project.yaml": "name: mine\n", "main.worker": worker()})
    assert person.lib("lock", person.project) == "utils: not needed any more\n"
    assert lock.read_text().endswith("libraries: {}\n")
    lock.unlink()
    assert person.lib("lock", person.project) == "this project needs no libraries; there is nothing to lock\n"
    assert not lock.exists()


TOOLS = """
from pathlib import Path

from llm_do_mcp import tool

from . import helper


@tool(risk="read")
def shout(text: str) -> str:
    "Shouts."
    return helper.loud(text)
"""
HELPER = """
from pathlib import Path

Path("imported").touch()


def loud(text):
    return text.upper()
"""


@pytest.mark.proves("LIBS-LOCK-WHOLE")
def test_no_python_of_a_locked_library_is_imported_when_any_of_it_has_changed(person: Person) -> None:
    write(person.source, {"tools.py": TOOLS, "helper.py": HELPER})
    call = "workers: {main: [{tool_calls: [{name: shout, input: {text: hey}}]}, done]}\n"
    write(person.project, {"main.worker": worker("toolsets: {custom: ['utils:shout']}"), "model.yaml": call})
    person.lib("install", person.source)
    person.lib("lock", person.project)
    mark = person.project / "imported"
    assert person.llm_do(person.project, "go").returncode == 0 and mark.exists()
    mark.unlink()
    write(person.libs, {"utils/helper.py": HELPER + "\n\n# changed\n"})
    done = person.llm_do(person.project, "go")
    assert done.returncode != 0 and not mark.exists()
    assert "library utils: helper.py: changed since libs.lock was written; look at it, and accept it" in done.stderr
    person.lib("lock", person.project)
    assert person.llm_do(person.project, "go").returncode == 0 and mark.exists()


def _place(person: Person) -> Path:
    """A folder of libraries that holds the library."""
    place = person.home / "place"
    if not place.exists():
        shutil.copytree(person.source, place / "utils")
    return place
