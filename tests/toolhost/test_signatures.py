"""Which functions are tools, what their schemas say, and what they may be given and return."""

from __future__ import annotations

import textwrap
from typing import Any

import jsonschema
import pytest

from llm_do_mcp.errors import FunctionFailed, InvalidInput
from llm_do_mcp.project.schema import checked
from tests.toolhost.conftest import Serve

pytestmark = pytest.mark.anyio


async def names_of(host: Any, path: str) -> list[str]:
    (module,) = await host.describe([path])
    assert module.error is None
    return [function.name for function in module.functions]


@pytest.mark.proves("TOOLHOST-CONTRACTS")
async def test_which_plain_functions_are_tools(serve: Serve) -> None:
    body = """
    from llm_do_mcp import tool
    from os.path import join
    from shared import borrowed

    def public() -> str: return "public"
    def _private() -> str: return "private"
    @tool
    def _marked() -> str: return "marked"
    """
    host = serve(
        {
            "shared.py": "from llm_do_mcp import tool\n\n@tool\ndef borrowed() -> str: return 'borrowed'\n",
            "tools.py": body,
            "toolsets/formatting.py": body,
            "all/tools.py": body + "\n    __all__ = ['_private', 'borrowed']\n",
            "tools/__init__.py": "from .database import query, Rows\n__all__ = ['query']\n",
            "tools/database.py": "class Rows: pass\ndef query(sql: str) -> str: return sql\ndef other(): pass\n",
        }
    )
    assert await names_of(host, "toolsets/formatting.py") == ["_marked"]
    assert await names_of(host, "all/tools.py") == ["_marked", "_private", "borrowed"]
    assert await names_of(host, "tools/") == ["query"]
    assert await host.call("tools/", "query", {"sql": "select"}) == "select"


@pytest.mark.proves("TOOLHOST-CONTRACTS")
async def test_a_tools_file_without_all_offers_its_own_public_functions(serve: Serve) -> None:
    host = serve({"tools.py": "from os.path import join\n\ndef public() -> str: return ''\n\ndef _no(): ...\n"})
    assert await names_of(host, "tools.py") == ["public"]


@pytest.mark.proves("TOOLHOST-CONTRACTS")
async def test_register_offers_what_it_registers_by_decorator_and_by_method(serve: Serve) -> None:
    host = serve(
        {
            "tools.py": """
            def helper(anything): return anything
            def method(a: int) -> int: return a

            def register(agent) -> None:
                @agent.tool
                def plain(a: int) -> int: return a + 1

                @agent.tool(risk="read", idempotent=True)
                async def declared(a: int) -> int: return a + 2

                agent.tool(method, risk="network")
            """,
            "twice.py": "def f() -> str: return ''\ndef register(agent):\n    agent.tool(f)\n    agent.tool(f)\n",
            "other.py": "def register(agent):\n    agent.tool_plain\n",
            "late.py": "async def register(agent):\n    agent.tool(print)\n",
        }
    )
    module, twice, other, late = await host.describe(["tools.py", "twice.py", "other.py", "late.py"])
    assert late.error == "late.py: `register` must not be async: nobody awaits it; write `def register(agent)`"
    assert [(tool.name, tool.risk, tool.idempotent) for tool in module.functions] == [
        ("declared", "read", True),
        ("method", "network", False),
        ("plain", None, False),
    ]
    assert await host.call("tools.py", "plain", {"a": 1}) == 2
    assert await host.call("tools.py", "declared", {"a": 1}) == 3
    assert twice.error == "twice.py:4: ValueError: the tool 'f' is registered twice; rename one"
    assert other.error == "other.py:2: AttributeError: the agent of register(agent) has no 'tool_plain'; it has `tool`"


