"""A project's tests as they are written: the files `tests/*.yaml`.

    model: scripted:scripted/model.yaml
    tests:
      greets by name:
        input: I am Ada
        expect: {text: "Welcome, Ada!"}

A test says what is asked on the way and what is answered in one list, `approvals`: whatever else is asked, and whatever
in it is not asked, fails the test. So a test of a worker that writes is a reviewed list of what it may write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Tag, ValidationError, model_validator

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project.checked import LIST, WORD, Checked, Count, Text, TextOrTexts, check, list_or_word, quoted
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.paths import ProjectPath, project_path
from llm_do_mcp.project.schema import checked
from llm_do_mcp.project.settings import ApprovalRule
from llm_do_mcp.project.strictyaml import load
from llm_do_mcp.runtime.display import escape
from llm_do_mcp.runtime.policy import ANY
from llm_do_mcp.sandbox import patterns

FOLDER = "tests"
SUFFIXES = (".yaml", ".yml")


class Asked(Checked):
    """Questions that a run asks, and what is answered.

    `function` and `subject` name a call as a rule of `approvals` does that allows it: patterns (`files.*`, `reports/*`)
    of the function's canonical name and of what the call is done to. `times` is how often it is asked; without it at
    least once. `decision` is for approvals; a question that a tool asks is answered with `answer`.
    """

    function: Text
    subject: Text = ANY
    decision: Literal["once", "run", "deny"] = "once"
    note: Text = ""
    answer: Text | None = None
    times: Count | None = None

    @property
    def rule(self) -> ApprovalRule:
        """The rule that would allow these calls, and no others."""
        return ApprovalRule(
            function=self.function, decision="allow", subject=None if self.subject == ANY else self.subject
        )

    @model_validator(mode="after")
    def _of_one_kind(self) -> Asked:
        if self.answer is not None and "decision" in self.model_fields_set:
            raise ValueError("`decision` is for approvals, `answer` for what a tool asks; write one of them")
        try:
            _ = self.rule
        except ValidationError as error:
            raise ValueError(error.errors()[0]["ctx"]["error"]) from None
        return self


def _schema(value: Any) -> Any:
    """A schema, or the path of one: what is wrong with it is wrong with the test."""
    match value:
        case None:
            return None
        case str():
            return project_path(value)
        case dict():
            return checked(value)
        case _:
            raise ValueError("must be a schema, or a JSON file of the project that holds one")


def _function(text: str) -> str:
    file, _, name = text.partition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f"{quoted(text)} is no function; write file.py:function")
    return f"{project_path(file)}:{name}"


def _pattern(text: str) -> str:
    patterns.parse(text)
    return text


class Expected(Checked):
    """What comes of a run; what is not named is not looked at.

    `text` and `error` are pieces that the answer, or the error, has in it; `output` is the whole answer, and
    `output_schema` a schema that it fits: inline, or a JSON file of the project. `python` is `file.py:function`, called
    with all that came of the run: it raises (`assert …`) where something is not as it should be. `files` are patterns
    of paths in the project (`out/*.md`, `out/**`) with pieces that such files have in them: all files that were written
    are among them.
    """

    status: Literal["done", "failed"] = "done"
    text: TextOrTexts = ()
    error: TextOrTexts = ()
    output: Any = None
    output_schema: Annotated[Any, AfterValidator(_schema)] = None
    python: Annotated[Text, AfterValidator(_function)] | None = None
    files: dict[Annotated[Text, AfterValidator(_pattern)], TextOrTexts] | None = None

    @model_validator(mode="after")
    def _of_one_outcome(self) -> Expected:
        if self.error and self.status == "done":
            raise ValueError("an error is of a run with `status: failed`")
        return self


_Word = Literal["all", "deny", "locked"]
_Answers = Annotated[
    Annotated[tuple[Asked, ...], Tag(LIST)] | Annotated[_Word, Tag(WORD)],
    list_or_word("must be a list of what is asked, or 'all', 'deny' or 'locked'"),
]


class CaseKeys(Checked):
    """One call of a worker, and what is expected of it.

    `input` is a text, or the fields of the worker's input. `attach` are files of the project.
    `approvals` may be one word instead of a list: `all` approves, `deny` refuses, `locked` allows what `approvals.lock`
    does.
    """

    worker: Text | None = None
    model: Text | None = None
    input: Any = ""
    attach: tuple[ProjectPath, ...] = ()
    approvals: _Answers = ()
    expect: Expected = Expected()


class SuiteFile(Checked):
    """A file of tests. `model` is that of all its tests that name none: `scripted:FILE`, `replay:FILE`, or a model."""

    model: Text | None = None
    tests: dict[Text, CaseKeys]


@dataclass(frozen=True)
class Case:
    """A test that can be run.

    Args:
        file: The file that it is written in, relative to the project, as it can be shown.
        name: Its name there, as it can be shown.
        keys: What is written.
        model: What answers; None where no file says it, and the project's own models do.
    """

    file: str
    name: str
    keys: CaseKeys
    model: str | None

    @property
    def title(self) -> str:
        """The test among all of the project."""
        return f"{self.file}: {self.name}"


def read(root: str, *, only: str = "") -> tuple[Case, ...]:
    """The tests of a project, in the order of files and lines. Blocks.

    Args:
        root: The project's folder.
        only: A piece of the titles of the tests that are wanted.

    Raises:
        ProjectError: A file is no file of tests; with the place.
        UsageError: There are none.
    """
    files = ProjectFiles(root)
    names = sorted(
        found.parts[-1]
        for found in files.walk(FOLDER, lambda _: False)
        if found.kind == "file" and found.parts[-1].endswith(SUFFIXES)
    )
    cases = [case for name in names for case in _cases(files, f"{FOLDER}/{name}")]
    wanted = tuple(case for case in cases if only in case.title)
    if not cases:
        raise UsageError(f"the project has no tests; write {FOLDER}/NAME.yaml, as the README has it")
    if not wanted:
        raise UsageError(f"no test has {quoted(only)} in its title; to list them: llm-do test --list")
    return wanted


def _cases(files: ProjectFiles, path: str) -> tuple[Case, ...]:
    found = check(SuiteFile, load(decode(files.read_bytes(path), path), path=path))
    if not found.tests:
        raise ProjectError("`tests` is empty", path=path)
    return tuple(
        Case(escape(path), escape(name), keys, keys.model or found.model) for name, keys in found.tests.items()
    )
