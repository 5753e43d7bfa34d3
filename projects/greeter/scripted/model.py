"""What a model would say here: rules instead of a model, so that the example runs without a key."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["reply"]


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Greet whoever gives a name, in the tone of the instructions."""
    said = " ".join(block["text"] for message in request["messages"] for block in message["content"])
    name = re.search(r"(?:I am|my name is) (\w+)", said, re.IGNORECASE)
    if name is None:
        return {"text": "Hello! Who are you?"}
    formal = "Your tone is formal" in request["system"]
    return {"text": f"Good day, {name[1]}." if formal else f"Hi {name[1]}, good to see you!"}
