"""A root is plain data, and the back end is chosen in one place."""

from __future__ import annotations

import json
import os
import sys

import pytest

from llm_do_mcp.sandbox.backend import default_backend
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.sandbox.root import Root


@pytest.mark.proves("SANDBOX-ROOT")
def test_a_root_survives_json() -> None:
    plain = Root("in", os.path.abspath("x"))
    full = Root("out_2", os.path.abspath("y"), "out", (".md",), 5, True, False, ("workers", "**/*.worker"), (".state",))
    for root in (plain, full):
        assert Root.from_json(json.loads(json.dumps(root.to_json()))) == root


@pytest.mark.proves("SANDBOX-ROOT")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alias": "In"}, "allowed are lower-case letters"),
        ({"alias": "a/b"}, "allowed are lower-case letters"),
        ({"alias": ""}, "allowed are lower-case letters"),
        ({"path": "relative"}, "must be absolute"),
        ({"mode": "wr"}, "allowed are ro, rw, out"),
        ({"max_file_bytes": 0}, "at least 1"),
    ],
)
def test_a_root_that_cannot_be_meant_is_refused(changes: dict[str, object], message: str) -> None:
    values: dict[str, object] = {"alias": "in", "path": os.path.abspath("x"), **changes}
    with pytest.raises(ValueError, match=message):
        Root(**values)  # type: ignore[arg-type]


@pytest.mark.proves("SANDBOX-ROOT")
def test_two_roots_do_not_share_an_alias() -> None:
    with pytest.raises(ValueError, match=r"two roots share an alias"):
        Sandbox([Root("in", os.path.abspath("x")), Root("in", os.path.abspath("y"))])


@pytest.mark.proves("SANDBOX-BACKENDS")
def test_the_strongest_back_end_is_chosen() -> None:
    chosen = type(default_backend()).__name__
    if sys.platform == "win32":
        assert chosen == "OpenThenVerify"
    else:
        from llm_do_mcp.sandbox.descriptors import Beneath

        assert chosen == ("Beneath" if Beneath.works() else "NameByName")
