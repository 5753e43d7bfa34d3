"""What an approval of a worker's call is bound to: one hash of all that makes the worker what it is.

That is the worker as it takes effect (its file with the manifest merged in, its schemas resolved) and every file that
its templates could include. When any of these changes, what was approved holds no longer; nothing else ends it. Left
out are the model, which whoever starts a worker may choose, and where its folders lie on this machine: the settings
that name them are in, so the hash is the same on every machine. The code of tools has hashes of its own. What stands
at its default counts for nothing, so that a key which a later version adds changes no hash.
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

_LEFT_OUT = ("model", "roots", "network_enabled")
"""Fields that do not count, or follow from `sandbox`."""


def code_hash(worker: Worker, included: Mapping[str, str]) -> str:
    """The hash of a worker, SHA-256 in hexadecimal.

    Args:
        worker: The worker.
        included: The files that its templates could include, with hashes of their own; see `Rendered.included`.
    """
    fields = [field.name for field in dataclasses.fields(worker) if field.name not in _LEFT_OUT]
    parts = {name: part for name in fields if (part := _plain(getattr(worker, name)))}
    text = json.dumps([parts, dict(included)], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    match value:
        case Template():
            return value.text
        case BaseModel():
            return value.model_dump(mode="json", exclude_defaults=True)
        case tuple() | list():
            return [_plain(part) for part in value]
        case Mapping():
            return {key: _plain(part) for key, part in value.items()}
    return value
