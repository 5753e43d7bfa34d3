"""What the stages hand to one another."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Question(BaseModel):
    """One thing to look up."""

    question: str
    word: str = Field(min_length=2)


class Plan(BaseModel):
    """What is looked up, the most useful first."""

    questions: list[Question] = Field(min_length=1, max_length=4)


class Finding(BaseModel):
    """What a source says, and where."""

    claim: str
    quotation: str
    source: str


class Material(BaseModel):
    """What a report is written from."""

    topic: str
    findings: list[Finding]
