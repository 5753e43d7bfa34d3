"""`llm-do-mcp install`: one entry in a host's configuration file, and everything else in it as it was."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from llm_do_mcp.cli.hosts import file, jsonc, probe, start
from llm_do_mcp.cli.hosts.table import HOSTS
from llm_do_mcp.errors import UsageError
from tests.cli.commands import llm_do_mcp
from tests.serving.clients import shop


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shop(tmp_path / "shop")


@pytest.mark.proves("INSTALL-HOSTS")
@pytest.mark.parametrize("host", sorted(HOSTS))
def test_each_host_is_given_what_starts_the_server(home: Path, project: Path, host: str) -> None:
    done = llm_do_mcp("install", host, "shop", home=home, cwd=project.parent, LLM_DO_MODEL="scripted:x")
    assert done.returncode == 0, done.stderr
    [written] = [path for path in home.rglob("*.json") if path.is_file()]
    entry = json.loads(written.read_text())[HOSTS[host].section]["shop"]
    command = [entry["command"], *entry["args"]]
    assert os.path.isabs(command[0]) and command[-1] == str(project)
    assert entry["env"] == {"LLM_DO_MODEL": "scripted:x"}
    heard = probe.speak(start.Start(command), probe.HANDSHAKE)
    assert heard.problem == "" and "shop" in [tool["name"] for tool in heard.lists["tools"]]


KEPT = """\
// mine
{
    "theme": "dark", /* of course */
    "mcpServers": {
        "other": {"command": "x", "args": ["é"]}, // stays
    },
}
"""


@pytest.mark.proves("INSTALL-KEEPS")
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_all_else_stays_to_the_byte_and_the_old_file_is_kept(home: Path, project: Path, ends: str) -> None:
    place = home / ".cursor" / "mcp.json"
    place.parent.mkdir()
    before = b"\xef\xbb\xbf" + KEPT.replace("\n", ends).encode()
    place.write_bytes(before)
    place.chmod(0o640)
    assert llm_do_mcp("install", "cursor", project, home=home).returncode == 0
    after = place.read_bytes()
    [copy] = place.parent.glob("*.bak")
    assert copy.read_bytes() == before
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    kept = [line for line in before.splitlines() if line.strip() not in (b"},", b"}")]
    rest = iter(after.splitlines())
    assert all(line in rest for line in kept), after.decode()
    assert (b"\r\n" in after) == (ends == "\r\n")
    data = file.read(place)
    assert data["theme"] == "dark" and data["mcpServers"]["other"] == {"command": "x", "args": ["é"]}
    assert data["mcpServers"]["shop"]["args"][-1] == str(project)


@pytest.mark.proves("INSTALL-KEEPS")
def test_the_same_again_changes_nothing_and_what_was_added_to_an_entry_stays(home: Path, project: Path) -> None:
    place = home / ".cursor" / "mcp.json"
    assert llm_do_mcp("install", "cursor", project, "--env", "A=1", home=home).returncode == 0
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    first = place.read_bytes()
    again = llm_do_mcp("install", "cursor", project, "--env", "A=1", home=home)
    assert "nothing was changed" in again.stdout and place.read_bytes() == first
    data = json.loads(first)
    data["mcpServers"]["shop"]["disabled"] = True
    place.write_text(json.dumps(data))
    changed = llm_do_mcp("install", "cursor", project, "--env", "B", "--", "--approvals", "deny", home=home, B="2")
    entry = json.loads(place.read_text())["mcpServers"]["shop"]
    assert changed.returncode == 0 and entry["disabled"] is True and entry["env"] == {"A": "1", "B": "2"}
    assert entry["args"][-3:] == [str(project), "--approvals", "deny"]


@pytest.mark.proves("INSTALL-KEEPS")
def test_a_link_to_the_file_stays_a_link(home: Path, project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("")
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(real)
    assert llm_do_mcp("install", "cursor", project, home=home).returncode == 0
    assert (home / ".cursor" / "mcp.json").is_symlink() and "shop" in json.loads(real.read_text())["mcpServers"]


@pytest.mark.proves("INSTALL-PRINT")
def test_printing_writes_nothing(home: Path, project: Path) -> None:
    done = llm_do_mcp("install", "vscode", project, "--print", "--name", "mine", home=home)
    entry = json.loads(done.stdout)["servers"]["mine"]
    assert entry["type"] == "stdio" and entry["args"][-1] == str(project)
    assert list(home.iterdir()) == []


BAD_FILES = {
    "cut": (b'{"mcpServers": {', "1:17:"),
    "no object": (b"[1]", "no JSON object"),
    "section is no object": (b'{"mcpServers": []}', "mcpServers is no object"),
    "a name twice": (b'{"a": 1,\n "a": 2}', "2:2: the name 'a' is here twice"),
    "not UTF-8": (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
    "single quotes": (b"{'a': 1}", "1:2:"),
    "deep": (b"[" * 5000, "nested too deeply"),
    "a long number": (b'{"a": ' + b"9" * 5000 + b"}", "1:7: this number has too many digits"),
    "a server with odd arguments": (b'{"mcpServers": {"shop": {"command": "x", "args": 5}}}', "`args` is no list"),
    "a server with odd variables": (b'{"mcpServers": {"shop": {"command": "x", "env": 5}}}', "`env` is no object"),
    "another server": (
        b'{"mcpServers": {"shop": {"command": "x", "args": ["/elsewhere"]}}}',
        "another server called 'shop': x /elsewhere; choose a --name",
    ),
}


@pytest.mark.proves("INSTALL-REFUSED")
@pytest.mark.parametrize("case", sorted(BAD_FILES))
def test_a_file_that_cannot_be_changed_safely_is_left_alone(home: Path, project: Path, case: str) -> None:
    content, said = BAD_FILES[case]
    place = home / "mcp.json"
    place.write_bytes(content)
    done = llm_do_mcp("install", "cursor", project, "--file", place, home=home)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1
    assert done.stderr.endswith("; nothing was changed\n")
    assert place.read_bytes() == content and [path.name for path in home.iterdir()] == ["mcp.json"]


@pytest.mark.proves("INSTALL-REFUSED")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_no_file_is_not_waited_for_and_what_cannot_be_written_is_named(home: Path, project: Path) -> None:
    os.mkfifo(home / "pipe")
    for place in (home / "pipe", home):
        done = llm_do_mcp("install", "cursor", project, "--file", place, home=home)
        assert done.returncode == 2 and f"{place} cannot be read: it is no regular file; nothing" in done.stderr
    long = "x" * 250
    for name in ("file", long):
        (home / name).write_text("")
    (home / "loop").symlink_to(home / "loop")
    for name, said in (
        ("x" * 255, "cannot be written: "),
        (long, "no copy of it can be kept beside it: "),
        ("x" * 300, "cannot be read: "),
        ("loop", "cannot be read: "),
        ("file/x", "the folder cannot be made: "),
    ):
        done = llm_do_mcp("install", "cursor", project, "--file", home / name, home=home)
        assert done.returncode == 2 and said in done.stderr and done.stderr.endswith("; nothing was changed\n")


@pytest.mark.proves("INSTALL-REFUSED")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes as a name")
def test_what_is_no_unicode_cannot_stand_in_a_hosts_file(home: Path, project: Path) -> None:
    odd = os.fsdecode(b"\xff")
    other = shop(project.parent / odd)
    for words in ([project, "--env", f"A={odd}"], [project, "--name", odd], [other], [project, "--", "--model", odd]):
        for printed in ([], ["--print"]):
            options = [*words[:1], *printed, *words[1:]]
            done = llm_do_mcp("install", "cursor", *options, home=home)
            assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
            assert "it has bytes that are no UTF-8, which no host's file can hold" in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.proves("INSTALL-KEEPS")
def test_half_a_surrogate_pair_in_an_entry_is_kept(home: Path, project: Path) -> None:
    place = home / "mcp.json"
    old = r'{"mcpServers": {"shop": {"command": "x", "args": [%s], "env": {"X": "é\ud800\\ud800"}}}}'
    place.write_text(old % json.dumps(str(project)), encoding="utf-8")
    done = llm_do_mcp("install", "cursor", project, "--file", place, "--env", "Y=1", home=home)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    text = place.read_text("utf-8")
    assert r'"é\ud800\\ud800"' in text
    assert json.loads(text)["mcpServers"]["shop"]["env"] == {"X": "é\ud800\\ud800", "Y": "1"}


@pytest.mark.proves("INSTALL-COMMENTS")
@pytest.mark.parametrize("text", ["// mine\n", "/* mine */", "// mine", " \r\n// a\r\n/* b */\r\n"])
def test_a_file_with_nothing_but_comments_keeps_them(home: Path, project: Path, text: str) -> None:
    place = home / "mcp.json"
    place.write_bytes(text.encode())
    done = llm_do_mcp("install", "vscode", project, "--file", place, home=home)
    assert done.returncode == 0, done.stderr
    assert place.read_bytes().startswith(text.rstrip().encode())
    assert list(file.servers(place, "servers")) == ["shop"]


@pytest.mark.proves("INSTALL-REFUSED")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["notepad", "."], "no host that is known"),
        (["cursor", "missing"], "missing"),
        (["cursor", ".", "--env", "NOT_SET"], "not set here"),
        (["cursor", ".", "--env", "A-B=1"], "not the name of a variable"),
        (["cursor", ".", "--file", ""], "--file: it is empty"),
        (["cursor", ".", "--", "--http", "127.0.0.1:1"], "--http"),
        (["cursor", ".", "--", "--no-such"], "--no-such"),
        (["cursor", ".", "--", "--tokens", "tokens"], "belong to --http"),
        (["cursor", ".", "--", "--state-dir", "runs"], "write --state-dir /"),
        (["cursor", ".", "--", "--lib", "libs"], "write --lib /"),
        (["cursor", ".", "--", "../shop"], "hosts start a server in a folder of their own; write /"),
    ],
)
def test_what_a_host_could_not_start_is_not_written(home: Path, project: Path, words: list[str], said: str) -> None:
    done = llm_do_mcp("install", *words, home=home, cwd=project)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert list(home.iterdir()) == []


@pytest.mark.proves("INSTALL-REFUSED")
def test_a_file_that_somebody_changes_meanwhile_is_not_overwritten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = home / "mcp.json"
    place.write_text("{}")
    keep = file._keep

    def keep_and_change(path: Path) -> Path:
        kept = keep(path)
        place.write_text('{"theirs": 1}')
        return kept

    monkeypatch.setattr(file, "_keep", keep_and_change)
    with pytest.raises(UsageError, match="somebody else"):
        file.put(place, ("mcpServers", "a"), {})
    assert place.read_text() == '{"theirs": 1}' and len(list(home.iterdir())) == 2


@pytest.mark.proves("INSTALL-KEEPS")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{}",
        "{ }",
        '{"a":{"b":1}}',
        '{"a":{},}',
        '{\n\t"a": {\n\t\t"b": [1, 2,], // x\n\t},\n}\n',
        '{"a": {"b": 1 /* one */ // two\n}}',
        '{"a": {"b": "}{,\\" // no comment"}}',
        '// first\n{"z": -1.5e3, "n": null}\n// last',
    ],
)
@pytest.mark.parametrize("path", [("a", "b"), ("a", "c"), ("new", "x"), ("top",)])
def test_a_change_leads_to_the_data_that_was_wanted(text: str, path: tuple[str, ...]) -> None:
    value = {"command": "é", "args": [], "env": {"K": "{"}}
    changed = jsonc.put(text, path, value)
    assert jsonc.read(changed) == jsonc.merged(jsonc.read(text), path, value)
    assert jsonc.put(changed, path, value) == changed


@pytest.mark.proves("INSTALL-LARGE")
@pytest.mark.parametrize("item", ['{"d":"a","p":{}}', "1"])
@pytest.mark.parametrize("comment", ["", " // mine"])
def test_what_is_plain_json_is_read_at_once(monkeypatch: pytest.MonkeyPatch, item: str, comment: str) -> None:
    one_by_one: list[int] = []
    value = jsonc._Reader._value

    def counted(self: jsonc._Reader, at: int, depth: int, path: Sequence[str] = ()) -> jsonc._Value:
        one_by_one.append(at)
        return value(self, at, depth, path)

    monkeypatch.setattr(jsonc._Reader, "_value", counted)
    items = ",".join([item] * 10_000)
    text = f'{{"projects":{{"x":{{"history":[{items}]}}}}{comment}\n}}'
    changed = jsonc.put(text, ("mcpServers", "shop"), {"command": "x"})
    assert len(jsonc.read(changed)["projects"]["x"]["history"]) == 10_000
    assert len(one_by_one) < 10


@pytest.mark.proves("INSTALL-REFUSED")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": [1, NaN]}', "1:11: a value is expected here"),
        ('{"a": {"b": 1, "b": 2}}', "1:16: the name 'b' is here twice"),
        ("[" * 202 + "]" * 202, "1:202: nested too deeply"),
        ('{"a":' * 150 + "[" * 52 + "]" * 52 + "}" * 150, "1:802: nested too deeply"),
    ],
)
def test_what_plain_json_must_not_hold_is_found_in_it(text: str, said: str) -> None:
    with pytest.raises(jsonc.NotJson, match=f"^{re.escape(said)}$"):
        jsonc.read(text)


@pytest.mark.proves("INSTALL-KEY")
def test_a_key_is_only_written_when_it_is_asked_for(home: Path, project: Path) -> None:
    key = {"ANTHROPIC_API_KEY": "sk-secret", "LLM_DO_MODEL": "anthropic:claude-haiku-4-5"}
    (project / "project.yaml").write_text('{"name": "shop"}')
    without = llm_do_mcp("install", "cursor", project, home=home, **key)
    place = home / ".cursor" / "mcp.json"
    assert "--env ANTHROPIC_API_KEY" in without.stderr and "sk-secret" not in place.read_text()
    asked = llm_do_mcp("install", "cursor", project, "--env", "ANTHROPIC_API_KEY", home=home, **key)
    assert asked.stderr == "" and "sk-secret" in place.read_text() and "sk-secret" not in asked.stdout
