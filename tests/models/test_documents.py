"""PDFs for models that take no documents, and those that are too large for any."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models import documents
from llm_do_mcp.models.attachments import attachment
from llm_do_mcp.models.turn import Request, ToolSpec
from tests.models.asking import ask, request, use
from tests.models.messages_server import MessagesServer, error, message, text

pytestmark = pytest.mark.anyio

DECK = sorted((Path(__file__).parents[2] / "projects" / "pitchdeck_eval").rglob("*.pdf"))[0]
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),)


def pdf(pages: int, password: str = "") -> bytes:
    """A PDF of empty pages, as a scan without its pictures."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def attached(name: str, data: bytes) -> Request:
    return request(messages=({"role": "user", "content": [attachment(name, data)]},))


@pytest.mark.proves("MODEL-PDF-TEXT", "MODEL-CAPABILITIES")
async def test_a_model_that_takes_no_documents_is_sent_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        await ask(attached("pipeline/deck.pdf", DECK.read_bytes()), model="gemma3")
    (block,) = server.requests[0].body["messages"][0]["content"]
    assert block["type"] == "text"
    assert block["text"].startswith("Attachment pipeline/deck.pdf:\n\n[page 1]\n")
    assert "[page 5]" in block["text"]


@pytest.mark.proves("MODEL-PDF-TEXT")
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pdf(2), "it holds no text, as a scan does"),
        (b"%PDF-1.4\n...\nstartxref\n9\n%%EOF\n", "it cannot be read ("),
    ],
    ids=["a scan", "damaged"],
)
async def test_a_pdf_without_text_is_refused_in_words(monkeypatch: pytest.MonkeyPatch, data: bytes, why: str) -> None:
    with MessagesServer(message(text("never"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError) as caught:
            await ask(attached("in/a.pdf", data), model="gemma3")
        assert server.requests == []
    assert f"attachment in/a.pdf was not sent: this model is not known to take documents, and {why}" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


@pytest.mark.proves("MODEL-PDF-TEXT")
async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pypdf")
    monkeypatch.setattr(sys, "path", [])
    found = await documents._read(DECK.read_bytes(), text=True)
    assert found.problem == "its text cannot be read without the extra llm-do-mcp[pdf]"


@pytest.mark.proves("MODEL-PDF-TEXT")
async def test_a_pdf_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "WITHIN_S", 0.0)
    found = await documents._read(DECK.read_bytes(), text=True)
    assert found.problem == "its text could not be read within 0 s"


@pytest.mark.proves("MODEL-SIZES")
async def test_too_many_pages_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError, match="the attached PDFs have 601 pages, and a request may have 600"):
            await ask(attached("in/a.pdf", pdf(601)))
        assert server.requests == []
        await ask(attached("in/a.pdf", pdf(3)))


@pytest.mark.proves("MODEL-SIZES", "MODEL-ATTACHMENTS")
async def test_an_encrypted_pdf_is_not_sent_however_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    data = re.sub(rb"/Encrypt (\d+ 0 R)", rb"/Encrypt%\n\1", pdf(1, password="x"))
    with MessagesServer(message(text("never"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError, match=r"attachment in/a\.pdf was not sent: the PDF is encrypted; attach one"):
            await ask(attached("in/a.pdf", data))
        with pytest.raises(ModelError, match=r"was not sent: the PDF is encrypted; attach one"):
            await ask(attached("in/a.pdf", data), model="gemma3")
        assert server.requests == []


@pytest.mark.proves("MODEL-SIZES")
@pytest.mark.parametrize(
    "content",
    [
        [attachment(f"in/{name}.png", b"\x89PNG\r\n\x1a\n" + bytes(12_000_000)) for name in "ab"],
        [attachment(f"in/{name}.csv", b"12345;\n" * 2_000_000) for name in "ab"],
        [{"type": "text", "text": "\u00fc" * 16_000_001}],
        [{"type": "text", "text": "x" + "\t" * 16_000_001}],
        [{"type": "text", "text": "x" + "\x01" * 5_333_400}],
    ],
    ids=["pictures", "files", "words", "tabs", "control characters"],
)
async def test_more_than_a_request_may_have_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, content: list[dict[str, Any]]
) -> None:
    asked = request(messages=({"role": "user", "content": content},))
    with MessagesServer(message(text("never"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError, match=r"it is asked with 32,000,\d+ bytes, and .* 32,000,000; attach"):
            await ask(asked)
        assert server.requests == []


@pytest.mark.proves("MODEL-SIZES", "A073")
async def test_what_only_the_server_can_tell_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    too_long = error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
    with MessagesServer(too_long) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError) as caught:
            await ask(request())
    assert "400 invalid_request_error: prompt is too long: 210000 tokens > 200000 maximum" in str(caught.value)
    assert str(caught.value).endswith("; give it less to read, or name a model with a larger context")


@pytest.mark.proves("MODEL-CAPABILITIES")
async def test_a_model_that_makes_one_call_at_a_time_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        await ask(request(tools=TOOLS), model="gemma3", capabilities={"gemma*": {"parallel_tools": False}})
        await ask(request(tools=TOOLS), model="gemma3")
    first, second = (received.body for received in server.requests)
    assert first["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert "tool_choice" not in second
