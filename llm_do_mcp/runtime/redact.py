"""Secrets, kept out of what people and logs are shown.

What counts as a secret: what the manifest's `redact` patterns match (regular expressions), the value of every
environment variable whose name holds KEY, TOKEN, SECRET or PASSWORD, the value of every variable that the manifest
hands to the project's Python (`tools.env`), what ANTHROPIC_CUSTOM_HEADERS adds to requests (words of 8 characters or
more; of a header whose name says nothing of the kind, those that are no plain words), and the password in an address (a
variable's, or `base_url`), also as the header that is made of it. Values shorter than 4 characters are left alone, and
those shorter than 8 are replaced only where they stand as a word of their own: text would be unreadable otherwise. A
value is found as it is, as JSON writes it, and as a URL writes it; of a value with several lines, each line of 8
characters or more counts. Other encodings of a secret (base64, a hash, one cut in two by whoever wrote it) are not
found.

Whoever looks at a run later may not have the environment that it ran in. So a run's record names the secrets that it
holds itself, and nothing that it does not hold: see `Redactor.held`.

Where it is applied, always before a text is cut: progress, questions, the error a run ends with, the account, traces
in each form, lines of `LLM_DO_DEBUG`, the log, and the one line a command fails with. Untouched is what does the work:
what a model is sent and answers, what functions are given and give, a run's output, files, the journal itself (a
resumed run needs it as it was, and it is private to the user). What the project's Python itself writes to standard
error does not pass through here.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote

from llm_do_mcp.models.address import HEADERS, custom_headers

if TYPE_CHECKING:
    from llm_do_mcp.project.manifest import Manifest

NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""An environment variable with one of these in its name holds a secret."""
SHORTEST = 4
WORD_BELOW = 8
"""A secret with fewer characters is only found where it is a whole word."""
_USER = re.compile(r"://([^/?#\s]+)@")


class Redactor:
    """Replaces secrets in text.

    Args:
        secrets: name → value; the name stands where the value was.
        patterns: Regular expressions; what they match is replaced.
        known: value → name of further secrets, as `held` gives them.
    """

    def __init__(
        self,
        secrets: Mapping[str, str],
        patterns: Iterable[re.Pattern[str]] = (),
        known: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._values = {**known, **{part: name for name, value in secrets.items() for part in _parts(value)}}
        self._forms = {part: _forms(part) for part in self._values}
        self._names = {form: self._values[part] for part, forms in self._forms.items() for form in forms}
        # The longest first: of two secrets of which one begins with the other, the whole of it goes.
        found = "|".join(_expression(form) for form in sorted(self._names, key=len, reverse=True))
        self._secrets = re.compile(found) if found else None
        # One that matches nothing at some place must not put its mark between all characters: see `text`.
        self._patterns = tuple(patterns)

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._secrets is not None:
            text = self._secrets.sub(lambda match: f"[redacted {self._names[match[0]]}]", text)
        for pattern in self._patterns:
            text = pattern.sub(lambda match: "[redacted]" if match[0] else "", text)
        return text

    def data(self, value: Any) -> Any:
        """JSON without secrets, in names as in values."""
        if self._secrets is None and not self._patterns:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.data(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value

    def held(self, value: Any) -> dict[str, str]:
        """The secrets (value → name) that JSON holds, in any spelling."""
        texts = tuple(_texts(value)) if self._values else ()
        return {
            part: self._values[part]
            for part, forms in self._forms.items()
            if any(form in text for form in forms for text in texts)
        }

    def knowing(self, secrets: Mapping[str, str]) -> Redactor:
        """The same, with the secrets that a record holds."""
        return Redactor({}, self._patterns, {**secrets, **self._values}) if secrets else self

    def filter(self, record: logging.LogRecord) -> bool:
        """As a filter of a log handler: every line without secrets, tracebacks included."""
        record.msg, record.args = self.text(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self.text(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


NOTHING = Redactor({})
"""Leaves everything as it is."""


def redactor(environment: Mapping[str, str], manifest: Manifest | None = None) -> Redactor:
    """What keeps the secrets of an environment and a project out of sight.

    Args:
        environment: `os.environ`.
        manifest: For its `redact`, `tools.env` and `base_url`; None where no project is at hand.
    """
    handed = set(manifest.tools.env) if manifest is not None else set()
    secrets = {
        name: value
        for name, value in environment.items()
        if name in handed or any(part in name.upper() for part in NAMES)
    }
    addresses = dict(environment)
    if manifest is not None and manifest.base_url is not None:
        addresses["base_url"] = manifest.base_url
    patterns = map(re.compile, manifest.redact if manifest is not None else ())
    return Redactor(secrets, patterns, {**_sent_along(environment), **_in_addresses(addresses)})


def _sent_along(environment: Mapping[str, str]) -> dict[str, str]:
    """What is secret of the headers that the environment adds to requests: words, since `Bearer` in front is none."""
    return {
        word: HEADERS
        for name, value in custom_headers(environment).items()
        for word in value.split()
        if len(word) >= WORD_BELOW and (any(part in name.upper() for part in (*NAMES, "AUTH")) or not word.isalpha())
    }


def _in_addresses(values: Mapping[str, str]) -> dict[str, str]:
    """The passwords in addresses (name → address), and what is sent in a header in their place."""
    found = {}
    for name, value in values.items():
        for match in _USER.finditer(value):
            user, colon, password = map(unquote, match[1].partition(":"))
            if colon and len(password) >= SHORTEST:
                found[password] = name
                found[base64.b64encode(f"{user}:{password}".encode()).decode()] = name
    return found


def guard_log(current: Callable[[], Redactor]) -> None:
    """Keep secrets out of all that this process logs, whichever library does: the SDKs log errors with their text.

    Args:
        current: Gives what keeps them out at that moment.
    """
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler is not None:
            handler.addFilter(lambda record: current().filter(record))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from map(str, value)
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _parts(value: str) -> set[str]:
    lines = {line.strip() for line in value.splitlines()}
    whole = value.strip()
    return {part for part in lines if len(part) >= WORD_BELOW} | ({whole} if len(whole) >= SHORTEST else set())


def _forms(secret: str) -> set[str]:
    quoted = {json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
    return {secret, *quoted, quote(secret, safe=""), quote_plus(secret)}


def _expression(form: str) -> str:
    exact = re.escape(form)
    return exact if len(form) >= WORD_BELOW else rf"(?<!\w){exact}(?!\w)"
