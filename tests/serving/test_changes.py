"""Whether a tool can change something, where that hangs on workers far below."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.surface import publish
from llm_do_mcp.toolsets.workbench import Workbench
from tests.serving.clients import shop, worker

LENGTH = 1_000
FIRST, MIDDLE = "w0", f"w{LENGTH // 2}"


def read_only(root: Path, last: dict[str, object]) -> dict[str, bool]:
    """Tool → whether it only reads, of a long row of workers each of which may call the next.

    Args:
        root: Where the project is made.
        last: The toolsets of the last one.
    """
    toolsets = [{"delegation": {"allow_workers": [f"w{number + 1}"]}} for number in range(LENGTH - 1)]
    files = {f"workers/w{number}.worker": worker({"toolsets": one}) for number, one in enumerate([*toolsets, last])}
    project = load_project(shop(root, files=files, exports=[FIRST, MIDDLE]))
    return {tool.name: tool.read_only for tool in publish(Workbench(project)).values() if tool.is_worker}


@pytest.mark.proves("SURFACE-CHAINS")
@pytest.mark.parametrize(
    ("last", "reads"),
    [
        ({}, True),
        ({"filesystem": {}}, False),
        ({"delegation": {"allow_workers": [FIRST]}}, True),  # round and round
        ({"delegation": {"allow_workers": ["main"]}}, False),  # which may write
    ],
)
def test_what_the_last_of_a_thousand_workers_can_change_the_first_can(
    tmp_path: Path, last: dict[str, object], reads: bool
) -> None:
    assert read_only(tmp_path, last) == {FIRST: reads, MIDDLE: reads}
