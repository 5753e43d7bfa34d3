"""`te cat` as a model uses it: files whole or in part, what each is like, and nothing that cannot be shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llm_do_mcp.te.logs import Log
from llm_do_mcp.te.settings import Settings
from tests.te.searching import GUARDS, read, search, te, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="such files are not to be had on Windows")
LINES = [f"line {number}" for number in range(1, 101)]
TEXT = "\n".join(LINES) + "\n"


@pytest.mark.proves("TE-CAT")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_file_that_fits_is_shown_as_it_is(tmp_path: Path, guard: str) -> None:
    text = "def f():\n\treturn 'ü'  \n\n\n# end"
    write(tmp_path, {"d/a.py": text, "empty.txt": "", "crlf.txt": "a\r\nb\r\n"})
    answer = search("te cat d/a.py", tmp_path, guard=guard)
    assert answer.meta == {"v": 1, "cmd": "cat", "lines": 5, "size": len(text.encode()), "content_type": "code/python"}
    assert answer.text.split("\n", 3)[3] == text + "\n"
    assert search("te cat empty.txt", tmp_path, guard=guard).meta["lines"] == 0
    assert search("te cat crlf.txt", tmp_path, guard=guard).hits == ["a", "b"]
    alias = search("te cat in/d/a.py", {"in": tmp_path}, guard=guard)
    assert alias.meta["lines"] == 5


@pytest.mark.proves("TE-CAT-PARTS")
@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ("a.txt:10-40", 10, 40),
        ("./a.txt:10-40", 10, 40),
        ("a.txt:10,12", 10, 12),
        ("a.txt:10:12", 10, 12),
        ("a.txt:L10-L12", 10, 12),
        ("a.txt:95-", 95, 100),
        ("a.txt:-3", 1, 3),
        ("a.txt:7", 7, 7),
        ("a.txt:99-500", 99, 100),
        ("-n 5 a.txt", 1, 5),
        ("-n5 a.txt", 1, 5),
        ("-5 a.txt", 1, 5),
        ("--lines=5 a.txt", 1, 5),
        ("a.txt -n -5", 96, 100),
        ("-n +98 a.txt", 98, 100),
        ("+98 a.txt", 98, 100),
        ("-n 0 a.txt", 1, 0),
        ("-n -500 a.txt", 1, 100),
    ],
)
def test_a_part_is_named_as_head_tail_and_editors_name_it(
    tmp_path: Path, arguments: str, first: int, last: int
) -> None:
    write(tmp_path, {"a.txt": TEXT})
    answer = search(f"te cat {arguments}", tmp_path)
    assert answer.hits == LINES[first - 1 : last]
    assert answer.meta["lines"] == 100
    assert "truncated" not in answer.meta


@pytest.mark.proves("TE-CAT-PARTS")
def test_numbers_and_marks_are_those_of_cat(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x\n\n\ty\n", "b.txt": TEXT, "a.txt:1-2": "colon\n"})
    assert search("te cat -n a.txt", tmp_path).hits == ["1\tx", "2\t", "3\t\ty"]
    assert search("te cat -b a.txt", tmp_path).hits == ["1\tx", "", "3\t\ty"]
    assert search("te cat -A a.txt", tmp_path).hits == ["x$", "$", "^Iy$"]
    assert search("te cat -nE b.txt:3-4", tmp_path).hits == ["3\tline 3$", "4\tline 4$"]
    assert search("te cat a.txt:1-2", tmp_path).hits == ["colon"], "a file of that very name comes first"
    assert search("te cat a.txt b.txt:1-2", tmp_path).hits == [
        "==> a.txt <==",
        "x",
        "",
        "\ty",
        "==> b.txt <==",
        *LINES[:2],
    ]


@pytest.mark.proves("TE-CAT-PARTS")
def test_any_line_of_a_large_file_is_found(tmp_path: Path) -> None:
    """Lines that end where pieces end, long ones among them: numbers agree with Python's own."""
    lines = ["x" * (number * 7919 % 4_000) for number in range(2_500)]
    lines[700] = "y" * 3_000_000
    write(tmp_path, {"a.txt": "\n".join(lines)})
    for number in (1, 2, 600, 699, 700, 702, 703, 1_200, 2_499, 2_500):
        answer = search(f"te cat a.txt:{number}", tmp_path, budget=100_000)
        shown = "".join(answer.hits).replace("…", "") if answer.hits else ""
        assert shown == lines[number - 1], number


