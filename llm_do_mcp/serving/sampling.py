"""Turns that the client's model answers, and what comes back from it.

The same in both protocol eras: a turn becomes a `sampling/createMessage`, which is sent in the middle of the call in
the handshake revisions (and outlives that call, as its dialogs do), and is part of a round in 2026-07-28. A client that
cannot do what a turn needs is not asked; what comes back is held to the form of a reply before the worker sees it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ImageContent,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    SamplingMessageContentBlock,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models.attachments import IMAGES, as_text
from llm_do_mcp.models.failures import failure, unavailable
from llm_do_mcp.models.sampling import MOST_TOKENS, hint
from llm_do_mcp.models.turn import Block, Reply, Request, Usage
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.serving import back
from llm_do_mcp.serving.connection import MODERN

Sampled = CreateMessageResult | CreateMessageResultWithTools

_STOPPED = {"maxTokens": "max_tokens", "toolUse": "tool_use"}
_OTHER = "name another model in the worker or project.yaml, LLM_DO_MODEL or --model"


class Sampling:
    """The turns that clients are asked to answer, of all runs.

    Args:
        engine: Has the turns and takes the replies.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: dict[str, dict[str, asyncio.Task[None]]] = {}

    def of(self, run: str) -> Collection[str]:
        """The keys of a run's turns that a client of the handshake era is answering."""
        return self._asked.get(run, {}).keys()

    def put(
        self, run: str, turns: Mapping[str, Request], context: Context[None, Any]
    ) -> dict[str, CreateMessageRequestParams]:
        """Put turns to the client of a call, or refuse them where it cannot answer.

        Returns:
            What a client of the 2026-07-28 revision is to be sent with the round.
        """
        carried: dict[str, CreateMessageRequestParams] = {}
        for key, request in turns.items():
            try:
                _check_client(request, context)
                params = params_of(request)
            except ModelError as error:
                self._engine.sampled(run, key, error)
                continue
            if context.protocol_version == MODERN:
                carried[key] = params
            else:
                self._ask(run, key, request, params, context)
        return carried

    async def answered(self, run: str, key: str, result: Any) -> bool:
        """Take what a client brought for a turn; one that came too late, or that nobody asked for, is dropped.

        Returns:
            Whether that was for a turn.
        """
        is_turn = isinstance(result, Sampled)
        request = await self._engine.sample(run, key, comes=is_turn)
        if request is None:
            return is_turn
        if is_turn:
            self._engine.sampled(run, key, _checked(request, result))
        else:
            self._engine.sampled(run, key, _unusable(request))
        return True

    def _ask(
        self, run: str, key: str, request: Request, params: CreateMessageRequestParams, context: Context[None, Any]
    ) -> None:
        asked = self._asked.setdefault(run, {})

        def closed(_: asyncio.Task[None]) -> None:
            del asked[key]
            if not asked:
                self._asked.pop(run, None)
            self._engine.nudge(run)

        async def hold() -> None:
            reply = asyncio.create_task(_ask(request, params, context))
            unwanted = asyncio.create_task(self._engine.unwanted(run, key))
            try:
                await asyncio.wait((reply, unwanted), return_when=asyncio.FIRST_COMPLETED)
                if reply.done():
                    self._engine.sampled(run, key, reply.result())
            finally:
                reply.cancel()  # the client is told that its answer is no longer wanted
                unwanted.cancel()

        asked[key] = task = asyncio.create_task(hold())
        task.add_done_callback(closed)


async def _ask(request: Request, params: CreateMessageRequestParams, context: Context[None, Any]) -> Reply | ModelError:
    asked = CreateMessageRequest(params=params)
    try:
        # That one also holds an array of blocks, which a turn without tools may come in too.
        return _checked(request, await back.ask(context, asked, CreateMessageResultWithTools))
    except MCPError as error:
        return unavailable(request, f"the client did not answer: {error.error.message}", _OTHER)
    except Exception:  # what is no result at all
        return _unusable(request)


# ---- what is asked


