"""What an approval of a worker's call is bound to: one hash of all that makes the worker what it is.

That is the worker as it takes effect (its file with the manifest merged in, its schemas resolved, a library's with what
the project grants it) and every file that its templates could include, in its project and in libraries. When any of
these changes, what was approved holds no longer; nothing else ends it. Left out are the model, which whoever starts a
worker may choose, and where its folders lie on this machine: the settings that name them are in, so the hash is the
same on every machine. The code of tools has hashes of its own. What stands at its default counts for nothing, so that a
key which a later version adds changes no hash.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.worker import Template
from llm_do_mcp.sandbox.root import Root

_LEFT_OUT = {Worker: ("model",), Root: ("path", "protected", "hidden")}


def code_hash(worker: Worker, included: Mapping[str, str]) -> str:
    """The hash of a worker, SHA-256 in hexadecimal.

    Args:
        worker: The worker.
        included: The files that its templates could include, with hashes of their own; see `Rendered.included`.
    """
    text = json.dumps([_plain(worker), dict(included)], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    match value:
        case Template():
            return value.text
        case BaseModel():
            return value.model_dump(mode="json", exclude_defaults=True)
        case Worker() | Root():
            fields = (field for field in dataclasses.fields(value) if field.name not in _LEFT_OUT[type(value)])
            parts = ((field, getattr(value, field.name)) for field in fields)
            return {field.name: _plain(part) for field, part in parts if part != _default(field)}
        case tuple() | list():
            return [_plain(part) for part in value]
        case Mapping():
            return {key: _plain(part) for key, part in value.items()}
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