@pytest.mark.proves("TE-CAT", "TE-BUDGET")
@pytest.mark.parametrize("arguments", ["a.txt", "a.txt b.py c.json", "-n a.txt:50-", "long.txt", "long.txt a.txt"])
def test_what_cat_leaves_out_is_told_and_adds_up(tmp_path: Path, arguments: str) -> None:
    data = json.dumps([{"id": n} for n in range(500)])
    write(tmp_path, {"a.txt": TEXT, "b.py": "def f(): pass\n" * 300, "c.json": data, "long.txt": "é" * 9_000})
    for budget in range(0, 3_000, 61):
        answer = search(f"te cat {arguments}", tmp_path, budget=budget) if budget > 300 else None
        if answer is None:
            continue
        assert len(answer.text) <= budget
        if answer.meta.get("truncated") and "more line" in answer.breadcrumb:
            crumb = next(line for line in answer.text.split("\n") if line.startswith("# TE: ") and "more line" in line)
            more = int(crumb.split()[2])
            whole = search(f"te cat {arguments}", tmp_path, budget=1_000_000)
            lost = [line for line in whole.hits if not line.startswith("==> ")]
            kept = [line for line in answer.hits if not line.startswith("==> ") and not line.endswith("…")]
            assert len(kept) + more == len([line for line in lost if not line.endswith("…")])


@pytest.mark.proves("TE-CAT", "TE-FAIR")
def test_one_file_does_not_eat_the_others_budget(tmp_path: Path) -> None:
    write(tmp_path, {"big.log": "x\n" * 100_000, "small.txt": "the point\n"})
    answer = search("te cat big.log small.txt", tmp_path, budget=1_000)
    assert "the point" in answer.hits
    assert len(answer.text) > 800, "and what is left of it is used"


@pytest.mark.proves("TE-SNIFF")
@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.py", "x", "code/python"),
        ("a.ts", "x", "code/typescript"),
        ("a.rs", "x", "code/rust"),
        ("a.h", "x", "code/c"),
        ("a.json", "x", "json"),
        ("a.yml", "x", "yaml"),
        ("a.toml", "x", "toml"),
        ("README.md", "x", "markdown"),
        ("a.log", "x", "log"),
        ("a.csv", "x", "tabular"),
        ("a.sql", "x", "code/sql"),
        ("run", "#!/usr/bin/env python3\n", "code/python"),
        ("run", "#!/bin/bash\n", "code/shell"),
        ("syslog", "Jan  3 10:00:00 host a\nJan  3 10:00:01 host b\n", "log"),
        ("out", "2026-01-02 10:00 x\n2026/01/02 10:00:01 y\n", "log"),
        ("out", "2026-01-02 ERROR x\n2026-01-02 - WARNING y\n", "log"),
        ("out", '1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.0" 200\n' * 2, "log"),
        ("diary.txt", "2026-01-02 slept badly\n2026-01-03 slept well\n", "text"),
        ("poem", "INFORMATION is\nERRORS are\n", "text"),
        ("out", "[ERROR] x\n[INFO] y\n", "log"),
        ("data", '{"a": 1}', "json"),
        ("data", '[\n  {"a": 1},\n  {"a": 2}\n]\n', "json"),
        ("data", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("data", "a\tb\n1\t2\n3\t4\n", "tabular"),
        ("data", "id, name, city\n1, Ann, New York\n2, Bob, Rome\n", "tabular"),
        ("notes", "He came, he saw what was there, and left.\nIt rained, it was cold as ice, and dark.\n", "text"),
        ("data", "[link] and text\nmore\n", "text"),
        ("notes", "plain\n", "text"),
        ("notes.txt", "plain\n", "text"),
        (".gitignore", "x\n", "text"),
    ],
)
def test_the_kind_of_a_text_is_told(tmp_path: Path, name: str, text: str, kind: str) -> None:
    write(tmp_path, {name: text})
    assert search(["cat", name], tmp_path).meta["content_type"] == kind


