"""Of what form a recording's file is, so far as a replay relies on it.

It is a file of the project: whatever an editor or a merge has made of it is found here, and told as what is wrong with
the file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, Strict, model_validator

from llm_do_mcp.project.checked import Checked, Text, Texts
from llm_do_mcp.runtime.store import State
from llm_do_mcp.sandbox.names import components

FORMAT = 1
DEFINITION = "definition"


def _path_of_file(text: str) -> str:
    components(text)
    return text


def _encodable(text: str) -> str:
    text.encode()
    return text


FilePath = Annotated[Text, AfterValidator(_path_of_file)]
Name = Annotated[Text, Field(min_length=1), AfterValidator(_encodable)]
Tokens = Annotated[int, Strict(), Field(ge=0)]


class _Attachment(Checked):
    name: Text
    media_type: Text
    blob: Text
    size: int


class _Function(Checked):
    shown: Text


class DefinitionForm(Checked):
    """Of a definition what a replay compares: the rest is long, and names folders of the machine of the run."""

    instructions: Text
    system_context: Texts
    context: Texts
    prompt: Text
    attachments: tuple[_Attachment, ...]
    functions: tuple[_Function, ...]


TEXTS = {"text": ("text",), "tool_use": ("id", "name")}
"""What has to be text in which blocks of a reply; of the others anything is sent back as it is."""


class _Block(BaseModel, extra="allow"):
    type: Text

    @model_validator(mode="after")
    def _of_its_type(self) -> _Block:
        for name in TEXTS.get(self.type, ()):
            if not isinstance((self.model_extra or {}).get(name), str):
                raise ValueError(f"{name} is no text")
        return self


class _Usage(BaseModel):
    input_tokens: Tokens
    output_tokens: Tokens


class _Turn(BaseModel):
    """A model's turn."""

    content: tuple[_Block, ...]
    stop_reason: Text
    model: Text
    usage: _Usage


class _Unanswered(BaseModel):
    """A turn that no model answered."""

    error: Text


class _Answer(BaseModel):
    by: Text
    note: Text


class _Answered(BaseModel):
    """A question that has its answer."""

    answer: _Answer


_FORMS: dict[tuple[str, str], type[BaseModel]] = {
    ("model", "done"): _Turn,
    ("model", "failed"): _Unanswered,
    ("ask", "answered"): _Answered,
}
"""Of what form the data of an event is, by its kind and state; that of others may be anything."""


class _Event(Checked):
    """As `store.Event`."""

    key: Name
    kind: Name
    digest: Annotated[Text, AfterValidator(_encodable)]
    state: State
    data: Any
    started: float
    ended: float | None = None

    @model_validator(mode="after")
    def _of_its_kind(self) -> _Event:
        form = DefinitionForm if self.kind == DEFINITION else _FORMS.get((self.kind, self.state))
        if form is not None:
            form.model_validate(self.data)
        return self


class RecordingForm(Checked):
    """A recording. `created` are the files of the project that the run made, as paths in it."""

    format: Literal[1]
    run: Name
    created: tuple[FilePath, ...] = ()
    events: Annotated[tuple[_Event, ...], Field(min_length=1)]
