"""What a model would do here: search, measure, and make a finding of each hit."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["reply"]

HIT = re.compile(r"^(source/[^:\n]+):(\d+):", re.MULTILINE)
BEGIN_WITH = re.compile(r"Begin with (.+)\.$", re.MULTILINE)


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`."""
    found = results(request)
    hits = list(dict.fromkeys(HIT.findall(found[0]))) if found else []
    files = sorted({path for path, _ in hits})
    match request["turn"]:
        case 0:
            given = BEGIN_WITH.search(request["system"])
            pattern = given[1].replace(", ", "|") if given else "except:"
            return calls(("te", f"te grep -n -E '{pattern}' source"))
        case 1 if files:
            measured = " ".join(path.removeprefix("source/") for path in files)
            return calls(("shell", f"wc -l {measured}"), ("shell", "git log -1"), ("shell", "git push"))
        case _:
            lines = int(json.loads(found[1])["stdout"].splitlines()[-1].split()[0]) if files else 0
            findings = [finding(path, int(line)) for path, line in hits]
            return {"text": json.dumps({"findings": findings, "lines": lines})}


def finding(path: str, line: int) -> dict[str, Any]:
    """What is said of a hit."""
    return {
        "path": path,
        "line": line,
        "severity": "high",
        "advice": "Name the error that is meant, and let others out.",
    }


def results(request: dict[str, Any]) -> list[str]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def calls(*commands: tuple[str, str]) -> dict[str, Any]:
    """A turn that gives commands, each to `te` or to `shell`."""
    return {"tool_calls": [{"name": name, "input": {"command": command}} for name, command in commands]}
