"""What a model would do here: it looks for numbers in the question, calls, and says what came back."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["ask", "convert", "measure"]


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`."""
    question = re.search(r'For "(.*)":', request["system"])
    assert question is not None
    numbers = [int(number) for number in re.findall(r"\d+", question[1])]
    if request["turn"] > 0:
        return {"text": f"{question[1]} It is {results(request)[-1]}."}
    if "round" in question[1]:
        return call("rounded", number=float(f"{numbers[0]}.{numbers[1]}"))
    if "circle" in question[1]:
        return call("worker_call", worker="geometry", input_data=f"a circle of radius {numbers[0]}")
    if unit := re.search("inch|foot|mile", question[1]):
        return call("worker_call", worker="units", input_data=f"{numbers[0]} {unit[0]}")
    if "mean" in question[1]:
        return call("mean", numbers=numbers)
    return call("divide", dividend=numbers[0], divisor=numbers[1])


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `geometry`."""
    if request["turn"] == 0:
        said = " ".join(block["text"] for block in request["messages"][0]["content"])
        radius = re.search(r"radius (\d+)", said)
        return call("circle_area", radius=int(radius[1]) if radius else 0)
    return {"text": json.dumps({"shape": "circle", "area": float(results(request)[-1])})}


def convert(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `units`."""
    if request["turn"] > 0:
        return {"text": f"{results(request)[-1]} m"}
    number, unit = request["messages"][0]["content"][-1]["text"].split()
    return call("in_metres", number=float(number), unit=unit)


def call(function: str, **arguments: Any) -> dict[str, Any]:
    """A turn that makes one call."""
    return {"tool_calls": [{"name": function, "input": arguments}]}


def results(request: dict[str, Any]) -> list[str]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]
