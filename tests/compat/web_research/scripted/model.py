"""What a model would do here, from what each stage was really given."""

from __future__ import annotations

import json

TOPIC = "pears"


def results(request):
    return [block["content"] for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]


def call(worker, **given):
    return {"name": "worker_call", "input": {"worker": worker, "input_data": given, "expect_json": True}}


def main(request):
    found = results(request)
    match request["turn"]:
        case 0:
            return {"tool_calls": [{"name": "search_web", "input": {"query": TOPIC}}]}
        case 1:
            urls = [hit["url"] for hit in json.loads(found[0])]
            return {"tool_calls": [call("extractor", topic=TOPIC, url=url) for url in urls]}
        case 2:
            extractions = [json.loads(text) for text in found]
            return {"tool_calls": [call("consolidator", topic=TOPIC, extractions=extractions)]}
        case 3:
            return {"tool_calls": [call("reporter", **json.loads(found[0]))]}
        case 4:
            report = json.loads(found[0])
            sources = json.dumps(report["sources"], indent=2)
            files = {"reports/report.md": report["markdown"], "reports/report.json": sources}
            writes = [{"path": path, "content": content} for path, content in files.items()]
            return {"tool_calls": [{"name": "write_file", "input": write} for write in writes]}
        case _:
            return {"text": "The report is in reports/report.md."}


def given(request):
    return json.loads(request["messages"][0]["content"][-1]["text"])


def extractor(request):
    if request["turn"] == 0:
        return {"tool_calls": [{"name": "fetch_page", "input": {"url": given(request)["url"]}}]}
    points = results(request)[0].splitlines()[1:]
    return {"text": json.dumps({"url": given(request)["url"], "points": points, "confidence": 0.9})}


def consolidator(request):
    claims = [
        {"text": point, "url": extraction["url"]}
        for extraction in given(request)["extractions"]
        for point in extraction["points"]
    ]
    return {"text": json.dumps({"topic": given(request)["topic"], "claims": claims})}


def reporter(request):
    claims = given(request)["claims"]
    lines = [f"- {claim['text']} ({claim['url']})" for claim in claims]
    markdown = "\n".join([f"# {given(request)['topic']} (by a script)", *lines, ""])
    return {"text": json.dumps({"markdown": markdown, "sources": [claim["url"] for claim in claims]})}
