"""What docstrings say of a function and its parameters, in each style."""

from __future__ import annotations

import textwrap

import pytest

from llm_do_mcp.toolhost.docstrings import split_docstring

GOOGLE = """
Finds a word.

Args:
    path (str, optional): Which file,
        relative to the project.
    *words: What to find: several.

Returns:
    The lines.
"""
NUMPY = """
Finds a word.

Parameters
----------
path : str, optional
    Which file,
    relative to the project.
words : list of str
    What to find: several.
deep, flat
    How to look.

Returns
-------
list
    The lines.
"""
REST = """
Finds a word.

:param path: Which file,
    relative to the project.
:type path: str
:param list[str] words: What to find: several.
:returns: The lines.
"""
WANTED = {"path": "Which file, relative to the project.", "words": "What to find: several."}


def split(docstring: str | None) -> tuple[str, dict[str, str]]:
    def function() -> None: ...

    function.__doc__ = docstring and textwrap.dedent(docstring)
    return split_docstring(function)


@pytest.mark.proves("TOOLHOST-DOCSTRINGS")
def test_each_style_describes_the_function_and_its_parameters() -> None:
    assert split(GOOGLE) == ("Finds a word.\n\nReturns:\n    The lines.", WANTED)
    assert split(REST) == ("Finds a word.\n\n:returns: The lines.", WANTED)
    numpy = split(NUMPY)
    assert numpy[0] == "Finds a word.\n\nReturns\n-------\nlist\n    The lines."
    assert numpy[1] == {**WANTED, "deep": "How to look.", "flat": "How to look."}


@pytest.mark.proves("TOOLHOST-DOCSTRINGS")
@pytest.mark.parametrize(
    "docstring",
    [
        None,
        "",
        "Plain: no parameters: at all.",
        "Parameters are not described.\n\nParameters\nhere is no line of dashes.",
        "An example:\n\n    :param x: indented, so it is quoted\n\nAnd so on.",
    ],
)
def test_what_is_no_such_section_stays_in_the_description(docstring: str | None) -> None:
    assert split(docstring) == ((docstring or "").strip(), {})
