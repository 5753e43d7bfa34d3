"""Our path to a local server that speaks the Messages API, against the real llama.cpp.

`make llama` fetches it and runs these. The model is the file that `LLM_DO_TEST_GGUF` names, else a tiny one that is
written for the purpose (see `llama.py`), of which it is known what it says.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from tests.cli.commands import llm_do
from tests.models.asking import ask, request
from tests.models.llama import SAYS
from tests.models.test_documents import DECK, attached

MODEL_FILE = os.environ.get("LLM_DO_TEST_GGUF")
NEEDED = ("xllamacpp",) if MODEL_FILE else ("xllamacpp", "gguf")
MISSING = [name for name in NEEDED if find_spec(name) is None]
SCHEMA = {
    "type": "object",
    "properties": {"fruit": {"type": "string"}},
    "required": ["fruit"],
    "additionalProperties": False,
}

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} here: `make llama` fetches what is needed"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with the model."""
    command = [sys.executable, "-m", "tests.models.llama", *filter(None, [MODEL_FILE])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()


@pytest.mark.proves("LLAMA-TURN")
async def test_a_turn_is_answered_and_counted(address: str) -> None:
    reply = await ask(request("Which fruit?"), model="local", base_url=address)
    assert reply.stop_reason in ("end_turn", "max_tokens")
    assert reply.usage.input_tokens > 0 and reply.usage.output_tokens > 0
    (block,) = reply.content
    assert block["type"] == "text" and (MODEL_FILE or block["text"] == SAYS)


@pytest.mark.proves("LLAMA-DOCUMENTS")
async def test_of_a_pdf_it_gets_the_text_and_not_a_document_that_it_would_drop(address: str) -> None:
    async def read(asked: Any, **options: Any) -> int:
        usage = (await ask(asked, model="local", base_url=address, **options)).usage
        return usage.input_tokens + usage.cache_read_tokens

    page, writer = io.BytesIO(), PdfWriter()
    writer.add_page(PdfReader(DECK).pages[0])
    writer.write(page)
    deck = attached("deck.pdf", page.getvalue())
    as_text = await read(deck)
    dropped = await read(deck, capabilities={"local": {"documents": True}})
    assert as_text > dropped + 20


def project(root: Path, address: str, keys: str) -> Path:
    root.mkdir()
    (root / "project.yaml").write_text(f"model: anthropic:local\nbase_url: {address}\n")
    (root / "main.worker").write_text(f"---\n{keys}\n---\nAnswer in one word.\n")
    (root / "notes").mkdir()
    return root


@pytest.mark.proves("LLAMA-WORKER")
def test_a_worker_with_tools_runs_on_it(tmp_path: Path, address: str) -> None:
    keys = "toolsets: {filesystem: {}}\nsandbox: {paths: {notes: 'ro:./notes'}}\nlimits: {max_turns: 5}"
    done = llm_do(project(tmp_path / "shop", address, keys), "Which fruit?", "--json")
    result = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    if MODEL_FILE is None:
        assert (done.returncode, result["output"]) == (0, SAYS)
    else:  # a small model may well call with nonsense until it is stopped
        assert done.returncode in (0, 1)


@pytest.mark.proves("LLAMA-WORKER")
def test_a_schema_is_held_to_though_the_server_ignores_it(tmp_path: Path, address: str) -> None:
    done = llm_do(project(tmp_path / "shop", address, f"output_schema: {json.dumps(SCHEMA)}"), "Which fruit?", "--json")
    result = json.loads(done.stdout)
    if done.returncode == 0:
        assert isinstance(result["output"]["fruit"], str)
    else:
        assert result["error"].startswith("worker main: its output does not fit: it is not JSON")
