"""What a model would do at each stage, from what it is really given: rules instead of judgement."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["lead", "plan", "search", "write"]

HIT = re.compile(r"^(library/[^:\n]+):\d+: (.*)", re.MULTILINE)


def lead(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`."""
    found, topic = results(request), said(request)[-1]
    match request["turn"]:
        case 0:
            return turn(call("worker_call", worker="planner", input_data=topic))
        case 1:
            depth = re.search(r"take the first (\d+)", request["system"])
            questions = json.loads(found[0])["questions"][: int(depth[1]) if depth else 1]
            return turn(
                *(
                    call("worker_call", worker="sources:searcher", input_data=json.dumps(question), expect_json=True)
                    for question in questions
                )
            )
        case 2:
            findings = [finding for one in found[1:] for finding in json.loads(one)["findings"]]
            return turn(call("worker_call", worker="writer", input_data={"topic": topic, "findings": findings}))
        case 3:
            return turn(call("write_file", path="reports/report.md", content=found[-1]))
        case _:
            return {"text": "The report is in reports/report.md."}


def plan(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `planner`: each long word of the question is worth a search."""
    words = re.findall(r"\w{5,}", said(request)[-1].partition(": ")[2])
    return {"text": json.dumps({"questions": [{"question": f"What of {word}?", "word": word} for word in words[:4]]})}


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `sources:searcher`."""
    found = results(request)
    word = json.loads(said(request)[-1])["word"]
    hits = HIT.findall(found[0]) if found else []
    match request["turn"]:
        case 0:
            return turn(call("te", command=f"te grep -n -i '{word}' library"))
        case 1 if hits:
            return turn(*(call("first_sentence", text=text) for _, text in hits))
        case _:
            claims = zip(found[1:], hits, strict=True)
            findings = [{"claim": claim, "quotation": text, "source": source} for claim, (source, text) in claims]
            return {"text": json.dumps({"findings": findings})}


def write(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `writer`."""
    topic = re.search(r"report on (.*) from these findings", request["system"])
    findings = dict.fromkeys(re.findall(r"^- .*", request["system"], re.MULTILINE))
    assert topic is not None
    return {"text": "\n".join([f"# {topic[1]}", "", *(findings or ["Nothing was found."])]) + "\n"}


def said(request: dict[str, Any]) -> list[str]:
    """The texts that the worker was given."""
    return [block["text"] for block in request["messages"][0]["content"] if block["type"] == "text"]


def results(request: dict[str, Any]) -> list[str]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def turn(*calls: dict[str, Any]) -> dict[str, Any]:
    """A turn that makes calls."""
    return {"tool_calls": list(calls)}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "input": arguments}
