"""What a template can see: its variables, and the folders that it includes from. Rendering itself is `render`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.paths import join

_JINJA = re.compile(r"\{\{|\{%|\{#")


def has_jinja(text: str) -> bool:
    """Whether a text is a template at all; one without Jinja's marks is used as it stands."""
    return _JINJA.search(text) is not None


def variables(worker: Worker, value: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The variables of a call: `input`, the fields of an input that is a mapping, and the parameters.

    The function `file` is never hidden: a field of that name is `input.file`.

    Raises:
        InvalidInput: A parameter that is missing or not known, or two variables of one name.
    """
    given = dict(params or {})
    for name in given:
        if name not in worker.params:
            raise InvalidInput(f"worker {worker.id}: unknown parameter {quoted(name)}; {nearest(name, worker.params)}")
    values = {**worker.params, **given}
    if missing := [name for name, default in worker.params.items() if default is None and name not in given]:
        raise InvalidInput(f"worker {worker.id}: parameter {missing[0]!r} is missing")
    fields = {name: field for name, field in value.items() if name != "file"} if isinstance(value, Mapping) else {}
    for name in fields:
        if name == "input" or name in values:
            kind = "the input itself" if name == "input" else "a parameter"
            raise InvalidInput(
                f"worker {worker.id}: the input's field {quoted(name)} has the name of {kind}; rename it"
            )
    return {**fields, **values, "input": value}


def folders(worker: Worker, manifest: Manifest) -> list[tuple[str, bool]]:
    """Where includes and `file()` look, in order, each with whether a computed name may lead there.

    A name that a template computes may come from a caller, so it reaches only what was made to be included.
    """
    own = [(join(worker.folder, "templates"), True), (worker.folder, False)] if worker.folder is not None else []
    return [*own, ("templates", True), (manifest.prompts.root, True), (manifest.workers.root, False)]