LEVELS = ("INFO", "INFO", "WARNING", "ERROR")
LOG = "".join(
    f"2026-03-0{1 + number // 400} 10:00:{number % 60:02} {LEVELS[number % 4]} text {number}\n"
    for number in range(1_200)
)
SHUFFLED = (
    "2026-12-31 23:59:59 ERROR last\n2026-01-01 00:00:01,123 - app.db - ERROR - first, valid until 2099-01-01 00:00\n"
    "2026-06-01T10:00:00Z [main] [error] middle\n"
) + '2026-06-01 10:00:00 1.2.3.4 "GET /ERROR HTTP/1.0" not an ERROR at all\n' * 99
ZONES = (
    "2026-03-01T08:00:00Z INFO b\n2026-03-01T10:00:00+05:00 INFO a\n2026-03-01T09:00:00-02:00 INFO c\n"
    "2026-03-01T08:00:00.123Z INFO b\n2026-02-31T08:00:00Z no such day\n"
) * 300
PARTS_BROKEN = "broken: 300 of 900 lines are not JSON, the first is line 2"
SETEXT = "---\n# comment\nkey: 1\n---\n\nOne\n===\n\nTwo\n---\n\n- item\n---\n\n### Three\n"
SCRIPT = """\
const fs = require('fs')
export const arrow = async (a) => {
}
class Engine {
  async run(a, b = 1) {
    if (a) {
      list.forEach((x) => {
      })
    }
  }
}
module.exports.foo = function (a) {
}
const text = `
function no() {
`
/*
function no() {
*/
const bar = (x) => x
"""
SCRIPT_TOLD = "outline: 2 export const arrow, 4 class Engine, 5 async run, 12 module.exports.foo, 20 const bar"
GO = "package x\n\nvar (\n\ta = 1\n)\n\nconst Most = 3\nfunc Map[T any](a T) {\n}\n"
RUST = "pub(crate) async fn go() {\n}\nimpl<T> Show for Vec<T> {\n    fn show(&self) {\n    }\npub static X: u8 = 1;\n"
RUST_TOLD = "1 pub(crate) async fn go, 3 impl<T> Show for Vec<T>, 4 fn show, 6 pub static X"
JAVA = "public class A {\n  A(int x) {\n  public <T> List<T> all(int a) {\n    for (x : y) {\n    run(() -> {\n" + (
    "    call(1);\n    if(a) {\n    return f(x) {\n  void last()\n  {\n  void last() throws E {\n"
)
PYTHON = 'import os\n"""\nclass No:\n"""\n\n\nclass Engine:\n' + "".join(
    f"    def step_{n}(self, x):\n        return {n}\n\n" for n in range(99)
)
ROWS = 'id,name,"two\nlines"\n' + "".join(f'{n},"a, b","x\ny"\n' for n in range(400))
DATA = json.dumps(
    {"version": 2, "items": [{"id": n, "tags": ["a"] * (n == 5), "at": None} for n in range(700)], "ok": True}
)


LOG_TOLD = ["severities: ERROR 300, WARN 300, INFO 600", "time: from 2026-03-01 10:00:00 to 2026-03-03 10:00:59"]


@pytest.mark.proves("TE-SHAPE")
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.log", LOG, LOG_TOLD),
        ("b.log", SHUFFLED, ["severities: ERROR 3", "time: from 2026-01-01 00:00:01 to 2026-12-31 23:59:59"]),
        ("a.json", DATA, ["shape: {version number, items [700 x {id number, tags [0-1 x string], at null}], ok bool}"]),
        ("b.json", DATA[:-40], ["shape: {version number, items", "broken: it ends before it is complete"]),
        ("c.json", f"{DATA}\nx", ["shape: {version number, items", "broken: from line 2, column 1 on it is not JSON"]),
        ("d.json", "[1" * 2_000, ["shape: [1 x number]", "broken: from line 1, column 3 on it is not JSON"]),
        ("a.jsonl", '{"a": 1, "b": "x"}\n' * 900, ["shape: 900 records, the first {a number, b string}"]),
        ("tz.log", ZONES, ["time: from 2026-03-01T10:00:00+05:00 to 2026-03-01T09:00:00-02:00"]),
        ("b.jsonl", '{"a": 1}\n{"a": \n[1]\n' * 300, ["shape: 600 records, the first {a number}", PARTS_BROKEN]),
        ("c.jsonl", '{"a": 1}\n\n' * 300 + "\n", ["shape: 300 records, the first {a number}"]),
        ("d.jsonl", '{\n"a": 1\n}\n' * 300, ["broken: none of 900 lines is JSON"]),
        ("c.csv", "# exported\na,b\n" + "1,2\n" * 900, ["900 rows, 2 columns: a, b"]),
        ("d.csv", '"a\nb",c\n' + "1,2\n" * 900, ["900 rows, 2 columns: a␊b, c"]),
        ("e.csv", "a,b,c\n" + "1,2\n1,2,3\n" * 300, ["600 rows, 3 columns", "broken: 300 of 600 rows"]),
        ("f.csv", '"a;b;c;d",e\n' + "1,2\n" * 900, ["900 rows, 2 columns: a;b;c;d, e"]),
        ("a.csv", ROWS, ["400 rows, 3 columns: id, name, two␊lines"]),
        ("a.tsv", "a\tb\n" + "1\t2\n" * 2_000, ["2,000 rows, 2 columns: a, b"]),
        ("b.tsv", "17\tb\n" + "1\t2\n" * 2_000, ["2,001 rows in all, 2 columns, the first row: 17, b"]),
        ("pandas.csv", ",name,x\n" + "0,bob,0\n" * 900, ["900 rows, 3 columns: , name, x"]),
        ("end.csv", "name,x,\n" + "bob,0,\n" * 900, ["900 rows, 3 columns: name, x, "]),
        ("blank.csv", ",,\n" + "bob,0,\n" * 900, ["901 rows in all, 3 columns, the first row: , , "]),
        ("years.csv", "country,2001\n" + "it,7\n" * 900, ["901 rows in all, 2 columns, the first row: country, 2001"]),
        ("days.csv", "id,2024-01-01\n" + "1,7\n" * 900, ["901 rows in all, 2 columns, the first row: id, 2024-01-01"]),
        ("part.log", "10:00:00 WARN a\n10:00:00 warned\n\n" * 300, ["severities: WARN 300, 300 lines without"]),
        ("a.md", "# One\n\n```\n# no\n```\n## Two\n" + "text\n" * 900, ["outline: 1 # One, 6 ## Two"]),
        ("b.md", SETEXT + "text\n" * 900, ["outline: 6 # One, 9 ## Two, 15 ### Three"]),
        ("a.py", PYTHON, ["outline: 7 class Engine, 8 def step_0, 11 def step_1, 14 def step_2, "]),
        ("a.js", SCRIPT + "//\n" * 2_000, [SCRIPT_TOLD]),
        ("b.go", GO + "//\n" * 2_000, ["outline: 3 var (, 7 const Most, 8 func Map"]),
        ("b.rs", RUST + "//\n" * 2_000, [f"outline: {RUST_TOLD}"]),
        ("A.java", JAVA + "//\n" * 2_000, ["outline: 1 public class A, 2 A, 3 public <T> List<T> all, 11 void last"]),
        ("a.go", "package x\n\nfunc (e *Engine) Run(a int) {\n}\n" + "\n" * 4_000, ["outline: 3 func (e *Engine) Run"]),
        ("a.rs", "pub struct A {\n}\n" + "//\n" * 2_000 + "fn go() {}\n", ["outline: 1 pub struct A, 2003 fn go"]),
        ("a.c", "static int go(int a)\n{\n\treturn f(a);\n}\n" + "\n" * 4_000, ["outline: 1 static int go"]),
        ("a.yaml", "name: x\nlist:\n  - a: 1\n" + "  - b\n" * 900, ["outline: 1 name, 2 list"]),
        ("a.toml", "[tool.x]\na = 1\n" + "#\n" * 2_000, ["outline: 1 [tool.x]"]),
        ("b.toml", "[[b.c]] # x\na = 1\n" + "#\n" * 2_000, ["outline: 1 [[b.c]]"]),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_tells_what_it_is_like(tmp_path: Path, name: str, text: str, told: list[str]) -> None:
    write(tmp_path, {name: text})
    answer = search(["cat", name], tmp_path, budget=2_000)
    lines = [line.removeprefix("# TE: ") for line in answer.text.split("\n") if line.startswith("# TE: ")]
    for wanted in told:
        assert any(line.startswith(wanted) for line in lines), lines
    assert text.startswith(answer.hits[0].rstrip("…")), "then the file from its start"
    assert search(["cat", name], tmp_path, budget=1_000_000).breadcrumb == "", "a whole file needs no summary"


