"""What the suite wants to find beside what our server publishes: tools, prompts and resources with fixed answers.

They say nothing about this project's own tools; they let the suite reach every part of the protocol through the server
class, its middleware and its transports.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    ClientCapabilities,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    MissingRequiredClientCapabilityErrorData,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import Field

MOMENT_S = 0.05
"""How long the suite wants its tools to take between two signs of life."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


RED_DOT = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
SILENCE = b"RIFF" + struct.pack("<I4s4sIHHIIHH4sI", 36, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", 0)
IMAGE = ImageContent(type="image", data=base64.b64encode(RED_DOT).decode(), mime_type="image/png")
AUDIO = AudioContent(type="audio", data=base64.b64encode(SILENCE).decode(), mime_type="audio/wav")

NUMBERED_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SCHEMA_TOOL = Tool(
    name="json_schema_2020_12_tool", description="Tool with JSON Schema 2020-12 features", input_schema=NUMBERED_SCHEMA
)
"""Listed as it is: what a schema says must reach the client unchanged."""


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def add_to(server: MCPServer[None]) -> None:
    """Add all of them to a server."""
    for tool in _TOOLS:
        server.add_tool(tool, description=tool.__doc__, structured_output=False)
    _add_prompts(server)
    _add_resources(server)
    # What it says to the suite's clients is at every level; it is asked for all the same.
    server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)


async def _set_level(_: Any, __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


# ---- tools


def greet(name: str) -> str:
    """Answers at once, also where others become tasks."""
    return f"Hello, {name}!"


def test_simple_text() -> str:
    """Text."""
    return "This is a simple text response for testing."


def test_image_content() -> list[Any]:
    """A picture."""
    return [IMAGE]


def test_audio_content() -> list[Any]:
    """A sound."""
    return [AUDIO]


def test_embedded_resource() -> list[Any]:
    """A resource within the result."""
    return [_embedded("test://embedded-resource", "This is an embedded resource content.")]


def test_multiple_content_types() -> list[Any]:
    """Text, a picture and a resource."""
    data = '{"test":"data","value":123}'
    return [
        TextContent(type="text", text="Multiple content types test:"),
        IMAGE,
        _embedded("test://mixed-content-resource", data, "application/json"),
    ]


async def test_tool_with_logging(context: Context[None, Any]) -> str:
    """Says what it does."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await anyio.sleep(MOMENT_S)
    return "logged"


async def test_logging_tool(context: Context[None, Any]) -> str:
    """Logs for those who asked for it."""
    await context.session.send_log_message("info", "a line", related_request_id=context.request_id)
    return "logged"


def test_error_handling() -> CallToolResult:
    """Fails."""
    said = "This tool intentionally returns an error for testing"
    return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)


async def test_tool_with_progress(context: Context[None, Any]) -> str:
    """Tells how far it is."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
        await anyio.sleep(MOMENT_S)
    return "done"


async def test_sampling(prompt: str, context: Context[None, Any]) -> str:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    result = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    content = result.content
    return f"LLM response: {content.text if isinstance(content, TextContent) else content}"


async def _elicited(context: Context[None, Any], message: str, properties: dict[str, Any], *required: str) -> str:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    result = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return f"action={result.action}, content={result.content}"


async def test_elicitation(message: str, context: Context[None, Any]) -> str:
    """Asks for two texts."""
    text = {"type": "string", "description": "User's response"}
    return await _elicited(context, message, {"username": text, "email": text}, "username", "email")


async def test_elicitation_sep1034_defaults(context: Context[None, Any]) -> str:
    """Asks with a default of every primitive type."""
    return await _elicited(
        context,
        "Is this right?",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


async def test_elicitation_sep1330_enums(context: Context[None, Any]) -> str:
    """Asks with every form of an enum."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    return await _elicited(
        context,
        "Which?",
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["a", "b", "c"], "enumNames": ["A", "B", "C"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    )


async def test_reconnection(context: Context[None, Any]) -> str:
    """Closes its stream in the middle of the call."""
    await context.close_sse_stream()
    return "reconnected"


def test_missing_capability(context: Context[None, Any]) -> str:
    """Needs a client that samples."""
    said = context.client_capabilities
    if said is None or said.sampling is None:
        needed = ClientCapabilities(sampling=SamplingCapability())
        data = MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool needs a client with the capability sampling",
            data=data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
    return "it samples"


Header = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Value"})]


def test_custom_headers(value: Header) -> str:
    """Takes an argument that is a header too."""
    return value


_TOOLS: tuple[Callable[..., Any], ...] = (
    greet,
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_logging_tool,
    test_error_handling,
    test_tool_with_progress,
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_reconnection,
    test_missing_capability,
    test_custom_headers,
)


# ---- prompts and resources


def _add_prompts(server: MCPServer[None]) -> None:
    @server.prompt(description="A plain one.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="With arguments.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="With a resource.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
        embedded = _embedded(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt(description="With a picture.")
    def test_prompt_with_image() -> list[Message]:
        return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]


def complete(value: str) -> Completion:
    """What an argument of these prompts could become."""
    return Completion(values=[word for word in ("paris", "park", "party", "testing") if word.startswith(value)])


def _add_resources(server: MCPServer[None]) -> None:
    text = "This is the content of the static text resource."
    server.add_resource(
        TextResource(uri="test://static-text", name="text", description="Text", mime_type="text/plain", text=text)
    )
    server.add_resource(
        TextResource(uri="test://watched-resource", name="watched", description="Watched", text="as ever")
    )

    @server.resource("test://static-binary", name="picture", description="A picture", mime_type="image/png")
    def static_binary() -> bytes:
        return RED_DOT

    @server.resource("test://template/{id}/data", name="data", description="By id", mime_type="application/json")
    def templated(id: str) -> str:
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'
