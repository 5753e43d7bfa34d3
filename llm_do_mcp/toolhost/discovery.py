"""Which functions of a module are tools, by either contract.

- `register(agent)`: the module's own function is called with an object whose `tool` registers functions, as a decorator
  (`@agent.tool`, `@agent.tool(risk="read")`) or as a method (`agent.tool(function)`). `my_project.tools:register` names
  that function, whatever it is called; nothing else of such a module is offered.
- Plain functions: those that `tool` marks, those that `__all__` lists, and, in a `tools.py` that has neither `__all__`
  nor `register`, every public function that is defined there.

A package offers what its `__init__.py` has. Where that offers nothing, each file beside it is looked at as a module.

What was meant as a tool and cannot be one is reported as broken, with the reason; it is never left out silently.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from llm_do_mcp.toolhost.authoring import Mark, Risk, checked_mark, mark_of
from llm_do_mcp.toolhost.descriptions import BrokenFunction, ToolFunction
from llm_do_mcp.toolhost.docstrings import split_docstring
from llm_do_mcp.toolhost.modules import ImportFailed, ProjectImporter, named_in
from llm_do_mcp.toolhost.signatures import Signature, Unsupported, signature_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True)
class Tool:
    """A function that can be called as a tool."""

    function: Callable[..., Any]
    signature: Signature
    described: ToolFunction


class Agent:
    """What `register(agent)` is given."""

    def __init__(self) -> None:
        self.registered: dict[str, tuple[Any, Mark]] = {}

    def tool(self, function: Any = None, /, *, risk: Risk | None = None, idempotent: bool = False) -> Any:
        """Registers a function as a tool: `@agent.tool`, `@agent.tool(risk="read")`, `agent.tool(function)`."""
        declared = checked_mark(risk, idempotent)

        def register(function: Any) -> Any:
            name = getattr(function, "__name__", type(function).__name__)
            if name in self.registered:
                raise ValueError(f"the tool {name!r} is registered twice; rename one")
            mark = declared if declared != Mark() else mark_of(function) or declared
            self.registered[name] = (function, mark)
            return function

        return register if function is None else register(function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the agent of register(agent) has no {name!r}; it has `tool`")


def discover(
    module: types.ModuleType, path: str, importer: ProjectImporter
) -> tuple[dict[str, Tool], dict[str, BrokenFunction]]:
    """The tools of a module, and what was meant as one and cannot be, both by name.

    Raises:
        ImportFailed: It has no such function as the path names.
        Exception: Whatever the module's `register` raised.
    """
    tools: dict[str, Tool] = {}
    broken: dict[str, BrokenFunction] = {}
    found = list(_candidates(module, path))
    if not found:
        found = [each for file in importer.enter(path) for each in _candidates(importer.load(file), file)]
    for name, function, mark in found:
        try:
            if name in tools:
                raise Unsupported(f"there are two in {path}; rename one")
            tools[name] = _tool(name, function, mark, _place(function, importer) or path)
        except Unsupported as error:
            where = _place(function, importer) or path
            broken[name] = BrokenFunction(name, " ".join(f"{where}: `{name}` cannot be a tool: {error}".split()))
    return tools, broken


def _candidates(module: types.ModuleType, path: str) -> Iterator[tuple[str, Any, Mark]]:
    """What is meant as a tool: name, function, declaration."""
    members = vars(module)
    if (named := named_in(path)) is not None:
        if not callable(register := members.get(named)):
            raise ImportFailed(f"{path}: tool module missing `{named}`: it must define {named}(agent)")
        yield from _registered(register, path)
        return
    register = members.get("register")
    taken: set[str] = set()
    if inspect.isfunction(register) and register.__module__ == module.__name__:
        for name, function, declared in _registered(register, path):
            taken.add(name)
            yield name, function, declared
    listed = members.get("__all__")
    all_public = listed is None and register is None and re.split("[/:]", path)[-1] == "tools.py"
    for name in dict.fromkeys([*(listed or ()), *members]):
        function = members.get(name)
        if name in taken or (name == "register" and function is register):
            continue
        mark = mark_of(function)
        meant = mark is not None or (all_public and not name.startswith("_") and inspect.isfunction(function))
        if (listed and name in listed) or (meant and _defined_in(module, function)):
            yield name, function, mark or Mark()


def _registered(register: Callable[[Agent], Any], path: str) -> Iterator[tuple[str, Any, Mark]]:
    if inspect.iscoroutinefunction(register):
        name = register.__name__
        raise ImportFailed(f"{path}: `{name}` must not be async: nobody awaits it; write `def {name}(agent)`")
    agent = Agent()
    register(agent)
    for name, (function, mark) in agent.registered.items():
        yield name, function, mark


def _defined_in(module: types.ModuleType, function: Any) -> bool:
    """Whether the module, or a file of the package that it is, defines the function: an import is not an offer."""
    home = str(getattr(function, "__module__", ""))
    return home == module.__name__ or (hasattr(module, "__path__") and home.startswith(f"{module.__name__}."))


def _tool(name: str, function: Any, mark: Mark, place: str) -> Tool:
    if function is None:
        raise Unsupported("`__all__` lists it, and the module does not define it")
    if not inspect.isfunction(function):
        kind = "a class" if isinstance(function, type) else f"of type {type(function).__name__}"
        raise Unsupported(f"it is {kind}; write a function (`def` or `async def`)")
    if not _NAME.fullmatch(name):
        raise Unsupported("a tool's name has letters, digits and underscores of ASCII, at most 64")
    description, parameters = split_docstring(function)
    signature = signature_of(function, parameters)
    described = ToolFunction(
        name=name,
        description=description,
        input_schema=signature.input_schema,
        output_schema=signature.output_schema,
        risk=mark.risk,
        idempotent=mark.idempotent,
        takes_context=signature.takes_context,
        place=place,
    )
    return Tool(function, signature, described)


def _place(function: Any, importer: ProjectImporter) -> str | None:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or not importer.is_project_file(code.co_filename):
        return None
    return f"{importer.relative(code.co_filename)}:{code.co_firstlineno}"