def outline_of(folder: Path, name: str, text: str) -> list[str]:
    write(folder, {name: text + "\n" * 60})
    answer = search(["cat", name], folder, settings=Settings({"cat": {"preview_lines": 1}}))
    return [line for line in answer.text.split("\n") if line.startswith("# TE: outline: ")]


@pytest.mark.proves("TE-SHAPE")
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.sql", "CREATE TABLE users (\n  id int\n);\nDROP TABLE users;", ["1 CREATE TABLE users"]),
        ("a.sql", "CREATE OR REPLACE FUNCTION f(a int)\nALTER TABLE x ADD y int;", ["1 CREATE OR REPLACE FUNCTION f"]),
        ("a.sql", 'Create Temp Table "Odd" (a int);\nselect * from table_x;', ['1 Create Temp Table "Odd"']),
        ("a.sql", "CREATE VIEW v;\nCREATE PROCEDURE p()", ["1 CREATE VIEW v", "2 CREATE PROCEDURE p"]),
        ("a.c", "static int\ngnu_fn (int a)\n{\n  return f (a);\n}", ["2 gnu_fn"]),
        ("a.c", "int decl (int a,\n          int b);\nint two (int a,\n         int b)\n{\n} while (x)", ["3 int two"]),
        ("a.cpp", "template <typename T> class Tpl {\n};", ["1 class Tpl"]),
        ("a.cpp", "template<class T, class U = std::vector<int>>\nT fun(T a) {\n}", ["2 T fun"]),
        ("a.kt", "fun <T> List<T>.extf(x: Int): Int = x\nfun plain() {}", ["1 fun <T> List<T>.extf", "2 fun plain"]),
        ("a.rs", 'pub(crate) unsafe extern "C" fn lamp() {}', ['1 pub(crate) unsafe extern "C" fn lamp']),
        ("a.rs", "pub(in crate::x) fn lamp() {}", ["1 pub(in crate::x) fn lamp"]),
        ("a.cs", "class A {\n  public Task<int> Swim(int a) => await X();\n  Do(() => X());", [
            *("1 class A", "2 public Task<int> Swim"),
        ]),
        ("a.cs", "class A {\n  static List<T> G<T>(T a) where T : class {", ["1 class A", "2 static List<T> G<T>"]),
        ("A.java", "class A {\n  int sum(int a,\n      int b) {\n    foo(a,\n        b);", ["1 class A", "2 int sum"]),
        ("A.java", "class A {\n  void one(\n      int a);\n  void two(\n    int a)\n  {", ["1 class A"]),
        ("A.java", "class A {\n  public A(int x) { super(x); }\n  run(() -> { x(); });", ["1 class A", "2 public A"]),
        ("A.java", "class A {\n  @Override int m(int a) { return 1; }", ["1 class A", "2 @Override int m"]),
        ("a.cpp", "class A {\n  int f(int a) { return a; }\n  void g();\n  if (x) { y; }", ["1 class A", "2 int f"]),
        ("a.cs", "class A {\n  public int N { get; set; }\n  int y = z;\n  public A(int a) {", [
            *("1 class A", "2 public int N", "4 public A"),
        ]),
        ("a.cs", "class A {\n  public string M => x;\n  f(a => { x; });", ["1 class A", "2 public string M"]),
        ("a.py", "type T = int\nclass A: pass", ["1 type T", "2 class A"]),
        ("a.sh", "export A=1\nf() {\ng () {\nh ( )\n{\necho (x)", ["2 f", "3 g", "4 h"]),
        ("a.sql", "create view v as select 1;\nCREATE INDEX i ON t (a);", ["1 create view v", "2 CREATE INDEX i"]),
        ("a.sql", 'create table "a b" (c int);\ncreate trigger t x', ['1 create table "a b"', "2 create trigger t"]),
        ("a.rb", "class A::B < C\n  def n(a)", ["1 class A::B", "2 def n"]),
        ("a.md", "  # One\n   ## Two\n    # no", ["1 # One", "2 ## Two"]),
        ("a.scala", "object A {\n  def f(a: Int) = 1\n", ["1 object A", "2 def f"]),
        ("a.php", "<?php\nfunction &freefn($x) {}", ["2 function &freefn"]),
        ("a.rb", "class A\n  private def n\n  end", ["1 class A", "2 private def n"]),
        ("a.md", "<!--\n# no\n-->\n#\tTab\n<!-- # no -->\n# One #\n`<!--`\n## Two", ["4 # Tab", "6 # One", "8 ## Two"]),
    ],
)  # fmt: skip
def test_everyday_definitions_are_in_the_outline(tmp_path: Path, name: str, text: str, told: list[str]) -> None:
    assert outline_of(tmp_path, name, text) == ["# TE: outline: " + ", ".join(told)]


