"""What comes first: definitions, then use, then mentions, then tests and the like; and that nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_do_mcp.te.asides import KINDS, Asides
from llm_do_mcp.te.languages import language_of
from llm_do_mcp.te.symbol import NONE, WEAK, Symbol, literal_in, name_asked_for
from tests.te.searching import GUARDS, next_handle, search, te, write

DEFINED = {
    "a.py": [
        "def name(self):",
        "    async def name(",
        "class name(Base):",
        "name = 3",
        "name: int = 3",
        "type name = int",
        "    name: ClassVar[int]",
        "    name: dict[str, int] | None  # why",
    ],
    "a.ts": [
        "  static readonly name = 1;",
        "  name: function (a) {",
        "  name: async (a) => {",
        "export function name<T>(x: T): T {",
        "export default class name extends Other {",
        "  async name(one: string): Promise<void> {",
        "  private readonly name: (x: A) => B",
        "  name(options?: {",
        "const name = () => {",
        "export type name = Other",
        "declare module name {",
        "  public name!: string;",
        "  readonly name?: string",
        "  name?: () => void;",
        "  name: string;",
        "  #name = 1;",
        "  #name(a) {",
        "  @Input() name: string;",
        "  constructor(private readonly name: X) {",
    ],
    "a.js": ["function* name() {", "exports.name = function () {", "  get name() {", "let name = 1;"],
    "a.go": [
        "\tname Kind = iota",
        "\tname := 5",
        '\tname []*Other `json:"name"`',
        "func name(a int) error {",
        "func (s *Server) name() {",
        "type name struct {",
        "\tname interface {",
        "var name = 1",
        "\tname(ctx context.Context, f func(a int) error) (int, error)",
        "\tname() string",
        "\tname func(a int) error",
        "\tname  chan struct{}",
    ],
    "a.rs": [
        "static mut name: i32 = 1;",
        "    let mut name = 1;",
        'pub unsafe extern "C" fn name() {',
        "pub(crate) fn name<T>() {",
        "pub struct name;",
        "macro_rules! name {",
        "    pub const name: u8 = 1;",
        "enum name {",
        "    pub name: Vec<u8>,",
        "    pub(crate) name: u8,",
    ],
    "a.java": [
        "  private final Map<String, List<Integer>> name = new HashMap<>();",
        "  static final int name = 5;",
        "  @Override public int name(int a) {",
        "public final class name {",
        "    private static List<A> name(int a) {",
        "@Deprecated public @interface name {",
        "  volatile long name;",
        '  String[] name = {"a"};',
        "  private final @Nullable String name;",
        '  @Column(name_ = "x") private Class<?> name;',
        "public non-sealed class name extends Other {",
        "  Map<String, ? extends List<Integer>> name = other();",
    ],
    "a.c": [
        "static int name(int a, int b)",
        "name (int a)",
        "struct name {",
        "#define name(x) (x)",
        "# define name 1",
        "typedef unsigned long name;",
        "unsigned long long name;",
        "typedef int (*name)(void);",
        "} name;",
        "static PyTypeObject name = {",
        "static int (*name)(int) = 0;",
        "\tvoid (*name)(struct inode *inode);",
        "    struct other *name;",
        "static int other, name;",
        "\tchar name[16];",
    ],
    "a.cpp": [
        "void Class::name(int a) {",
        "class name : public Base {",
        "namespace name {",
        "    int name() const {",
        "  static std::map<int, int> name;",
        "class EXPORT name final : public Base {",
        "class [[nodiscard]] name {",
        "struct name final : Base {",
        "template <typename... Ts> struct name : Base<Ts>... {",
        "template <class K, class V = std::less<K>> class name {",
        "template <> class name<int> {",
        "template <class T> using name = std::vector<T>;",
        'extern "C" int name(int a) {',
        "    std::mutex name;",
        "    Foo&& name = other();",
    ],
    "b.cs": [
        "    public int name { get; set; }",
        "    public string name => other;",
        "    public const int name = 1;",
        "    internal static void name<T>(this T a) where T : X {",
        "    public event Action<int> name;",
        "    [Fact] public void name()",
        "    public int name",
        "    public override string? name() => null;",
        '    [JsonName("x")] public string? name { get; }',
        "    public required List<int> name { get; init; }",
        "    event EventHandler<X>? name;",
    ],
    "a.cs": ["public sealed class name : Base", "    public async Task<int> name(int a)", "namespace name"],
    "a.rb": [
        "  def self.name(a)",
        "class Outer::name < Base",
        "module name",
        "  attr_reader :name",
        "  def name?",
        "  attr_reader :other, :name",
        "  attr_accessor :name, :other",
        "  @name = 1",
        "  @@name = 1",
        "$name = 1",
    ],
    "b.php": [
        "    private ?int $name = 1;",
        "$name = 1;",
        "define('name', 1);",
        "    case name = 1;",
        "    public function __construct(private readonly int $name) {",
        "        private ?Other $name,",
        "        protected int $name = 1,",
    ],
    "a.php": ["    public static function name($a)", "final class name extends Base", "trait name"],
    "a.kt": [
        "fun <T> List<T>.name(): T {",
        "data class name(val a: Int)",
        "internal object name {",
        "const val name = 1",
        "inner class name {",
        "value class name(val a: Int)",
        "inline fun <reified T : Any> name(a: T): T {",
        "fun Map<String, List<Int>>.name() {}",
        '@JvmStatic @Deprecated("a b") fun name() {',
        "class Other(val name: String) {",
        "class Other(private val a: Int, val name: String)",
    ],
    "a.scala": [
        "case class name(a: Int)",
        "  lazy val name = 1",
        "trait name {",
        "object name",
        "  def name(a: Int) = 1",
    ],
    "a.hs": [
        "name :: Int -> Int",
        "name x y = x + y",
        "name (Just x) =",
        "name = 1",
        "data name = A | B",
        "newtype name a = Other { unX :: a }",
        "class (Eq a, Monad m) => name m where",
        "class name m where",
        "type family name a",
        "pattern name x = Just x",
        "module Data.name where",
        "  , name :: !Int",
        "  { name :: Int",
        "  name :: a -> m a",
    ],
    "a.ex": [
        "defmodule Foo.name do",
        "  def name(a) do",
        "  defp name(a), do: a",
        "  def name?(a) do",
        "  defguard name(a) when a > 1",
        "  defdelegate name(a), to: B",
        "  @type name :: atom",
        "  @callback name(term) :: atom",
        "defprotocol name do",
    ],
    "a.zig": [
        "pub fn name(a: u8) u8 {",
        "export fn name() void {",
        "const name = struct {",
        "pub const name: u8 = 1;",
        "    inline fn name() void {",
    ],
    "a.swift": [
        "public func name(a: Int) -> Int {",
        "protocol name: Other {",
        "extension name {",
        "let name = 1",
        "    private(set) var name: Int",
        "    public internal(set) static var name = 1",
        "    weak var name: Other?",
        "    associatedtype name",
        "    @available(iOS 13, *) func name() {",
    ],
    "a.sql": [
        "CREATE TABLE IF NOT EXISTS public.name (",
        "create or replace function name(a int)",
        'CREATE VIEW "name" AS',
        "CREATE TABLE [dbo].[name] (",
        "with recursive name AS (",
        'CREATE FUNCTION "s"."name"()',
        "CREATE OR ALTER VIEW name AS",
        "CREATE UNLOGGED TABLE name (",
        "CREATE INDEX CONCURRENTLY name ON t (a);",
        "with a as (select 1), name as (",
        "), name AS (",
        "name as (",
        "CREATE TYPE name AS (a int);",
    ],
    "a.sh": ["name() {", "function name {", "name=3", "export name=1", "readonly name=2", "declare -a name=()"],
    "a.proto": ["message name {", "  rpc name(A) returns (B);", "service name {"],
    "a.lua": ["local function name()", "local name = 1"],
    "a.md": ["# name", "### The name of it"],
    "a.yaml": ["name: 3", "  - name: 3"],
    "a.toml": [
        "[tool.name]",
        "name = 3",
        '["name"]',
        "a.name = 1",
    ],
    "a.json": ['  "name": 3,'],
    "a.h": [
        "class name : public Base {",
        "namespace name {",
        "using name = int;",
        "class EXPORT name {",
        "  static constexpr int name = 1;",
    ],
    "a.properties": [
        "server.http.name=1",
    ],
}
USED = {
    "a.py": [
        "class Child(name):",
        "x = name()",
        "    return name",
        "call(name=3)",
        "    other.name()",
        "# def name",
        "x = name == 3",
        "        name: value,",
        "        name: the name of a thing",
        "        name: {",
        "    x[name: 3]",
    ],
    "a.ts": [
        "  name('x', () => {",
        "new name(x)",
        "  this.name(x)",
        "import { name } from './a'",
        "// class name {",
        "if (name(x)) {",
        "      name: value,",
        "      name: value",
        "      name : value;",
        "  name?: Options,",
        "  name?: Options",
        "  #other = this.#name",
        "  foo(@Input() name)",
        "  other(private_, name: 1)",
        "  x = y ? name : z;",
        "  return a ?? name;",
    ],
    "a.go": [
        "func other(a int) pkg.name {",
        "\tname(x)",
        "x := name{}",
        "return name(x)",
        "\tname = 1",
        "\tname: 1,",
        "\tname(func(a int) error { return nil })",
        "\tname(x) // why",
        "\tname(x)",
        "\tname <- x",
        "func TODO() name {",
    ],
    "a.cs": [
        "        name = 1;",
        "        return name;",
        "        foo(name);",
        "    public class Child : name",
        "    private void Other<T>(T a) where T : name",
        "        select name;",
        "        var x = y ? name : z;",
        "        [name] int x;",
    ],
    "a.php": ["    $x = $name;", "    $this->name = 1;", "        case name:", "    foo($name);"],
    "a.sh": ["echo $name", "run --name x"],
    "a.rs": [
        "impl Other for name {",
        "let x = name::new();",
        "use a::name;",
        "// fn name() {",
        "    name: value,",
        "struct Other(pub name);",
        "    pub other: name,",
    ],
    "a.java": [
        "class Other extends name {",
        "        return name(a);",
        "import a.name;",
        "    throw name;",
        "    x = name;",
        "    if(a) name = 1;",
        "    default: name = 1;",
        "    a && name;",
        "    @Foo(name) int x;",
        "    int x = a ? name : b;",
        "    final Class<? extends name> a;",
    ],
    "a.c": [
        "struct name *pointer;",
        "    return name(a);",
        "    x = name(a);",
        " * name (of a thing)",
        "#include <name.h>",
        "    (*name)(x);",
        "    ret = (*name)(x);",
        "    (void) name;",
        "    default: name = 1;",
        "    if(a) name[0] = 1;",
        "void other(int (*name)(int));",
        "    goto name;",
    ],
    "a.rb": [
        "class Child < name",
        "  name.call(1)",
        "  return if name?",
        "  x.name? 1",
        "  call :name, 1",
        "  x = @name",
        "  @name == 1",
        "  foo(@name)",
        "  validates :other, :name",
        "  other :name, :more",
    ],
    "a.sql": [
        "SELECT * FROM name;",
        "ALTER TABLE name ADD x int;",
        "-- create table name",
        "ALTER VIEW name AS SELECT 1;",
        "DROP INDEX CONCURRENTLY name;",
        "SELECT name AS total FROM t;",
        "), other AS (SELECT name FROM t)",
        "FROM other(1) AS name (a int)",
        "FROM name(1) AS (a int)",
        "CREATE INDEX CONCURRENTLY other ON name (a);",
    ],
    "a.md": ["The name of it", "class name"],
    "a.txt": ["def name():", "name = 3"],
    "a.cpp": [
        "Other::Other(int a) : name(a) {",
        "    std::vector<name> a;",
        "    Other::name = 1;",
        "    std::is_same<A, B>::name;",
        "class Child final : public name {",
        "template <class T> struct Child : name<T> {",
        "    using std::name;",
        "    friend class name<int>;",
        "      other(std::move(a)), name(std::move(b)) {",
        "using namespace name;",
        "    bool operator==(const name& other) const;",
    ],
    "a.h": [
        "using std::name;",
        "class Child : public name {",
    ],
    "b.php": [
        "    public function other(int $name) {",
        "    public function other($a, $name = 1) {",
        "    function other(private_($name)) {",
        "        foo($a, $name);",
        "        $other, $name,",
    ],
    "a.kt": [
        "    foo(val_, name: 1)",
        "class Other(a: name)",
        "fun Map<String, name>.other() {",
        "    if (a < name && b > c) {",
    ],
    "a.hs": [
        "x = name 1",
        "foo = bar . name",
        "f :: name -> Int",
        "f (name x) = x",
        "instance name Foo where",
        "class name m => Other m where",
        "f :: name m => m a",
        "import Data.name",
        "  name x y",
        "  name = 1",
        "-- name :: Int",
    ],
    "a.ex": [
        "    name(1)",
        "    Foo.name(2)",
        "    when name(x)",
        "  @spec f(name) :: name",
        "    if name?(1) do",
        "  import name",
    ],
    "a.zig": ["    name(1);", "    const x = name(2);", "    var x = name{};", "    name = 1;"],
    "a.swift": [
        "    weak var other: name?",
        "@available(name, *) func other() {",
        "    associatedtype Other: name",
    ],
    "a.toml": [
        'x = ["name"]',
        '  "name",',
        "a = b.name",
        'x = { y = "name" }',
    ],
}


@pytest.mark.proves("TE-DEFINITIONS")
@pytest.mark.parametrize(("path", "line"), [(path, line) for path, lines in DEFINED.items() for line in lines])
def test_a_line_that_introduces_the_name_is_a_definition(path: str, line: str) -> None:
    strength, exact = Symbol("name").found(line.encode(), language_of(path.encode()))
    assert strength > NONE
    assert exact
    assert Symbol("NAME", caseless=True).found(line.encode(), language_of(path.encode())) == (strength, True)
    longer = line.replace("name", "rename")
    assert not Symbol("name").found(longer.encode(), language_of(path.encode()))[1], "it defines another name"


@pytest.mark.proves("TE-DEFINITIONS")
@pytest.mark.parametrize(("path", "line"), [(path, line) for path, lines in USED.items() for line in lines])
def test_a_line_that_uses_the_name_is_none(path: str, line: str) -> None:
    assert Symbol("name").found(line.encode(), language_of(path.encode()))[0] == NONE


@pytest.mark.proves("TE-DEFINITIONS")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.c", "struct name;"),
        ("a.c", "int name(int a);"),
        ("a.h", "PyAPI_FUNC(int) name(int,"),
        ("a.cpp", "class name;"),
    ],
)
def test_a_declaration_is_weaker_than_a_definition(path: str, line: str) -> None:
    assert Symbol("name").found(line.encode(), language_of(path.encode())) == (WEAK, True)


@pytest.mark.proves("TE-DEFINITIONS")
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("connect", "connect"),
        ("\\bconnect\\b", "connect"),
        ("\\<connect\\>", "connect"),
        ("connect(", "connect"),
        ("connect\\(", "connect"),
        ("^def connect", "connect"),
        ("class Größe", "Größe"),
        ("max-width", "max-width"),
        ("$scope", "$scope"),
        ("two words", None),
        ("a.*b", None),
        ("a\\|b", None),
        ("", None),
        ("3", None),
    ],
)
def test_a_pattern_that_names_a_symbol_is_recognised(pattern: str, name: str | None) -> None:
    assert name_asked_for([pattern], fixed=False) == name
    assert name_asked_for([pattern, "other"], fixed=False) is None


@pytest.mark.proves("TE-RANKED")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("./src/a.py", None),
        ("./contest/latest.py", None),
        ("./tests/a.py", "tests"),
        ("./src/a_test.go", "tests"),
        ("./src/test_a.py", "tests"),
        ("./src/a.spec.ts", "tests"),
        ("./tests/fixtures/a.json", "fixtures"),
        ("./docs/a.py", "docs"),
        ("./README.md", "docs"),
        ("./src/a.pb.go", "generated"),
        ("./web/app.min.js", "generated"),
        ("./dist/a.js", "generated"),
        ("./vendor/github.com/x/tests/a.go", "vendored"),
        ("./node_modules/x/index.js", "vendored"),
    ],
)
def test_paths_tell_what_is_aside(path: str, kind: str | None) -> None:
    folder, _, name = path.encode().rpartition(b"/")
    found = Asides(lambda: [b"."]).kind(folder, name)
    assert (KINDS[found] if found >= 0 else None) == kind


PROJECT = {
    "app/core.py": "import os\n\n\ndef connect(url):\n    return os.open(url)\n",
    "app/hot.py": "from app.core import connect\n" + "".join(f"x{n} = connect({n})\n" for n in range(4)),
    "app/one.py": "from app.core import connect\n# connect is slow\nconnect(1)\n",
    "docs/use.md": "Call connect first.\n",
    "tests/test_core.py": "from app.core import connect\n\n\ndef test_connect():\n    connect(0)\n",
    "vendor/lib.py": "def connect():\n    pass\n",
}
RANKED = [
    "app/core.py:4: def connect(url):",
    *(f"app/hot.py:{n + 2}: x{n} = connect({n})" for n in range(4)),
    "app/one.py:3: connect(1)",
    "app/hot.py:1: from app.core import connect",
    "app/one.py:1: from app.core import connect",
    "app/one.py:2: # connect is slow",
    "tests/test_core.py:4: def test_connect():",
    "tests/test_core.py:5: connect(0)",
    "docs/use.md:1: Call connect first.",
    "vendor/lib.py:1: def connect():",
    "tests/test_core.py:1: from app.core import connect",
]


@pytest.mark.proves("TE-RANKED")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("pattern", ["connect", "connect(", "\\bconnect"])
def test_definition_then_use_then_mentions_then_asides(tmp_path: Path, guard: str, pattern: str) -> None:
    answer = search(["grep", pattern], write(tmp_path, PROJECT), guard=guard)
    assert answer.hits == [line for line in RANKED if re.search(pattern.replace("(", "\\("), line)]


@pytest.mark.proves("TE-RANKED")
def test_a_definition_that_lies_aside_comes_first_where_there_is_no_other(tmp_path: Path) -> None:
    write(tmp_path, {"src/a.py": "helper()\nhelper()\n", "tests/util.py": "x = 1\ndef helper():\n    pass\n"})
    assert search("te grep helper", tmp_path).hits[0] == "tests/util.py:2: def helper():"


@pytest.mark.proves("TE-RANKED")
def test_lines_of_context_stay_with_their_file_and_those_that_define_come_first(tmp_path: Path) -> None:
    answer = search("te grep -A1 connect app", write(tmp_path, PROJECT))
    assert answer.hits[:2] == ["app/core.py:4: def connect(url):", "app/core.py-5-     return os.open(url)"]
    assert [hit.partition(".py")[0] for hit in answer.hits] == sorted(
        (hit.partition(".py")[0] for hit in answer.hits), key=["app/core", "app/hot", "app/one"].index
    )


@pytest.mark.proves("TE-RANKED")
def test_a_file_comes_by_its_best_definition(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "load = 3\n\nclass load:\n    pass\n", "b.py": "class load:\n    pass\nload()\n"})
    write(tmp_path, {"c.py": "x = 1\n" + "x += load()\n" * 9})
    answer = search("te grep load", tmp_path)
    assert [hit.partition(" ")[0] for hit in answer.hits[:5]] == ["a.py:3:", "b.py:1:", "a.py:1:", "b.py:3:", "c.py:2:"]
    assert search("te grep -A1 load", tmp_path).hits[0] == "a.py:1: load = 3"


@pytest.mark.proves("TE-RANKED", "TE-DEFINITIONS")
@pytest.mark.parametrize("guard", GUARDS)
def test_the_definitions_of_a_large_result_are_those_of_a_small_one(tmp_path: Path, guard: str) -> None:
    """The large one is read by ripgrep first; no shape of the table may be lost there."""
    lines = {path: [line for line in lines if not line.startswith(" ")] for path, lines in DEFINED.items()}
    lines["a.json"] = DEFINED["a.json"]
    files = {f"{n}/{path}": f"{line}\n" for path, found in lines.items() for n, line in enumerate(found)}
    first = {f"{path}:1:" for path in files}
    small = search("te grep -w name", write(tmp_path, files), guard=guard, budget=200_000)
    defined = [hit for hit in small.hits if hit.partition(" ")[0] in first]
    assert len(defined) == len(files)
    many = {f"use/{n}.py": "    x = other.name(1234567890)\n" * 1_000 for n in range(12)}
    large = search("te grep -w name", write(tmp_path, many), guard=guard, budget=200_000)
    best = [hit for hit in defined if not hit.startswith("use/")][:30]
    assert large.hits[:30] == best


@pytest.mark.proves("TE-COMPLETE")
@pytest.mark.parametrize("guard", ["kernel", "verify"])
def test_every_line_is_shown_once_in_whatever_order(tmp_path: Path, guard: str) -> None:
    line = "import needle\nneedle = 1\n  x = needle()\n# needle\n"
    files = {f"{folder}/{n}.py": line * (n * n + 1) for folder in ("a", "b/tests", "vendor") for n in range(12)}
    answer = search("te grep needle", write(tmp_path, files), guard=guard, budget=1_000_000)
    assert "truncated" not in answer.meta
    assert len(answer.hits) == len(set(answer.hits)) == answer.meta["matches"]
    assert answer.meta["matches"] == sum(content.count("needle") for content in files.values())


@pytest.mark.proves("TE-BUDGET", "TE-RANKED")
def test_each_section_tells_what_is_left_out_of_it(tmp_path: Path) -> None:
    write(tmp_path, {f"app/m{n}.py": "def connect():\n    connect()\n" + "connect(1)\n" * 9 for n in range(40)})
    write(tmp_path, {f"tests/test_{n}.py": "connect(2)\n" * 9 for n in range(40)})
    answer = search("te grep connect", tmp_path, budget=3_000)
    told = [line for line in answer.text.splitlines() if line.startswith("# TE:")]
    assert [re.sub(r"\d+", "N", line) for line in told] == [
        "# TE: N more definitions",
        "# TE: N more in N files: app/ N",
        "# TE: N more in tests in N files: tests/ N",
    ]
    assert len(answer.hits) + answer.left_out == answer.meta["matches"] == 40 * 11 + 40 * 9
    assert answer.meta["hot_zone"] == "app/ (55%)"
    kinds = [hit.partition("/")[0] + (" def" if ": def " in hit else "") for hit in answer.hits]
    assert list(dict.fromkeys(kinds)) == ["app def", "app", "tests"], "each section shows some of its lines"


@pytest.mark.proves("TE-HOT-ZONE")
def test_the_hot_zone_is_the_deepest_folder_with_half_of_the_hits(tmp_path: Path) -> None:
    write(tmp_path, {f'src/"q"/b\\c/{n}.py': "needle\n" * 30 for n in range(4)})
    write(tmp_path, {f"src/z{n}/a.py": "needle\n" * 10 for n in range(4)})
    assert search("te grep needle", tmp_path, budget=900).meta["hot_zone"] == 'src/"q"/b\\\\c/ (75%)'
    assert search("te grep needle", {"in": tmp_path}, budget=900).meta["hot_zone"] == 'in/src/"q"/b\\\\c/ (75%)'
    assert "hot_zone" not in search("te grep needle", tmp_path, budget=90_000).meta


@pytest.mark.proves("TE-HOT-ZONE")
@pytest.mark.parametrize(
    ("counts", "zone"),
    [
        ({"a/b": 1, "a/c": 1, "z": 1}, "a/ (66%)"),
        ({"a": 1, "b": 2, "c": 1}, "b/ (50%)"),
        ({"d": 1, "b": 1, "c": 1, "a": 1}, "a/ (25%)"),
        ({"a": 1, "b": 2, "c/d": 2, "c/e": 1, "f": 1}, "c/ (42%)"),
        ({".": 3, "a": 2}, "./ (60%)"),
        ({"a": 2, "a!": 1, "a/b": 2, "ab": 1}, "a/ (66%)"),
    ],
)
def test_where_no_folder_has_half_the_largest_at_the_top_is_the_hot_zone(
    tmp_path: Path, counts: dict[str, int], zone: str
) -> None:
    write(tmp_path, {f"{folder}/x.py": "needle\n" * 40 * count for folder, count in counts.items()})
    assert search("te grep needle", tmp_path, budget=900).meta["hot_zone"] == zone


@pytest.mark.proves("TE-HOT-ZONE")
@pytest.mark.parametrize(
    ("counts", "folder", "searched", "zone"),
    [
        ({".": 3, "w": 4, "x": 3}, "w", "..", "../ (100%)"),
        ({".": 3, "w": 4, "a": 3}, "w", "..", "../ (100%)"),
        ({".": 1, "w": 3, "w/a": 2}, "w", "..", "./ (83%)"),
        ({"w": 1, "w/a": 2}, "w", "..", "a/ (66%)"),  # all is below the working folder, which would tell nothing
        ({".": 1, "w": 1, "w/a": 3}, "w", "..", "a/ (60%)"),
        ({"w/v/0/c": 4, "w/v/0": 1, "w/v": 6}, "w/v/0", "../..", "../ (100%)"),
    ],
)
def test_from_below_what_is_searched_the_working_folder_is_one_among_others(
    tmp_path: Path, counts: dict[str, int], folder: str, searched: str, zone: str
) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope.agent_budgets]\ndefault = 900\n"})
    write(tmp_path, {f"{place}/x.py": "needle\n" * 40 * count for place, count in counts.items()})
    answer = te("grep", "needle", searched, folder=tmp_path / folder).stdout.decode()
    assert f'"hot_zone":"{zone}"' in answer


@pytest.mark.proves("TE-RANKED", "TE-HIDDEN")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_definition_that_may_not_be_seen_does_not_hide_the_others(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"secret/a.py": "class Needle:\n", "b.py": "Needle()\n", "tests/c.py": "x()\nclass Needle:\n"})
    answer = search("te grep Needle", tmp_path, guard=guard, hidden=("secret",))
    assert answer.hits == ["tests/c.py:2: class Needle:", "b.py:1: Needle()"]
    assert (answer.meta["matches"], answer.meta["files"]) == (2, 2)


@pytest.mark.proves("TE-LONG-LINES", "A109")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("before", [0, 200, 400, 5_000, 1_000_000])
def test_a_long_line_is_cut_around_the_match(tmp_path: Path, before: int, guard: str) -> None:
    write(tmp_path, {"a.js": "x\n" + "ä" * before + "needle" + "ö" * 5_000 + "\n", "b.js": "needle\n"})
    for command in ("te grep needle", "te grep -i NEEDLE", "te grep -F needle", "te grep 'need[l]e'"):
        answer = search(command, tmp_path, guard=guard)
        shown = next(hit for hit in answer.hits if hit.startswith("a.js"))
        assert len(shown) < 330
        assert "needle" in shown
        assert shown.endswith("ö…")
        assert ("…" in shown[:-1]) == (before > 200), "what stands before it is told where it is cut"
        assert "\ufffd" not in shown


@pytest.mark.proves("TE-LONG-LINES", "TE-BUDGET")
def test_a_line_that_is_cut_is_told_and_how_to_see_it(tmp_path: Path) -> None:
    line = "ä" * 600 + "needle" + "ö" * 600
    tree = write(tmp_path / "tree", {"a.js": f"x\n{line}\n", "b.js": "needle\n" * 100, "c.js": f"{line}\n" * 3})
    told = "# TE: 4 long lines cut: te cat -n FILE:LINE shows one whole"
    answer = search("te grep needle", tree)  # of no session, which has no handles
    assert (answer.meta["truncated"], answer.meta["cut_lines"], answer.meta["matches"]) == (True, 4, 104)
    assert answer.breadcrumb == told and "handle" not in answer.meta
    assert search("te grep needle a.js", tree).breadcrumb == told.replace("4 long lines", "1 long line")
    assert "".join(search("te cat -n a.js:2", tree).hits).replace("…", "") == f"2\t{line}"
    assert "cut_lines" not in search("te grep needle b.js", tree).meta
    for budget in range(300, 3_000, 37):
        answer = search("te grep needle", tree, budget=budget)
        assert len(answer.text) <= budget
        cut = sum(hit.endswith("…") for hit in answer.hits)
        assert answer.meta.get("cut_lines", 0) == cut
        assert not cut or answer.meta["truncated"]
        assert answer.left_out + len(answer.hits) == 104
    kept = {"session": "s", "folder": str(tmp_path / "kept"), "guard": "none", "budget": 900}
    first = search("te grep needle b.js c.js", tree, **kept)
    cut = sum(hit.endswith("…") for hit in first.hits)
    assert f"# TE: {cut} long line" in first.breadcrumb and "whole, the handle all" in first.breadcrumb
    rest = search(f"te --handle {first.meta['handle']}", tree, **{**kept, "budget": 9_000})
    assert [hit for hit in rest.hits if "ö" in hit] == [f"c.js:{number}: {line}" for number in (1, 2, 3)]
    assert "long line" not in rest.breadcrumb, "what the handle serves is whole"


@pytest.mark.proves("TE-LONG-LINES")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("foo", "foo"),
        ("a.*bcd", "bcd"),
        ("abc*de", "ab"),
        ("x\\(abc\\)", "abc"),
        ("a\\|b", ""),
        ("[abc]", "abc"),
        ("a?", ""),
    ],
)
def test_the_longest_text_that_a_match_holds(pattern: str, text: str) -> None:
    assert literal_in([pattern], fixed=False) == text
    assert literal_in(["a.b"], fixed=True) == "a.b"


@pytest.mark.proves("TE-BINARY")
def test_many_notes_on_binary_files_are_no_lines_of_the_file_before(tmp_path: Path) -> None:
    write(tmp_path, {f"{'d' * 60}{n:03}.bin": b"needle \0\n" for n in range(300)})
    write(tmp_path, {f"{n}/{n}.txt": "needle in the hay\n" * 1_000 for n in range(9)})
    named = " ".join(f"{'d' * 60}{n:03}.bin {n % 9}/{n % 9}.txt" for n in range(200))
    answer = search(f"te grep needle {named}", tmp_path)
    assert (answer.meta["matches"], answer.meta["binary"]) == (200_000, 200)
    assert answer.left_out + len(answer.hits) == answer.meta["matches"]


@pytest.mark.proves("TE-RANKED")
def test_a_large_result_with_many_definitions_is_looked_through_no_further(tmp_path: Path) -> None:
    uses = "    return needle(with_some_arguments, and_with_others)\n" * 15_000
    write(tmp_path, {f"{number}.py": "def needle():\n" * (300 * (number == 3)) + uses for number in range(4)})
    before = next_handle()
    answer = search("te grep needle", tmp_path)
    after = next_handle()
    assert answer.meta["matches"] == 60_300
    assert answer.hits[0] == "3.py:1: def needle():"
    assert after == before, "the search that ran ahead is ended, and has left no handle"
