"""What a model would do here. It has no web: it says which of the provider's tools it was given, and how far."""

from __future__ import annotations


def main(request):
    if request["turn"] == 0:
        question = request["messages"][0]["content"][-1]["text"]
        call = {"worker": "web_searcher", "input_data": question}
        return {"tool_calls": [{"name": "worker_call", "input": call}]}
    return {"text": request["messages"][-1]["content"][0]["content"]}


def web_searcher(request):
    given = [
        f"{tool['tool_type']} {tool['max_uses']} {tool['allowed_domains']}" for tool in request["server_side_tools"]
    ]
    return {"text": f"I was given {'; '.join(given)}."}