@pytest.mark.proves("A060")
async def test_what_cannot_be_a_tool_is_reported_with_place_and_reason_and_the_rest_works(serve: Serve) -> None:
    source = """
    import dataclasses, functools, typing
    if typing.TYPE_CHECKING:
        from decimal import Decimal

    def good(a: int = 1) -> int: return a
    def varargs(*args: int) -> int: return 0
    def keywords(**more: int) -> int: return 0
    def positional(a: int, /) -> int: return 0
    def untyped(a) -> int: return 0
    def unknown(a: bytes) -> int: return 0
    def inner(a: list[complex]) -> int: return 0
    def keys(a: dict[int, str]) -> int: return 0
    def result() -> bytearray: return bytearray()
    def unresolved(a: "Decimal") -> int: return 0
    def yields() -> int: yield 1
    async def streams() -> int: yield 1
    class Class: pass
    partial = functools.partial(good, 1)
    NUMBER = 5
    @dataclasses.dataclass
    class Node:
        next: "Node | None"
    def recursive(node: Node) -> int: return 0
    __all__ = ["good", "varargs", "keywords", "positional", "untyped", "unknown", "inner", "keys", "result",
               "unresolved", "yields", "streams", "Class", "partial", "NUMBER", "recursive", "absent"]
    """
    host = serve({"tools.py": source})
    (module,) = await host.describe(["tools.py"])
    assert module.error is None and [tool.name for tool in module.functions] == ["good"]
    reasons = {function.name: function.reason for function in module.broken}
    assert all("\n" not in reason and reason.startswith("tools.py") for reason in reasons.values())
    expected = {
        "varargs": "`*args: int` takes any number of arguments; name each parameter",
        "keywords": "`**more: int` takes any number of arguments",
        "positional": "`a` is positional-only; arguments are passed by name, so remove the `/`",
        "untyped": "tools.py:10: `untyped` cannot be a tool: `a` has no type; annotate it with str, int",
        "unknown": "`a`: bytes cannot be given as JSON; take text, or a Path to a file",
        "inner": "`a`: complex cannot be given as JSON; use str, int",
        "keys": "`a`: the keys of a dict are str",
        "result": "its result: bytearray cannot be given as JSON",
        "unresolved": "its annotations cannot be resolved (name 'Decimal' is not defined)",
        "yields": "it yields; a tool returns its result, for example as a list",
        "streams": "it yields",
        "Class": "it is a class; write a function",
        "partial": "it is of type partial; write a function",
        "NUMBER": "it is of type int; write a function",
        "recursive": "Node contains itself",
        "absent": "`__all__` lists it, and the module does not define it",
    }
    assert set(reasons) == set(expected)
    for name, reason in expected.items():
        assert reason in reasons[name]
    with pytest.raises(FunctionFailed) as raised:
        await host.call("tools.py", "untyped", {"a": 1})
    assert str(raised.value) == reasons["untyped"]
    with pytest.raises(FunctionFailed, match=r"^tools\.py: no tool `nothing`; it has good$"):
        await host.call("tools.py", "nothing", {})


@pytest.mark.proves("A060")
async def test_a_mutable_default_is_fresh_in_each_call(serve: Serve) -> None:
    host = serve({"tools.py": "def grow(a: list[int] = []) -> int:\n    a.append(1)\n    return len(a)\n"})
    (module,) = await host.describe(["tools.py"])
    assert module.functions[0].input_schema["properties"]["a"]["default"] == []
    assert [await host.call("tools.py", "grow", {}) for _ in range(3)] == [1, 1, 1]


TYPES = """
from __future__ import annotations
import datetime, enum
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from uuid import UUID
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union
from pydantic import BaseModel, Field

class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)

@dataclass
class Lenient:
    x: str = None
    y: bool = 1

class Movie(TypedDict):
    title: str
    year: NotRequired[int]

class Node(BaseModel):
    name: str
    children: list[Node] = []

def show(value) -> str:
    return repr(value)

def of_str(v: str) -> str: return show(v)
def of_int(v: int) -> str: return show(v)
def of_float(v: float) -> str: return show(v)
def of_bool(v: bool) -> str: return show(v)
def of_list(v: list[int]) -> str: return show(v)
def of_dict(v: dict[str, list[bool]]) -> str: return show(v)
def of_optional(v: Optional[int] = None) -> str: return show(v)
def of_union(v: Union[int, str, Point]) -> str: return show(v)
def of_pipe(v: int | None) -> str: return show(v)
def of_literal(v: Literal["a", 1, True]) -> str: return show(v)
def of_enum(v: Colour) -> str: return show(v)
def of_dataclass(v: Point) -> str: return show(v)
def of_typeddict(v: Movie) -> str: return show(v)
def of_model(v: Node) -> str: return show(v)
def of_date(v: datetime.date) -> str: return show(v)
def of_path(v: Path) -> str: return show(v.name)
def of_time(v: datetime.time) -> str: return show(v)
def of_duration(v: datetime.timedelta) -> str: return show(v)
def of_decimal(v: Decimal) -> str: return show(v)
def of_uuid(v: UUID) -> str: return show(v)
def of_pair(v: tuple[int, str]) -> str: return show(v)
def of_tuple(v: tuple[int, ...]) -> str: return show(v)
def of_any_tuple(v: tuple) -> str: return show(v)
def of_set(v: set[int]) -> str: return show(v)
def of_frozenset(v: frozenset[str]) -> str: return show(v)
def of_any(v: Any) -> str: return show(v)
def of_none(v: str = None) -> str: return show(v)
def of_odd_default(v: bool = 1) -> str: return show(v)
def of_lenient(v: Lenient) -> str: return show(v)
def of_described(v: Annotated[int, "how many"]) -> str: return show(v)
def of_limited(v: Annotated[int, Field(ge=1, le=5)]) -> str: return show(v)

def describe(path: str, deep: bool = False) -> Point:
    '''Describes a file.

    At length.

    Args:
        path (str): Which file,
            relative to the project.
        deep: Whether to look inside.

    Returns:
        Where it is.
    '''
    return Point(1)
"""

