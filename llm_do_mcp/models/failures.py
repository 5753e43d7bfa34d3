"""What went wrong with a model, in one line that names the worker, the model and what to do.

The SDK's errors carry JSON bodies, documentation links and advice for programmers. A person who called a worker
needs to know which of three things to change: the key, the model's name, or the patience.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do_mcp.errors import ModelError, ModelUnavailable
from llm_do_mcp.models import address

if TYPE_CHECKING:
    import anthropic

    from llm_do_mcp.models.turn import Request

NO_KEY = (
    "no key for a model was found",
    "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL to a local server that speaks the Messages API, "
    "or name the model sampling in an MCP client that lends its own",
)

_LONGEST_MESSAGE = 300

# The request itself is at fault: another model of a fallback chain would not help.
_REQUESTS_FAULT = {400, 413, 422}

_PASSING = {429, 500, 529}

_WHAT_TO_DO = {
    400: "change what it names in the worker or its input",
    401: "set ANTHROPIC_API_KEY to a valid key",
    402: "check the account's credit",
    403: "use a key that may use this model, or name another model",
    404: "name a model that the server has: `model` in the worker or project.yaml, LLM_DO_MODEL or --model",
    413: "send fewer or smaller attachments",
    422: "change what it names in the worker or its input",
    429: "try again later, or call fewer workers at once",
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""The statuses of errors by their types: in the middle of a stream one comes under the 200 that it began with."""
_TOO_LONG = "prompt is too long"
LESS = "give it less to read, or name a model with a larger context"
_SERVERS_FAULT = "try again later"
_ANOTHER = ", or name a second model after it"

ELSEWHERE = "llm_do_elsewhere"
"""The extension of a response in which the address stands that it would have sent the request to."""


def failure(request: Request, what: str, to_do: str) -> ModelError:
    """A request that no model can serve."""
    return ModelError(_line(request, what, to_do))


def unavailable(request: Request, what: str, to_do: str) -> ModelUnavailable:
    """A model that did not serve a request which another one may serve."""
    return ModelUnavailable(_line(request, what, to_do))


def _line(request: Request, what: str, to_do: str) -> str:
    return f"worker {request.worker}: model {_one_line(request.model)}: {_one_line(what)}; {to_do}"


def _one_line(text: str) -> str:
    """A stranger's text as part of a line of ours: no line breaks, no control characters, not too long."""
    clean = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return clean if len(clean) <= _LONGEST_MESSAGE else clean[:_LONGEST_MESSAGE] + "…"


def explained(request: Request, error: Exception, where: str, base_url: str | None) -> ModelError:
    """What the SDK raised, as an error of ours.

    Args:
        request: What was asked.
        error: What was raised instead of an answer.
        where: The server's address, as it may be shown.
        base_url: As the project gives it; None where it gives none.
    """
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        if _status(error) == 401 and address.is_foreign(base_url):
            what = f"{where} wants a key, and yours is not sent to an address that a project names"
            return unavailable(request, what, "set ANTHROPIC_BASE_URL to it")
        return _of_status(request, error, where, base_url)
    if isinstance(error, anthropic.APITimeoutError):
        return unavailable(request, f"no answer from {where}", "try again later")
    if isinstance(error, anthropic.APIConnectionError):
        return _of_connection(request, error, where, base_url)
    return failure(request, f"the request could not be sent: {error}", "change what it names")


def broke_off(error: Exception) -> bool:
    """Whether the SDK raised an error of the server's that came in the middle of an answer, and that may pass."""
    import anthropic

    return isinstance(error, anthropic.APIStatusError) and error.status_code < 300 and _status(error) in _PASSING


def _status(error: anthropic.APIStatusError) -> int:
    return error.status_code if error.status_code >= 300 else _STATUS.get(str(error.type), 500)


def _of_status(request: Request, error: anthropic.APIStatusError, where: str, base_url: str | None) -> ModelError:
    """The server answered with an error status, or sends the request elsewhere."""
    status = _status(error)
    elsewhere = error.response.extensions.get(ELSEWHERE)
    if elsewhere is not None:
        what = f"{where} sends to {shown_address(elsewhere)}, and nothing is sent to an address that you did not set"
        return unavailable(request, what, f"correct {address.named_by(base_url)}")
    # A body without the API's error object comes from something else that listens there: a proxy, a web server.
    said = error.api_message if isinstance(error.api_message, str) else None
    what = f"{status} {error.type or 'error'}: {said}" if said else f"{status}: no reason given"
    if error.request_id:
        what += f" (request {error.request_id})"
    if said is None and status == 404:
        to_do = f"check that a Messages API server listens at {where} ({address.named_by(base_url)})"
    elif status == 400 and said is not None and _TOO_LONG in said:
        to_do = LESS
    else:
        to_do = _WHAT_TO_DO.get(status, _SERVERS_FAULT)
        if request.alone and (status == 429 or status not in _WHAT_TO_DO):
            to_do += _ANOTHER
    return (failure if status in _REQUESTS_FAULT else unavailable)(request, what, to_do)


def _of_connection(
    request: Request, error: anthropic.APIConnectionError, where: str, base_url: str | None
) -> ModelUnavailable:
    """The server could not be reached, or hung up before it answered."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    # The event loop's own words for a refused connection leave out the one that people know.
    refused = isinstance(cause, ConnectionRefusedError)
    reason = "connection refused" if refused else str(cause) or type(cause).__name__
    to_do = f"check the network and {address.named_by(base_url)}, then try again"
    return unavailable(request, f"no connection to {where}: {reason}", to_do)


def shown_address(url: str) -> str:
    """An address without the password and the query that some people keep in it."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}".rstrip("/")