@pytest.mark.proves("TE-SHAPE")
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.rb", "=begin\ndef no\n=end\ndef yes\nend\n__END__\ndef no", ["4 def yes"]),
        ("a.rb", "A = <<~E\n  def no\nE\nL <<ITEM\ndef yes\n", ["5 def yes"]),
        ("a.rb", 'class << self\nx = "<<E"\ndef yes\nE\ndef one', ["3 def yes", "5 def one"]),
        ("a.sh", "cat <<EOF\nfunction no() {\nEOF\nf() {\n", ["4 f"]),
        ("a.sh", "cat <<-'E' | x\nno() {\n\tE\nf() {\ncat << \\E\nno() {\nE\n", ["4 f"]),
        ("a.sh", "echo $((1 << E))\nf() {\nE\ncat <<<E\ng() {\n# don't\n\\'\nh() {\n", ["2 f", "5 g", "8 h"]),
        ("a.sh", "awk '\nfunction no(a) {\n'\nf() {\necho \"\nno() {\n\"", ["4 f"]),
        ("a.sql", "/* create x\ncreate table no (a int);\n*/\ncreate table yes (a int);", ["4 create table yes"]),
        ("a.sql", "insert ('\ncreate table no(a);\n', 'it''s');\ncreate table yes(a);", ["4 create table yes"]),
        ("a.sql", "create function f() as $$\ncreate table no(a);\n$$;", ["1 create function f"]),
        ("a.sql", "-- /*\nselect '/*'\ncreate view yes;\n", ["3 create view yes"]),
        ("a.rs", 'const A: X = r#"a"\nfn no() {}\n"#;\nfn yes() {}', ["1 const A", "4 fn yes"]),
        ("a.rs", "fn a<'a>(x: &'a str) {\n'\"';\n'\\'';\n\"\nfn no() {}\n\";\n}\nfn b() {}", ["1 fn a", "8 fn b"]),
        ("a.toml", "a = \"\"\"\n[no]\n\"\"\"\nb = '''\n[no]\n'''\n[yes]\n", ["7 [yes]"]),
        ("a.toml", 'm = [ # rows\n[1,2],\n[3], # three\n\n[4]\n]\n[yes] # [no]\n[a."b"]\n', ["7 [yes]", '8 [a."b"]']),
        ("a.yaml", "<<: *x\n: f\n- k: 1\nhttp://x\n\"h: i\" : 2\nj k:\n'l': 1", ['5 "h: i"', "6 j k", "7 'l'"]),
        ("a.md", "# One\n\n    ```\n# Two\n\n```\n    ```\n# no\n```\n## Three", ["1 # One", "4 # Two", "10 ## Three"]),
    ],
)  # fmt: skip
def test_a_text_or_a_comment_is_in_no_outline(tmp_path: Path, name: str, text: str, told: list[str]) -> None:
    assert outline_of(tmp_path, name, text) == ["# TE: outline: " + ", ".join(told)]


