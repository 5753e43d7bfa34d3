"""What the stages hand to one another."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Page(BaseModel):
    """A page to look at, and what for."""

    topic: str
    url: str = Field(pattern="^https?://")


class Extraction(BaseModel):
    """What one page says."""

    url: str
    points: list[str] = Field(max_length=5)
    confidence: float = Field(ge=0, le=1)


class Extractions(BaseModel):
    """What all pages say."""

    topic: str
    extractions: list[Extraction]


class Claim(BaseModel):
    """One thing that is said, and where."""

    text: str
    url: str


class Consolidated(BaseModel):
    """What is said on a topic."""

    topic: str
    claims: list[Claim]


class Report(BaseModel):
    """The report, for people and for programs."""

    markdown: str
    sources: list[str]