ACCEPTED: list[tuple[str, Any, str]] = [
    ("of_str", "x", "'x'"),
    ("of_int", 3, "3"),
    ("of_int", 3.0, "3"),
    ("of_float", 3, "3.0"),
    ("of_bool", True, "True"),
    ("of_list", [1, 2], "[1, 2]"),
    ("of_dict", {"a": [True]}, "{'a': [True]}"),
    ("of_optional", None, "None"),
    ("of_union", 5, "5"),
    ("of_union", "5", "'5'"),
    ("of_union", {"x": 1}, "Point(x=1.0, y=0.0, tags=[])"),
    ("of_pipe", None, "None"),
    ("of_literal", True, "True"),
    ("of_literal", 1, "1"),
    ("of_enum", "red", "<Colour.RED: 'red'>"),
    ("of_dataclass", {"x": 1, "tags": ["a"]}, "Point(x=1.0, y=0.0, tags=['a'])"),
    ("of_typeddict", {"title": "M"}, "{'title': 'M'}"),
    ("of_model", {"name": "a", "children": [{"name": "b"}]}, "children=[Node(name='b', children=[])]"),
    ("of_date", "2026-11-27", "datetime.date(2026, 11, 27)"),
    ("of_path", "a/b.txt", "'b.txt'"),
    ("of_time", "08:30:00", "datetime.time(8, 30)"),
    ("of_duration", "P1DT2H30M1.5S", "datetime.timedelta(days=1, seconds=9001, microseconds=500000)"),
    ("of_duration", "-PT1S", "datetime.timedelta(days=-1, seconds=86399)"),
    ("of_decimal", "1.50", "Decimal('1.50')"),
    ("of_decimal", 0.1, "Decimal('0.1')"),
    ("of_uuid", "12345678-1234-5678-1234-567812345678", "UUID('12345678-1234-5678-1234-567812345678')"),
    ("of_pair", [1, "a"], "(1, 'a')"),
    ("of_tuple", [1, 2, 3], "(1, 2, 3)"),
    ("of_any_tuple", ["a", None], "('a', None)"),
    ("of_set", [1], "{1}"),
    ("of_frozenset", ["a"], "frozenset({'a'})"),
    ("of_any", {"x": [None]}, "{'x': [None]}"),
    ("of_none", None, "None"),
    ("of_none", "x", "'x'"),
    ("of_odd_default", True, "True"),
    ("of_lenient", {}, "Lenient(x=None, y=1)"),
    ("of_lenient", {"x": None, "y": False}, "Lenient(x=None, y=False)"),
    ("of_described", 2, "2"),
    ("of_limited", 5, "5"),
]
REFUSED: list[tuple[str, Any, str]] = [
    ("of_str", 1, "`v`: expected a string"),
    ("of_int", "1", "`v`: expected an integer"),
    ("of_int", True, "`v`: expected an integer"),
    ("of_int", 1.5, "`v`: expected an integer"),
    ("of_float", "1", "`v`: expected a number"),
    ("of_bool", 1, "`v`: expected true or false"),
    ("of_list", [1, "b"], "`v`: [1]: expected an integer"),
    ("of_list", "abc", "`v`: expected an array"),
    ("of_dict", {"a": [1]}, "`v`: `a`: [0]: expected true or false"),
    ("of_union", None, "`v`: expected an integer, or expected a string, or expected an object with `x`, `y`, `tags`"),
    ("of_literal", 2, "`v`: expected one of 'a', 1, True"),
    ("of_enum", "green", "`v`: expected one of 'red', 'blue'"),
    ("of_dataclass", {"y": 1}, "`v`: the field `x` is missing"),
    ("of_dataclass", {"x": 1, "z": 1}, "`v`: has no field `z`; it has `x`, `y`, `tags`"),
    ("of_typeddict", {"year": 1}, "`v`: the field `title` is missing"),
    ("of_model", {"children": []}, "`v`: `name` Field required"),
    ("of_duration", "P", "`v`: expected a duration such as PT1H30M"),
    ("of_duration", "PT", "`v`: expected a duration such as PT1H30M"),
    ("of_duration", "P1DT", "`v`: expected a duration such as PT1H30M"),
    ("of_duration", "PT1S1H", "`v`: expected a duration such as PT1H30M"),
    ("of_none", 1, "`v`: expected a string, or expected null"),
    ("of_odd_default", 1, "`v`: expected true or false"),
    ("of_duration", "1 hour", "`v`: expected a duration such as PT1H30M"),
    ("of_decimal", "NaN", "`v`: expected a number, or one as text"),
    ("of_pair", [1], "`v`: expected an array of 2"),
    ("of_pair", [1, 2], "`v`: [1]: expected a string"),
    ("of_set", [1, 1], "`v`: expected an array without repetitions"),
    ("of_limited", 9, "`v`: Input should be less than or equal to 5"),
]


