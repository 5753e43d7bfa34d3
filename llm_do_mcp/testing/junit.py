"""The outcome of tests as JUnit's XML, which CI services read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_do_mcp.testing.play import Played


def report(played: Sequence[Played]) -> str:
    """One suite for each file, in the order in which the tests were played. What they say is escaped already."""
    suites = ElementTree.Element("testsuites", _counts(played))
    for file, group in groupby(played, key=lambda one: one.case.file):
        of_file = list(group)
        suite = ElementTree.SubElement(suites, "testsuite", {"name": file, **_counts(of_file)})
        for one in of_file:
            attributes = {"classname": file, "name": one.case.name, "time": f"{one.seconds:.3f}"}
            case = ElementTree.SubElement(suite, "testcase", attributes)
            if one.failures:
                failure = ElementTree.SubElement(case, "failure", {"message": one.failures[0]})
                failure.text = "\n".join(one.failures)
                if one.printed:
                    ElementTree.SubElement(case, "system-out").text = "\n".join(one.printed)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _counts(played: Sequence[Played]) -> dict[str, str]:
    return {
        "tests": str(len(played)),
        "failures": str(sum(bool(one.failures) for one in played)),
        "errors": "0",
        "time": f"{sum(one.seconds for one in played):.3f}",
    }