@pytest.mark.proves("TE-SHAPE", "TE-BUDGET")
def test_an_outline_that_is_cut_says_that_it_goes_on(tmp_path: Path) -> None:
    names = [f"a_function_of_{number:03}" for number in range(299)]
    write(tmp_path, {"a.py": "".join(f"def {name}():\n    return {'x' * 99!r}\n\n" for name in names)})
    for budget in (3_000, 3_001, 6_000, 16_000):
        answer = search("te cat a.py", tmp_path, budget=budget)
        told = [line for line in answer.text.split("\n") if line.startswith("# TE: ") and "def a_func" in line]
        assert len(answer.text) <= budget and told[-1].endswith(", …") and not told[0].endswith("…")
    whole = search("te cat a.py", tmp_path, settings=Settings({"cat": {"preview_lines": 1}}), budget=40_000)
    assert names[-1] in whole.text and "…" not in whole.text


@pytest.mark.proves("TE-SHAPE")
def test_rows_that_are_only_counted_by_lines_are_about_so_many_where_cells_may_hold_lines(tmp_path: Path) -> None:
    write(tmp_path, {"quoted.csv": "a,b\n" + '1,"x\ny"\n' * 300_000, "plain.csv": "a,b\n" + "1,2\n" * 600_000})
    assert "# TE: about 600,000 rows, 2 columns: a, b" in search("te cat quoted.csv", tmp_path).text
    assert "# TE: 600,000 rows, 2 columns: a, b" in search("te cat plain.csv", tmp_path).text


@pytest.mark.proves("TE-SHAPE")
@pytest.mark.parametrize(
    ("line", "levels", "time"),
    [
        ("Jan  3 10:00:00 host app[12]: ERROR: x", ["ERROR"], "Jan  3 10:00:00"),
        ("2026-01-01T10:00:00Z [main] ERROR com.foo - INFO", ["ERROR"], "2026-01-01T10:00:00Z"),
        ("2026-01-01T10:00:00.123+0200 ERROR x", ["ERROR"], "2026-01-01T10:00:00+0200"),
        ("2026-01-01 10:00:00 UTC [123] ERROR:  relation", ["ERROR"], "2026-01-01 10:00:00"),
        ("2026/01/01 10:00:00 [error] 123#0: x", ["ERROR"], "2026/01/01 10:00:00"),
        ("2026-01-01 10:00:00.123 | WARNING  | mod:f:1 - x", ["WARN"], "2026-01-01 10:00:00"),
        ("[2026-01-01 10:00:00,123] {x.py:1} CRITICAL - a", ["CRITICAL"], "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00 [main] PANIC x", ["PANIC"], "2026-01-01 10:00:00"),
        ("2026/01/01 10:00:00 [crit] 123#0: x", ["CRIT"], "2026/01/01 10:00:00"),
        ("SEVERE: x", ["SEVERE"], ""),
        ("ERROR:root:x", ["ERROR"], ""),
        ('time="2026-01-01T10:00:00Z" level=error msg="x"', ["ERROR"], "2026-01-01T10:00:00Z"),
        ('{"level":"warn","ts":"2026-01-01T10:00:00Z"}', ["WARN"], "2026-01-01T10:00:00Z"),
        ('1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET /ERROR HTTP/1.0" 404', [], "10/Oct/2026:13:55:36"),
        ("2026-01-01 10:00:00 error x", ["ERROR"], "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00,123 warning x", ["WARN"], "2026-01-01 10:00:00"),
        ("2026-01-01T10:00:00.123Z info", ["INFO"], "2026-01-01T10:00:00Z"),
        ("2026-01-01 10:00:00 \x1b[31mERROR\x1b[0m x", ["ERROR"], "2026-01-01 10:00:00"),
        ("\x1b[2m2026-01-01 10:00:00\x1b[0m [\x1b[1;33mwarn \x1b[0m] x", ["WARN"], "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00 thread-1 Foo - INFO started", ["INFO"], "2026-01-01 10:00:00"),
        ("ERROR 2026-01-01 10:00:00 x", ["ERROR"], "2026-01-01 10:00:00"),
        ("2026-01-01 10:00:00 no error - x", [], "2026-01-01 10:00:00"),
        ("error without a time", [], ""),
        ("2026-01-01 10:00:00 the last ERROR was", [], "2026-01-01 10:00:00"),
    ],
)
def test_a_severity_is_one_where_logs_have_it(line: str, levels: list[str], time: str) -> None:
    log = Log([line.encode()])
    assert (list(log.levels), log.first.decode()) == (levels, time)