@pytest.mark.proves("TOOLHOST-SCHEMAS", "A060")
async def test_a_schema_accepts_what_the_function_gets_and_refuses_what_it_does_not(serve: Serve) -> None:
    host = serve({"tools.py": TYPES + "\n__all__ = [name for name in dir() if name.startswith('of_')]\n"})
    (module,) = await host.describe(["tools.py"])
    assert module.broken == () and module.error is None
    schemas = {function.name: function.input_schema for function in module.functions}
    for name, schema in schemas.items():
        published = checked(schema)  # a project refuses what it cannot match in linear time
        assert published == schema or name in ("of_odd_default", "of_lenient")
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object" and schema["additionalProperties"] is False
    assert {name for name, _, _ in ACCEPTED} == set(schemas)
    for name, value, shown in ACCEPTED:
        jsonschema.validate({"v": value}, schemas[name], jsonschema.Draft202012Validator)
        assert shown in await host.call("tools.py", name, {"v": value})
    for name, value, error in REFUSED:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"v": value}, schemas[name], jsonschema.Draft202012Validator)
        with pytest.raises(InvalidInput) as raised:
            await host.call("tools.py", name, {"v": value})
        assert str(raised.value) == f"tools.py: `{name}`: {error}"


@pytest.mark.proves("TOOLHOST-SCHEMAS")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "the parameter `path` is missing"),
        ({"path": "a", "depth": 1}, "there is no parameter `depth`; it has `path`, `deep`"),
    ],
)
async def test_arguments_that_do_not_fit_are_named(serve: Serve, arguments: dict[str, Any], error: str) -> None:
    host = serve({"tools.py": TYPES + "\n__all__ = ['describe']\n"})
    with pytest.raises(InvalidInput, match=error):
        await host.call("tools.py", "describe", arguments)


@pytest.mark.proves("TOOLHOST-SCHEMAS")
async def test_arguments_that_json_cannot_carry_are_refused_before_anything_runs(serve: Serve) -> None:
    host = serve({"tools.py": "from typing import Any\n\ndef same(v: Any) -> Any: return v\n"})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (float("nan"), {1, 2}, deep):
        with pytest.raises(InvalidInput, match="cannot be carried as JSON"):
            await host.call("tools.py", "same", {"v": value})
    assert await host.call("tools.py", "same", {"v": 1}) == 1