def _check_client(request: Request, context: Context[None, Any]) -> None:
    """See that a client can answer a turn.

    Raises:
        ModelUnavailable: It cannot.
    """
    capabilities: ClientCapabilities | None = context.client_capabilities
    can = None if capabilities is None else capabilities.sampling
    if can is None or (context.protocol_version != MODERN and not context.session.can_send_request):
        raise unavailable(request, "this client lends no model (it has no sampling)", _OTHER)
    if request.tools and can.tools is None:
        what = "this client's model cannot be given tools, and the worker has some"
        raise unavailable(request, what, f"use a client with sampling.tools, or {_OTHER}")
    if request.server_side_tools:
        raise unavailable(request, "a client's model has no server_side_tools", _OTHER)


def params_of(request: Request) -> CreateMessageRequestParams:
    """A turn as the protocol has it.

    Raises:
        ModelError: An attachment that cannot be sent.
    """
    system = request.system
    if request.output_schema is not None:
        from llm_do_mcp.models.payload import schema_in_words

        system = f"{system}\n\n{schema_in_words(request.output_schema)}".lstrip()
    wish = hint(request.model)
    return CreateMessageRequestParams(
        messages=[message for asked in request.messages for message in _messages(asked, request)],
        system_prompt=system or None,
        max_tokens=MOST_TOKENS,
        model_preferences=ModelPreferences(hints=[ModelHint(name=wish)]) if wish else None,
        tools=[
            Tool(name=tool.name, description=tool.description, input_schema=dict(tool.input_schema))
            for tool in request.tools
        ]
        or None,
    )


def _messages(message: Mapping[str, Any], request: Request) -> Iterator[SamplingMessage]:
    """A message; results of tools are one of their own, as the protocol wants them."""
    blocks = [made for block in message["content"] if (made := _block(block, request)) is not None]
    results: list[SamplingMessageContentBlock] = [block for block in blocks if isinstance(block, ToolResultContent)]
    others: list[SamplingMessageContentBlock] = [b for b in blocks if not isinstance(b, ToolResultContent)]
    for content in (results, others):
        if content:
            yield SamplingMessage(role=message["role"], content=content)


def _block(block: Block, request: Request) -> SamplingMessageContentBlock | None:
    """A block, or None for one that is only for the model that made it."""
    if block["type"] == "text":
        return TextContent(type="text", text=block["text"]) if block["text"].strip() else None
    if block["type"] == "tool_use":
        return ToolUseContent(type="tool_use", id=block["id"], name=block["name"], input=block["input"])
    if block["type"] == "tool_result":
        text = TextContent(type="text", text=block["content"])
        return ToolResultContent(
            type="tool_result", tool_use_id=block["tool_use_id"], content=[text], is_error=block["is_error"]
        )
    if block["type"] == "attachment":
        return _attachment(block, request)
    return None


def _attachment(block: Block, request: Request) -> SamplingMessageContentBlock:
    name, media_type, data = block["name"], block["media_type"], block["data"]
    if media_type in IMAGES:
        return ImageContent(type="image", data=base64.b64encode(data).decode("ascii"), mime_type=media_type)
    if media_type.startswith("text/"):
        return TextContent(type="text", text=as_text(name, data))
    raise failure(request, f"attachment {name} is {media_type}", "attach PDF, PNG, JPEG, GIF, WebP or text")


# ---- what comes back


def _unusable(request: Request) -> ModelError:
    return unavailable(request, "the client's answer is unusable: it is no turn of a model", _OTHER)


def _checked(request: Request, result: Sampled) -> Reply | ModelError:
    """A client's result as a reply, or what is wrong with it."""
    given = result.content if isinstance(result.content, list) else [result.content]
    content: list[Block] = []
    seen: set[str] = set()
    for block in given:
        if isinstance(block, TextContent):
            content.append({"type": "text", "text": block.text})
        elif isinstance(block, ToolUseContent) and request.tools and block.id and block.id not in seen:
            seen.add(block.id)
            content.append({"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)})
        else:
            what = (
                "a call without an id of its own" if isinstance(block, ToolUseContent) and request.tools else block.type
            )
            return unavailable(request, f"the client answered with {what}, which is no part of a turn", _OTHER)
    if result.role != "assistant":
        return unavailable(request, f"the client answered as {result.role}", _OTHER)
    stopped = _STOPPED.get(result.stop_reason or "", "tool_use" if seen else "end_turn")
    return Reply(tuple(content), stopped, Usage(), cut(escape(result.model), 100))