@pytest.mark.proves("TE-SHAPE")
@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("a.log", "1.2,3-4 " * 48 + "\n"),
        ("b.log", "[a] - b: " * 40 + "\n"),
        ("a.js", "function a(b){return '/*x"),
        ("b.js", "/*"),
        ("a.py", "'''a\\"),
        ("a.sh", "cat <<A\n"),
        ("b.sh", "<<A '"),
        ("a.rb", "<<A\nB\n"),
        ("a.rs", 'r#"\n'),
        ("b.rs", "'\\a"),
        ("a.toml", "'''"),
        ("b.toml", "[a"),
        ("a.yaml", "a \n"),
        ("b.yaml", "a "),
        ("a.json", "["),
        ("a.csv", "#\n"),
        ("b.csv", '"'),
    ],
)
def test_no_text_takes_long_to_sum_up(tmp_path: Path, name: str, piece: str) -> None:
    write(tmp_path, {name: piece * ((2 << 20) // len(piece))})
    began = time.process_time()
    assert "error" not in search(["cat", name], tmp_path, budget=2_000, seconds=60).meta
    assert time.process_time() - began < 5, "it is read once, not once for each place in it"


@pytest.mark.proves("TE-CAT-BAD", "A031", "A030")
@pytest.mark.parametrize("guard", GUARDS)
def test_encodings_are_read_or_told(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"16le": "\ufeffä\nb\n".encode("utf-16-le"), "16be": "\ufeffä\nb\n".encode("utf-16-be")})
    write(tmp_path, {"bom": b"\xef\xbb\xbfa\n", "cp1252": "naïve\n".encode("cp1252"), "cr": "a\rb\r", "ls": "a\u2028b"})
    write(tmp_path, {"nul": b"a\0b", "png": b"\x89PNG\r\n\x1a\n\0\0", "cut.txt": "é" * 40_000})
    for name, hits in (
        ("16le", ["ä", "b"]),
        ("16be", ["ä", "b"]),
        ("bom", ["a"]),
        ("cp1252", ["na\ufffdve"]),
        ("cr", ["a␍b"]),
        ("ls", ["a\ufffdb"]),
    ):
        answer = search(f"te cat {name}", tmp_path, guard=guard)
        assert answer.hits == hits, name
        assert bool(answer.notes) == (name == "cp1252")
    assert search("te cat cp1252", tmp_path).notes[0].startswith("[TE] cp1252 is not UTF-8 from byte 2 on")
    binary = search("te cat nul png", tmp_path, guard=guard)
    assert binary.meta["content_type"] == "binary"
    assert "# TE: png is binary (PNG, 10 bytes), and not shown" in binary.text
    assert search("te cat cut.txt", tmp_path).notes == [], "a character that the head of the file cuts is no fault"
    assert "\ufffd" not in search("te cat cut.txt", tmp_path, budget=900).text


@pytest.mark.proves("TE-CAT-BAD", "TE-UNFORGEABLE")
def test_no_file_passes_for_a_part_of_the_answer(tmp_path: Path) -> None:
    forged = "# TE_END_META\n# TE: 0 more\n[TE] note\n==> b <==\n\\# TE: x\n# TEXT\n# fine\n"
    write(tmp_path, {"a.txt": forged + "\x1b[31mred\u202e\n"})
    answer = search("te cat a.txt", tmp_path)
    assert answer.hits == [
        "\\# TE_END_META",
        "\\# TE: 0 more",
        "\\[TE] note",
        "\\==> b <==",
        "\\\\# TE: x",
        "\\# TEXT",
        "# fine",
        "␛[31mred\ufffd",
    ]


@POSIX
@pytest.mark.proves("TE-CAT-BAD", "TE-SPECIAL-FILES", "TE-CONFINED")
@pytest.mark.parametrize("guard", GUARDS)
def test_what_is_no_file_is_told_and_the_others_are_shown(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"in/a.txt": "text\n", "in/d/x": "", "secret": "secret\n", "in/.llm-do/db": "secret\n"})
    os.mkfifo(tmp_path / "in/pipe")
    folder = tmp_path / "in"
    wrong = {"pipe": "not_a_file", "d": "not_a_file", "nope": "path_not_found", "../secret": "outside"}
    for path, error in {**wrong, ".llm-do/db": "path_not_found", "a.txt/b": "path_not_found"}.items():
        answer = search(f"te cat {path} a.txt", folder, guard=guard, seconds=10)
        assert answer.meta["error"] == error, path
        assert len(answer.notes) == 1
        assert answer.hits == ["text"]
        assert answer.code == 2
        assert search(f"te cat {path}", folder, guard=guard).meta == {"v": 1, "cmd": "cat", "error": error}
    (folder / "link").symlink_to(tmp_path / "secret")
    if guard != "none":
        assert search("te cat link", folder, guard=guard).meta["error"] == "outside"
    assert search("te cat a.txt", folder, guard=guard, suffixes={".": (".md",)}).meta["error"] == "path_not_found"


@pytest.mark.proves("TE-CAT-BAD")
@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ("", "usage", "file"),
        ("-s a.txt", "unsupported_option", "-s"),
        ("-nk a.txt", "unsupported_option", "-k"),
        ("--frob a.txt", "unsupported_option", "--frob"),
        ("a.txt:0-3", "usage", "a.txt:0-3"),
        ("a.txt:9-3", "usage", "a.txt:9-3"),
        ("-n -5 a.txt:10-20", "usage", "a.txt:10-20"),
        ("+5 a.txt a.txt:3", "usage", "a.txt:3"),
        ("a.txt > b.txt", "usage", ">"),
        ("a.txt | head", "usage", "|"),
        (" ".join(["a.txt"] * 501), "too_long", "500"),
    ],
)
def test_what_cat_does_not_do_is_named(tmp_path: Path, arguments: str, error: str, named: str) -> None:
    write(tmp_path, {"a.txt": TEXT})
    answer = search(f"te cat {arguments}", tmp_path)
    assert answer.meta["error"] == error
    assert named in answer.notes[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


@pytest.mark.proves("TE-CAT-BAD", "A027")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sparse files and /proc")
def test_a_sparse_terabyte_is_previewed(tmp_path: Path) -> None:
    with open(tmp_path / "a.log", "wb") as file:
        file.write(b"first\n" * 20_000)
        file.truncate(1 << 40)
    began = time.monotonic()
    answer = search("te cat a.log", tmp_path, budget=1_000)
    assert time.monotonic() - began < 5
    assert answer.hits[0] == "first"
    assert "lines" not in answer.meta
    assert answer.meta["size"] == 1 << 40
    assert search("te cat a.log:-3", tmp_path).hits == ["first"] * 3
    assert search("te cat -n -3 a.log", tmp_path).meta["error"] == "too_large"


MEASURED = """
import resource, sys
sys.path.insert(0, {home!r})
from llm_do_mcp import te
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
te.run("te cat small.txt", roots={{".": {folder!r}}})
before = peak()
for command in {commands!r}:
    sys.stdout.write(te.run(command, roots={{".": {folder!r}}}, seconds=120))
sys.stderr.write(str(peak() - before))
"""


@pytest.mark.proves("TE-CAT-MEMORY", "A028")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured by the kernel")
def test_memory_is_flat_on_a_long_log_and_a_long_line(tmp_path: Path, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    """In full a log of 2 GB and a line of 2 GB."""
    size = torture_scaled(200 << 20, 2 << 30)
    block = (b"2026-01-01 10:00:00 INFO something has happened here, again\n" * 20_000)[: 1 << 20]
    with open(tmp_path / "big.log", "wb") as log, open(tmp_path / "line.json", "wb") as line:
        for _ in range(size >> 20):
            log.write(block)
            line.write(b'{"a": "' + b"x" * ((1 << 20) - 7))
    write(tmp_path, {"small.txt": "x\n", "five.json": "[" + "1234," * 1_000_000 + "1]"})
    commands = [
        "te cat big.log",
        "te cat -n -20 big.log",
        "te cat line.json",
        "te cat five.json",
        "te cat big.log:99999-",
    ]
    home = str(Path(__file__).parents[2])
    program = MEASURED.format(home=home, folder=str(tmp_path), commands=commands)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout.count(b'"cmd":"cat"') == len(commands)
    assert b'"error"' not in ran.stdout
    assert int(ran.stderr) < 60 << 10


@pytest.mark.proves("TE-CAT", "TE-COLD")
def test_the_command_shows_files_and_loads_little(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "text\n"})
    ran = te("cat", "a.txt", folder=tmp_path, python=("-X", "importtime", "-I", "-S"))
    assert read(ran.stdout.decode()).hits == ["text"]
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
    assert loaded.isdisjoint({"re", "json", "csv", "argparse", "dataclasses", "pathlib", "tempfile", "subprocess"})
