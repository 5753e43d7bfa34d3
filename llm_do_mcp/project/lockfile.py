"""The form of `approvals.lock`; `runtime/lock.py` says what it means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from llm_do_mcp.project.checked import Checked, Text
from llm_do_mcp.project.settings import NotNegative


class LockedArgument(Checked):
    """How one argument has to be: exactly a text, exactly a JSON value, a text or value by its digest, or a pattern."""

    is_: Text | None = Field(None, alias="is")
    json_: Text | None = Field(None, alias="json")
    sha256: Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$")] | None = None
    characters: NotNegative | None = None
    like: Text | None = None

    @model_validator(mode="after")
    def _one_form(self) -> LockedArgument:
        given = self.model_fields_set
        if given not in ({"is_"}, {"json_"}, {"like"}, {"sha256", "characters"}) or None in self.plain().values():
            raise ValueError("must be one of {is: text}, {json: text}, {like: glob}, {sha256: hex, characters: number}")
        return self

    def plain(self) -> dict[str, Any]:
        """As it stands in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class LockedCall(Checked):
    """One approval."""

    worker: Text
    worker_code: Text = ""
    function: Text
    function_code: Text = ""
    arguments: dict[Text, LockedArgument]


class LockFile(Checked):
    """The whole file."""

    version: Literal[1]
    approvals: tuple[LockedCall, ...]
