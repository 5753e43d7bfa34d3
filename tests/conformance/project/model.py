"""A model that asks what its worker is there to ask, and then says what the answers were."""

TURNS = {
    "elicitation": [["user_name"]],
    "sampling": [["capital_question"]],
    "list_roots": [["client_roots"]],
    "request_state": [["confirm"]],
    "tampered_state": [["confirm"]],
    "multiple_inputs": [["user_name", "greeting", "client_roots"]],
    "multi_round": [["step1"], ["step2"]],
    "capabilities": [["confirm", "greeting"]],
    "prompt": [["user_context"]],
    "streaming": [["confirm"]],
    "confirm_delete": [["confirm"]],
    "multi_input": [["step1", "step2"]],
    "test_tool_with_task": [["user_name"]],
}
"""Worker → what it asks in each of its turns."""


def reply(request):
    if request["worker"] == "failing_job":
        raise RuntimeError("this model always fails")
    if request["worker"] == "slow_compute":
        if request["turn"] == 0:
            return {"tool_calls": [{"name": "pause", "input": {"seconds": float(request["system"])}}]}
        return {"text": "computed"}
    turns = TURNS[request["worker"]]
    if request["turn"] < len(turns):
        return {"tool_calls": [{"name": "ask", "input": {"about": about}} for about in turns[request["turn"]]]}
    blocks = [block for message in request["messages"] for block in message["content"]]
    return {"text": "\n".join(block["content"] for block in blocks if block["type"] == "tool_result")}
