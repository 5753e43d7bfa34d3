"""The README lists every key that there is, and none that is not; its links lead somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import pytest
import yaml

from llm_do_mcp.project.checked import Checked
from llm_do_mcp.project.library import LibraryManifest
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.settings import Toolset, Toolsets
from llm_do_mcp.project.worker import WorkerFile
from tests.examples.scripts import REPOSITORY
from tests.readme.document import TEXT, blocks, keys

BOTH = "### Keys of a worker and of the manifest"
ANY_NAME = "*"
Shape = dict[str, Any]
"""Key → what may stand below it: a shape, or None. A name that the author chooses is `*`."""


@pytest.mark.proves("README-KEYS")
@pytest.mark.parametrize(
    ("model", "headings"),
    [
        (WorkerFile, (BOTH, "### More keys of a worker")),
        (Manifest, (BOTH, "### More keys of the manifest")),
        (LibraryManifest, ("| key of `lib.yaml` |",)),
    ],
)
def test_the_keys_that_are_listed_are_those_that_there_are(model: type[Checked], headings: tuple[str, ...]) -> None:
    listed: Shape = {}
    for heading in headings:
        for key in keys(heading):
            _lay_over(listed, _written(key))
    assert listed == _of_model(model)


def _written(key: str) -> Shape:
    """A key as the table has it: `name`, `limits: {max_cost}`, `sandbox.network_enabled`."""
    path, _, below = key.partition(": ")
    shape: Any = _shape(yaml.safe_load(below)) if below else None
    for part in reversed(path.split(".")):
        shape = {ANY_NAME if part.isupper() else part: shape}
    return dict(shape)


def _shape(value: Any) -> Shape | None:
    match value:
        case [one]:
            return _shape(one)
        case Mapping():
            return {ANY_NAME if name.isupper() else name: _shape(below) for name, below in value.items()}
        case _:
            return None


def _lay_over(below: Shape, above: Shape) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _lay_over(below[key], value)
        else:
            below[key] = value if value is not None else below.get(key)


def _of_model(model: type[Checked]) -> Shape:
    """The shape that a model takes. What every toolset takes stands once, below a toolset of any name."""
    shape: Shape = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        if not (issubclass(model, Toolset) and model is not Toolset and name in Toolset.model_fields):
            shape[key] = _of_type(field.annotation)
    if model is Toolsets:
        shape[ANY_NAME] = _of_model(Toolset)
        return {name: None if below == shape[ANY_NAME] and name != ANY_NAME else below for name, below in shape.items()}
    return shape


def _of_type(annotation: Any) -> Shape | None:
    """The shape below a key: of the model in its type, or of those that a mapping has under any name."""
    if isinstance(annotation, type) and issubclass(annotation, Checked):
        return _of_model(annotation)
    inner = [_of_type(each) for each in get_args(annotation)[: 1 if get_origin(annotation) is Annotated else None]]
    found = next((shape for shape in inner if shape is not None), None)
    return {ANY_NAME: found} if found is not None and get_origin(annotation) is dict else found


@pytest.mark.proves("README-SNIPPETS")
def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {block.language for block in blocks()} == {"console", "yaml", "python", "toml"}


@pytest.mark.proves("README-SNIPPETS")
def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in link]
    anchors = {
        f"#{heading.lower().replace(' ', '-')}" for heading in re.findall(r"^##+ ([\w -]+)$", TEXT, re.MULTILINE)
    }
    assert links and [link for link in links if link not in anchors and not os.path.exists(REPOSITORY / link)] == []
