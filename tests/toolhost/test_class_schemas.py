"""What the classes of a module describe."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jsonschema
import pytest

from tests.toolhost.conftest import Serve, write

pytestmark = pytest.mark.anyio

SCHEMAS = """
from __future__ import annotations
from dataclasses import dataclass
from typing import NotRequired, TypedDict
from pydantic import BaseModel, Field
from pydantic import ConfigDict
from helper import MOST

class Deck(BaseModel):
    "A deck."
    name: str = Field(pattern="^[a-z]+$", description="its name")
    pages: int = Field(default=1, ge=1, le=MOST)

class Tree(BaseModel):
    below: list[Tree] = []

@dataclass
class Point:
    x: float
    y: float = 0.0

class Film(TypedDict):
    title: str
    year: NotRequired[int]

class Plain: ...

class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    plain: Plain

class Endless(BaseModel):
    n: float = float("nan")

_Hidden = Deck
"""


@pytest.mark.proves("TOOLHOST-CLASSES")
async def test_models_dataclasses_and_typed_dicts_are_schemas(serve: Serve, tmp_path: Path) -> None:
    files = {"schemas.py": SCHEMAS, "helper.py": "MOST = 600\n"}
    found = await serve(files).schemas("schemas.py")
    assert found.error is None
    assert {"Deck", "Tree", "Point", "Film"} <= set(found.schemas) and "_Hidden" not in found.schemas
    for schema in found.schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert found.schemas["Deck"]["properties"]["pages"]["maximum"] == 600
    assert found.schemas["Deck"]["properties"]["name"]["description"] == "its name"
    for name, good, bad in (
        ("Point", {"x": 1}, {"y": 1}),
        ("Film", {"title": "M"}, {"title": "M", "year": "x"}),
        ("Tree", {"below": [{"below": []}]}, {"below": [{"below": 1}]}),
    ):
        validator = jsonschema.Draft202012Validator(found.schemas[name])
        assert validator.is_valid(good) and not validator.is_valid(bad)
    assert found.broken["Plain"] == "it is no pydantic model, dataclass or TypedDict"
    assert "pydantic cannot describe it" in found.broken["Odd"] and "\n" not in found.broken["Odd"]
    assert found.files == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("schemas.py", "helper.py")
    }


@pytest.mark.proves("TOOLHOST-CLASSES", "A057")
async def test_a_module_that_cannot_be_imported_says_where(serve: Serve) -> None:
    host = serve({"schemas.py": "import os\nos._exit(3)\n", "bad.py": "x = 1\nraise ValueError('no')\n"})
    assert (await host.schemas("schemas.py")).error == (
        "schemas.py: the tool host ended while it was imported (exit status 3); "
        "it is tried again once its code has changed"
    )
    assert (await host.schemas("bad.py")).error == "bad.py:2: ValueError: no"
    assert (await host.schemas("none.py")).error == "none.py: no such file"


@pytest.mark.proves("TOOLHOST-CLASSES")
async def test_classes_are_those_of_the_files_as_they_are_now(serve: Serve, tmp_path: Path) -> None:
    host = serve({"schemas.py": SCHEMAS, "helper.py": "MOST = 600\n"})
    await host.schemas("schemas.py")
    write(tmp_path, {"helper.py": "MOST = 700\n"})
    again = await host.schemas("schemas.py")
    assert again.schemas["Deck"]["properties"]["pages"]["maximum"] == 700