@pytest.mark.proves("TOOLHOST-SCHEMAS")
async def test_descriptions_and_result_schema_come_from_the_function(serve: Serve) -> None:
    host = serve({"tools.py": TYPES + "\n__all__ = ['describe', 'of_described', 'of_any']\n"})
    (module,) = await host.describe(["tools.py"])
    described = {function.name: function for function in module.functions}
    assert described["describe"].description == "Describes a file.\n\nAt length.\n\nReturns:\n    Where it is."
    properties = described["describe"].input_schema["properties"]
    assert properties["path"] == {"type": "string", "description": "Which file, relative to the project."}
    assert properties["deep"] == {"type": "boolean", "description": "Whether to look inside.", "default": False}
    assert described["of_described"].input_schema["properties"]["v"]["description"] == "how many"
    assert described["describe"].output_schema is not None
    jsonschema.validate(await host.call("tools.py", "describe", {"path": "a"}), described["describe"].output_schema)
    assert described["of_any"].input_schema["properties"]["v"] == {}


RETURNS: list[tuple[str, Any]] = [
    ("None", None),
    ("(1, 'a', [True])", [1, "a", [True]]),
    ("datetime.date(2026, 11, 27)", "2026-11-27"),
    ("datetime.datetime(2026, 11, 27, 8)", "2026-11-27T08:00:00"),
    ("pathlib.PurePosixPath('a/b')", "a/b"),
    ("datetime.timedelta(days=1, seconds=90, microseconds=250000)", "P1DT90.25S"),
    ("-datetime.timedelta(seconds=1)", "-PT1S"),
    ("datetime.timedelta()", "PT0S"),
    ("decimal.Decimal('1.50')", "1.50"),
    ("uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"),
    ("{3, 1, 2}", [1, 2, 3]),
    ("frozenset({'b', 'a'})", ["a", "b"]),
    ("{Colour.RED: Colour.RED}", {"red": "red"}),
    ("Point(1, None)", {"x": 1, "y": None}),
    ("'bad \\udcff name \\ud800'", "bad \\xff name \\ud800"),
    ("{'\\udcff': 1}", {"\\xff": 1}),
    ("2**63 - 1", 2**63 - 1),
    ("'x' * 4_000_000", "x" * 4_000_000),
]
UNRETURNABLE: list[tuple[str, str]] = [
    ("b'abc'", "result is of type bytes, which has no JSON form; decode it, or write it to a file"),
    ("{'a': [1, float('nan')]}", "result.a[1] is nan, which JSON does not have; return None or text"),
    ("float('inf')", "result is inf"),
    ("{b'x'}", "result{…} is of type bytes, which has no JSON form"),
    ("decimal.Decimal('NaN')", "result is NaN, which JSON does not have; return None or text"),
    ("(n for n in [1])", "result is of type generator, which has no JSON form; return a list"),
    ("10**400", "result is an integer beyond 64 bits; return it as text"),
    ("10**5000", "result is an integer beyond 64 bits; return it as text"),
    ("object()", "result is of type object, which has no JSON form"),
    ("{1: 2}", "result has a key of type int; keys are text"),
    ("endless()", "returned something nested deeper than 100 levels, or that contains itself"),
    ("'x' * 50_000_000", "returned 50,000,002 bytes of JSON; at most 5,000,000 are carried: write it to a file"),
    ("Point", "result is of type type, which has no JSON form"),
]


@pytest.mark.proves("A061")
async def test_a_result_is_json_with_one_obvious_form_or_a_clear_error(serve: Serve) -> None:
    source = """
    import dataclasses, datetime, decimal, enum, pathlib, uuid
    class Colour(enum.Enum):
        RED = "red"
    @dataclasses.dataclass
    class Point:
        x: float
        y: float | None
    def endless():
        loop = []
        loop.append(loop)
        return loop
    def make(expression: str):
        return eval(expression)
    __all__ = ["make"]
    """
    host = serve({"tools.py": source})
    for expression, value in RETURNS:
        assert await host.call("tools.py", "make", {"expression": expression}) == value
    line = textwrap.dedent(source).splitlines().index("def make(expression: str):") + 1
    for expression, error in UNRETURNABLE:
        with pytest.raises(FunctionFailed) as raised:
            await host.call("tools.py", "make", {"expression": expression})
        assert str(raised.value).startswith(f"tools.py:{line}: `make`: {error}")
