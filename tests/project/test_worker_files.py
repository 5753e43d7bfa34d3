"""A worker's file: where the front matter ends, which keys there are, and what an error says of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidFile, ProjectError
from llm_do_mcp.project.worker import read_worker
from tests.project.conftest import Make, problems, worker


def refusals(text: str, path: str = "w.worker") -> list[str]:
    with pytest.raises(ProjectError) as caught:
        read_worker(text, path)
    return problems(caught.value)


@pytest.mark.proves("A040")
@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\nname: w\n---\nbody\n", "body\n"),
        ("---\r\nname: w\r\n---\r\nbody\r\n", "body\r\n"),
        ("---\rname: w\r---\rbo\rdy", "bo\rdy"),
        ("--- \nname: w\n---\t\nbody", "body"),
        ("---\nname: w\n---\n---\nbody\n---\nx: y\n---\n", "---\nbody\n---\nx: y\n---\n"),
        ("---\nname: w\ndescription: |\n  a\n  ---\n  b\n---\nbody", "body"),
        ("---\nname: w\n---", ""),
        ("---\nname: w\n---\n", ""),
        ("---\n---\n\n  body\n\n", "\n  body\n\n"),
        ("---\nname: w\n---\n...\nbody", "...\nbody"),
    ],
)
def test_the_first_two_fences_delimit_and_the_rest_is_untouched(text: str, body: str) -> None:
    source = read_worker(text, "w.worker")
    assert source.body is not None and source.body.text == body
    assert source.keys.name in ("w", None)


@pytest.mark.proves("A040")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "w.worker:1:1: a worker's file starts with a line '---'"),
        ("", "w.worker:1:1: a worker's file starts"),
        (" ---\nname: w\n---\n", "w.worker:1:1: a worker's file starts"),
        ("----\nname: w\n---\n", "w.worker:1:1: a worker's file starts"),
        ("---\nname: w\n", "w.worker:3:1: the front matter is not closed"),
        ("---\nname: w\n ---\nbody", "w.worker:"),
        ("---\nname: w\n...\ndescription: x\n---\nbody", "w.worker:4:"),
    ],
)
def test_a_front_matter_that_does_not_open_or_close_is_an_error(text: str, says: str) -> None:
    (refusal,) = refusals(text)
    assert refusal.startswith(says)


@pytest.mark.proves("A040")
def test_a_byte_order_mark_is_no_part_of_the_file(make: Make, tmp_path: Path) -> None:
    (tmp_path / "main.worker").write_bytes(b"\xef\xbb\xbf" + worker("description: \u00e4").encode())
    assert make({}).worker("main").description == "\u00e4"


@pytest.mark.proves("A040")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"---\nname: \xff\n---\n", "main.worker:2:7: not UTF-8 at byte 10"),
        ("---\ndescription: äöü".encode() + b"\xff\n---\n", "main.worker:2:17: not UTF-8 at byte 23"),
        ("\ufeffä".encode() + b"\xff\n", "main.worker:1:2: not UTF-8 at byte 5"),
        ("---\nname: x\n---\n".encode("utf-16"), "main.worker: UTF-16"),
    ],
)
def test_a_worker_in_another_encoding_is_refused(make: Make, tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "main.worker").write_bytes(content)
    with pytest.raises(ProjectError) as caught:
        make({}).worker("main")
    assert str(caught.value).startswith(says)


@pytest.mark.proves("A041", "PROJECT-POSITIONS", "PROJECT-NEAREST-KEY")
@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("nam: x", "2:1: unknown key 'nam'; did you mean 'name'?"),
        ("zzzzz: x", "2:1: unknown key 'zzzzz'; known: allow_workers, "),
        ("limits: {max_tuns: 3}", "2:10: unknown key 'max_tuns'; did you mean 'max_turns'?"),
        ("sandbox:\n  paths:\n    a: {rot: ./x, root: ./x}", "4:9: unknown key 'rot'; did you mean 'root'?"),
        ("toolsets: {shell: {rules: [{pattern: x, alowed: true}]}}", "unknown key 'alowed'; did you mean 'allowed'?"),
        ("toolsets: {filesytem: }", "2:12: unknown key 'filesytem'; did you mean 'filesystem'?"),
        ("toolsets: {delegation: {max_bytes: 1}}", "write `attachment_policy: {max_total_bytes: …}` into the worker"),
        ("toolsets: {delegation: {debug: true}}", "2:25: unknown key 'debug'; set LLM_DO_DEBUG=1 in the environment"),
        ("toolsets: {delegation: {helper: {a: 1}}}", "a worker that may be called is named in `allow_workers: […]`"),
        ("functions: x", "2:1: unknown key 'functions'; code in a worker is never run"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known(keys: str, says: str) -> None:
    (refusal,) = refusals(worker(keys))
    assert says in refusal and refusal.startswith("w.worker:")


@pytest.mark.proves("A037", "A041", "PROJECT-POSITIONS")
@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("description: 1.10", "w.worker:2:14: description: must be text; put it in quotes"),
        ("description: [a]", "w.worker:2:14: description: must be text, not a list"),
        ("description: true", "must be text; put it in quotes"),
        ("locked: no", "w.worker:2:9: locked: must be true or false, not the text 'no'"),
        ("locked: 1", "locked: must be true or false, not the number 1"),
        ("limits: {max_turns: many}", "limits.max_turns: must be a whole number, not the text 'many'"),
        ("limits: {max_turns: 0}", "limits.max_turns: input should be greater than or equal to 1"),
        ("limits: {timeout_s: '3'}", "limits.timeout_s: must be a number, not the text '3'"),
        ("limits: 3", "limits: must be `key: value` lines, not the number 3"),
        ("model: [a, 3]", "w.worker:2:12: model.1: must be text; put it in quotes"),
        ("model: 1.10", "w.worker:2:8: model: must be text; put it in quotes"),
        ("allow_workers: true", "w.worker:2:16: allow_workers: must be text; put it in quotes"),
        ("limits: {max_cost: .inf}", "w.worker:2:20: limits.max_cost: must be a finite number, not .inf"),
        ("limits: {max_turns: -.NaN}", "limits.max_turns: must be a finite number, not -.NaN"),
        (
            "server_side_tools: [{tool_type: web_serch}]",
            "w.worker:2:33: server_side_tools.0.tool_type: 'web_serch' is no server-side tool; "
            "did you mean 'web_search'?",
        ),
        (
            "server_side_tools: [{tool_type: web_search, allowed_domains: [a.b], blocked_domains: [c.d]}]",
            "allowed_domains and blocked_domains are not taken together; write one of them",
        ),
        (
            "server_side_tools: [{tool_type: code_execution, max_uses: 2}]",
            "code_execution takes no max_uses; it has tool_type alone",
        ),
        (
            "server_side_tools: [{tool_type: web_fetch, allowed_domains: []}]",
            "allowed_domains names no domain; name one, or leave the key out",
        ),
        (
            "server_side_tools: [{tool_type: web_search}, {tool_type: web_search, max_uses: 2}]",
            "w.worker:2:20: server_side_tools: web_search stands in it 2 times; write it once, with all its limits",
        ),
        ("model: {a: b}", "model: must be a list, not `key: value` lines"),
        ("input_schema: [1]", "input_schema: must be `key: value` lines, not a list"),
        ("sandbox: {paths: {a: {root: x, mode: rx}}}", "sandbox.paths.a.mode: must be 'ro', 'rw' or 'out', not 'rx'"),
        ("sandbox: {paths: {a: input}}", "'input' is not of the form mode:folder"),
        ("sandbox: {paths: {a: {root: x, suffixes: [md]}}}", "'md' is not a suffix; write it with its dot"),
        ("approvals: [{function: x, decision: maybe}]", "approvals.0.decision: must be 'allow', 'ask' or 'deny'"),
        (
            "toolsets: {delegation: {worker_create: {outputs: ./new}}}",
            "w.worker:2:41: unknown key 'outputs'; did you mean 'output_dir'?",
        ),
        ("toolsets: {delegation: {worker_create: maybe}}", "delegation.worker_create: must be true or false"),
        ("toolsets: {delegation: {worker_call: false}}", "toolsets.delegation.worker_call: must be true, not false"),
        ("toolsets: {custom: some}", "toolsets.custom: must be 'all', a list of function names"),
        ("params: {a b: 1}", "parameter 'a b' may have letters, digits and _ only"),
        ("params: {input: 1}", "parameter 'input' would hide the template variable 'input'"),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_is_wanted(keys: str, says: str) -> None:
    (refusal,) = refusals(worker(keys))
    assert says in refusal


@pytest.mark.proves("PROJECT-ALL-PROBLEMS")
def test_all_problems_of_a_file_are_told_at_once_in_its_order() -> None:
    refused = refusals(worker("locked: no\nlimits: {max_tuns: 3}\nmodel: 3"))
    assert [line.split(": ")[0] for line in refused] == ["w.worker:2:9", "w.worker:3:10", "w.worker:4:8"]
    with pytest.raises(InvalidFile, match=r"w\.worker:2:9: locked: .* \(and 2 more\)"):
        read_worker(worker("locked: no\nlimits: {max_tuns: 3}\nmodel: 3"), "w.worker")


@pytest.mark.proves("PROJECT-ALL-PROBLEMS")
def test_problems_that_need_the_project_are_told_together(make: Make) -> None:
    keys = """
        name: other
        imports: {workers: [nobody], tools: [nothing.py]}
        output_schema: {type: strin}
        schema_in_ref: schemas/none.json
        sandbox: {paths: {a: ../x}}
        toolsets: {delegation: {lock_worker: nobody}}
    """
    with pytest.raises(InvalidFile) as caught:
        make({"main.worker": worker(keys.replace("../x", "ro:../x"))}).worker("main")
    lines = [line.split(":")[1] for line in problems(caught.value)]
    assert lines == ["2", "3", "3", "4", "5", "6", "7"]


@pytest.mark.proves("PROJECT-SEED-KEYS")
def test_the_older_names_of_keys_mean_the_same(make: Make) -> None:
    old = """
        system: You judge {{ topic }}.
        prompt: Judge {{ input }}.
        fragments: [one, two]
        system_fragments: three
        params: {topic: decks}
        schema_object: {type: object, properties: {a: {type: string}}}
        tools: [lookup]
        toolsets: {delegation: {allow_templates: ['w*'], lock_template: ./workers/w.worker}}
    """
    loaded = make({"main.worker": worker(old, ""), "workers/w.worker": worker()}).worker("main")
    assert loaded.instructions.text == "You judge {{ topic }}." and loaded.instructions.line == 2
    assert loaded.prompt is not None and loaded.prompt.text == "Judge {{ input }}."
    assert [fragment.text for fragment in loaded.fragments] == ["one", "two"]
    assert [fragment.text for fragment in loaded.system_fragments] == ["three"]
    assert loaded.output_schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert loaded.named_tools == ("lookup",)
    assert loaded.allow_workers == ("w*", "w") and loaded.lock_worker == "w"


@pytest.mark.proves("PROJECT-SEED-KEYS")
def test_worker_call_may_be_named_beside_whom_it_may_call(make: Make) -> None:
    named = "toolsets: {delegation: {worker_call: {}, worker_create: {}}}\nallow_workers: [w]"
    made = make({"main.worker": worker(named), "workers/w.worker": worker()}).worker("main")
    assert made.allow_workers == ("w",) and made.creates_workers
    with pytest.raises(ProjectError) as caught:
        make({"main.worker": worker("toolsets: {delegation: {worker_call: {}}}")}).worker("main")
    assert str(caught.value).startswith("main.worker:2:38: worker_call by itself allows nobody; write `allow_workers:")


@pytest.mark.proves("PROJECT-SEED-KEYS")
def test_whom_a_worker_may_call_may_be_named_by_keys_of_its_delegation(make: Make) -> None:
    named = "toolsets: {delegation: {w: {}, allow_workers: [v], worker_create: {output_dir: ./new}}}"
    made = make({"main.worker": worker(named), "workers/w.worker": worker(), "workers/v.worker": worker()})
    assert made.worker("main").allow_workers == ("v", "w") and made.worker("main").creates_workers


@pytest.mark.proves("PROJECT-SEED-KEYS")
@pytest.mark.parametrize(
    "keys",
    [
        "instructions: a\nsystem: b",
        "output_schema: {}\nschema_object: {}",
        "output_schema: {}\noutput_schema_ref: x.json",
        "input_schema: {}\nschema_in_ref: x.json",
    ],
)
def test_one_thing_said_in_two_ways_is_an_error(keys: str) -> None:
    (refusal,) = refusals(worker(keys, ""))
    assert refusal.startswith("w.worker:3:1: ") and "only one may be given" in refusal


@pytest.mark.proves("A040")
def test_instructions_are_given_once() -> None:
    (refusal,) = refusals(worker("instructions: a", "b"))
    assert refusal == "w.worker:2:1: 'instructions' is given and so is text below the front matter"


@pytest.mark.proves("PROJECT-TOOLSETS")
@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ("toolsets: {filesystem: }", None),
        ("toolsets: {custom: all}", ("*",)),
        ("toolsets: {custom: [a, b]}", ("a", "b")),
        ("toolsets: {custom: {a: , b: {pre_approved: true}}}\ntools: [c, a]", ("a", "b", "c")),
        ("toolsets: {custom: {a: {}, _approval_config: {d: {pre_approved: true}}}}", ("a", "d")),
        ("toolsets: {custom: }", ()),
    ],
)
def test_toolsets_name_python_functions(make: Make, keys: str, named: tuple[str, ...] | None) -> None:
    loaded = make({"main.worker": worker(keys)}).worker("main")
    assert loaded.named_tools == named
    assert (loaded.toolsets.filesystem is not None) == ("filesystem" in keys)
