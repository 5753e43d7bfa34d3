"""What a model would do here: call, and say what came back."""

from __future__ import annotations


def results(request):
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def ask(request):
    if request["turn"] == 0:
        call = {"worker": "calculator", "input_data": "10! and its prime factors"}
        return {"tool_calls": [{"name": "worker_call", "input": call}]}
    return {"text": results(request)[-1]}


def calculate(request):
    found = results(request)
    match request["turn"]:
        case 0:
            return {"tool_calls": [{"name": "factorial", "input": {"n": 10}}]}
        case 1:
            return {"tool_calls": [{"name": "prime_factors", "input": {"number": int(found[-1])}}]}
        case 2:
            line = f"{found[0]} = {' x '.join(found[1].strip('[]').split(', '))}"
            return {"tool_calls": [{"name": "write_file", "input": {"path": "scratch/last.txt", "content": line}}]}
        case _:
            return {"text": f"10! is {found[0]}, with the prime factors {found[1]}."}
