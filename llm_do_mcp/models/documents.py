"""PDFs as they can be sent: to a model that takes documents as they are, to any other one as their text.

For that `pypdf` has to be installed (the extra `pdf`). It runs in a child process that is killed when it takes too
long (`pdf_child.py`). Without it PDFs go to models that take documents, and to no others.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models.attachments import PDF, TEXT
from llm_do_mcp.models.capabilities import to_switch_on
from llm_do_mcp.models.failures import failure, unavailable
from llm_do_mcp.models.naming import PROVIDER
from llm_do_mcp.models.turn import Block, Request, attachments_of

MOST_PAGES = 600
"""Pages that the Messages API takes in a request."""
WITHIN_S = 30.0
_KEPT = 16


@dataclass(frozen=True)
class Pdf:
    """What is known of a PDF: its pages, its text where that was asked for, or why it cannot be read."""

    pages: int = 0
    text: str = ""
    whole: bool = True
    problem: str = ""
    encrypted: bool = False


class Documents:
    """Reads the PDFs of requests, each once: every turn of a conversation has them again."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, bool], Pdf] = {}

    async def as_texts(self, request: Request) -> Request:
        """The request with the text of each PDF in its place.

        Raises:
            ModelError: The text of one cannot be had.
        """
        texts = {}
        for block in _pdfs(request):
            found = await self._pdf(block["data"], text=True)
            if found.encrypted:
                raise _encrypted(request, block["name"])
            why = found.problem or ("" if found.text else "it holds no text, as a scan does")
            if why:
                raise _not_taken(request, block["name"], why)
            cut = "" if found.whole else "\n\n[the rest is too long and was left out]"
            texts[id(block)] = {**block, "media_type": TEXT, "data": f"{found.text}{cut}".encode()}
        return replace(request, messages=tuple(_replaced(message, texts) for message in request.messages))

    async def check(self, request: Request) -> None:
        """See that the PDFs of a request are such as a model takes, as far as that can be told here.

        What cannot be read here may be read there, so it is sent. Small files are looked into as well: hundreds of
        pages that are alike take next to no room.

        Raises:
            ModelError: They have too many pages, or one is encrypted.
        """
        pages = 0
        for block in _pdfs(request):
            found = await self._pdf(block["data"], text=False)
            if found.encrypted:
                raise _encrypted(request, block["name"])
            pages += found.pages
        if pages > MOST_PAGES:
            what = f"the attached PDFs have {pages} pages, and a request may have {MOST_PAGES}"
            raise failure(request, what, "attach fewer, or parts of them")

    async def _pdf(self, data: bytes, *, text: bool) -> Pdf:
        key = hashlib.sha256(data).hexdigest(), text
        if key not in self._read:
            self._read[key] = await _read(data, text=text)
            while len(self._read) > _KEPT:
                self._read.pop(next(iter(self._read)))
        return self._read[key]


async def _read(data: bytes, *, text: bool) -> Pdf:
    if importlib.util.find_spec("pypdf") is None:
        return Pdf(problem="its text cannot be read without the extra llm-do-mcp[pdf]")
    child = Path(__file__).with_name("pdf_child.py")
    # -P: what lies beside it is not what it imports; there is a `select.py`.
    command = [sys.executable, "-P", str(child), *(["text"] if text else [])]
    try:
        with anyio.fail_after(WITHIN_S):
            done = await anyio.run_process(command, input=data, stderr=subprocess.PIPE, check=False)
    except TimeoutError:
        return Pdf(problem=f"its text could not be read within {WITHIN_S:g} s")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Pdf(problem=f"it cannot be read ({said[-1] if said else f'exit code {done.returncode}'})")
    return Pdf(**json.loads(done.stdout))


def _pdfs(request: Request) -> list[Block]:
    return [block for block in attachments_of(request) if block["media_type"] == PDF]


def _replaced(message: Mapping[str, Any], texts: Mapping[int, Block]) -> Mapping[str, Any]:
    if isinstance(message["content"], str):
        return message
    return {**message, "content": [texts.get(id(block), block) for block in message["content"]]}


def _not_taken(request: Request, name: str, why: str) -> ModelError:
    what = f"attachment {name} was not sent: this model is not known to take documents, and {why}"
    if not request.model.startswith(PROVIDER):  # of a client's own model nothing can be switched on
        return unavailable(request, what, "attach text, or name another model")
    return unavailable(request, what, f"attach text, name another model, or {to_switch_on('documents')}")


def _encrypted(request: Request, name: str) -> ModelError:
    what = f"attachment {name} was not sent: the PDF is encrypted"
    return failure(request, what, "attach one that opens without a password")
