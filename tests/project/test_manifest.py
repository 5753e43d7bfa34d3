"""The manifest: its two names, what it refuses, and how its settings reach the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError
from tests.project.conftest import Make, problems, worker


def refusals(make: Make, manifest: str, name: str = "project.yaml") -> list[str]:
    with pytest.raises(ProjectError) as caught:
        make({"main.worker": worker(), name: manifest})
    return problems(caught.value)


@pytest.mark.proves("PROJECT-MANIFEST")
@pytest.mark.parametrize("name", ["project.yaml", "llm-do.yaml"])
def test_either_name_is_the_manifest(make: Make, name: str) -> None:
    project = make({"main.worker": worker(), name: "name: my-project\nversion: 1.0.0\nmodel: scripted:x.yaml"})
    assert project.name == "my-project" and project.manifest_path == name
    assert project.worker("main").model == ("scripted:x.yaml",)


@pytest.mark.proves("PROJECT-MANIFEST")
def test_both_names_at_once_are_an_error(make: Make) -> None:
    with pytest.raises(ProjectError, match=r"project\.yaml and llm-do\.yaml are two names of one file"):
        make({"main.worker": worker(), "project.yaml": "", "llm-do.yaml": ""})


@pytest.mark.proves("PROJECT-MANIFEST")
def test_every_key_of_the_manifest_is_known(make: Make, tmp_path: Path) -> None:
    manifest = """
        name: everything
        version: 1
        description: All keys
        model: [anthropic:a, anthropic:b]
        base_url: http://127.0.0.1:1
        model_capabilities: {"llama*": {documents: true, max_output_tokens: 16000}}
        entry: main
        exports: [main]
        dependencies: [utils]
        grants: {utils: [input]}
        sandbox: {paths: {input: ro:./input}, network_enabled: false}
        toolsets: {filesystem: {}}
        attachment_policy: {allowed_suffixes: [.PDF], denied_suffixes: [.exe], max_attachments: 2, max_total_bytes: 9}
        limits: {timeout_s: 1.5, max_turns: 1, max_tool_calls: 2, max_tokens: 3, max_cost: 0.5, max_depth: 4}
        approvals: [{function: files.write, decision: allow, subject: "output/*", caller: worker}]
        workers: {root: agents, include: ["**/*.worker"], exclude: ["**/drafts/**"]}
        prompts: {root: texts}
        tools: {roots: [kit], modules: [more.py], allow_module_imports: false, env: [TOKEN], python: python3}
        tool_envelope: {enabled: true, workspace: {root: .}, grep: {max_output_chars: 5}, agent_budgets: {default: 9}}
        publish: {files: [input], te: false}
        redact: ["sk-[a-z]+"]
        prices: {"claude-*": {input: 1, output: 5.0}}
    """
    files = {"main.worker": worker(), "project.yaml": manifest, "more.py": "", "shelf/utils/lib.yaml": ""}
    project = make(files, libs=[tmp_path / "shelf"])
    main = project.worker("main")
    assert main.attachment_policy.allowed_suffixes == (".pdf",)
    assert main.limits.max_depth == 4 and not main.network_enabled
    assert project.manifest.prices["claude-*"].output == 5.0


@pytest.mark.proves("PROJECT-MANIFEST-STOPS", "PROJECT-POSITIONS", "PROJECT-NEAREST-KEY")
@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("nme: x", "project.yaml:1:1: unknown key 'nme'; did you mean 'name'?"),
        ("name: x\nworkers: {rot: y}", "project.yaml:2:11: unknown key 'rot'; did you mean 'root'?"),
        ("name: x\nname: y", "project.yaml:2:1: key 'name' was already given on line 1"),
        ("name: a: b", "project.yaml:1:8: mapping values are not allowed"),
        ("- a", "project.yaml:1:1: expected `key: value` lines, found a list"),
        ("version: 1.0", "project.yaml:1:10: version: must be the format 1, or the project's release as text"),
        (
            "base_url: notaurl",
            "project.yaml:1:11: base_url: 'notaurl' is no address of a server; write http://HOST:PORT",
        ),
        ("base_url: 'http://h:x'", "base_url: 'http://h:x' is no address of a server"),
        ("base_url: 'ftp://h'", "base_url: 'ftp://h' is no address of a server"),
        ("model_capabilities: {q: {documnts: true}}", "1:26: unknown key 'documnts'; did you mean 'documents'?"),
        ("model_capabilities: {q: {max_output_tokens: 0}}", "model_capabilities.q.max_output_tokens: "),
        ("prices: {q: {input: 1.7e+308, output: 0}}", "prices.q.input: input should be less than or equal to 1000000"),
        ("model_capabilities: {q: {images: 1}}", "1:34: model_capabilities.q.images: must be true or false"),
        ("version: 2", "format 2 is not known; known: 1"),
        ("entry: nobody", "project.yaml:1:8: no worker 'nobody' (looked for workers/nobody.worker"),
        ("exports: [main, ../x]", "project.yaml:1:17: '../x' is not a reference to a worker; '..' is not allowed"),
        ("exports: [nobody]", "project.yaml:1:11: no worker 'nobody'"),
        ("exports: ['reports/*']", "project.yaml:1:11: 'reports/*' matches no worker"),
        ("exports: ['/x*']", "project.yaml:1:11: '/x*': not a pattern"),
        ("tool_envelope: {telemetry: {path: a.txt}}", "1:35: tool_envelope.telemetry.path: 'a.txt' is no .jsonl file"),
        ("tool_envelope: {telemetry: {path: ../a.jsonl}}", "'../a.jsonl' is no .jsonl file in the project"),
        ("tool_envelope: {coach: {seed: -1}}", "project.yaml:1:31: tool_envelope.coach.seed: "),
        ("workers: {root: ../w}", "workers.root: '../w' has '..'"),
        ("workers: {root: /w}", "workers.root: '/w' is not relative to the project"),
        ("workers: {exclude: [/x]}", "workers.exclude.0: not a pattern"),
        ("sandbox: {paths: {a: ../x}}", "is not of the form mode:folder"),
        ("sandbox: {paths: {a: ro:../x}}", "project.yaml:1:22: sandbox.paths.a: '../x' has '..'"),
        ("sandbox: {paths: {a: ro:main.worker}}", "sandbox.paths.a: 'main.worker' is not a folder"),
        ("dependencies: [no-such]", "project.yaml:1:15: no library 'no-such' (looked in "),
        ("tools: {modules: [none.py]}", "project.yaml:1:19: there is no tool module 'none.py'"),
        ("tools: {modules: ['os:system']}", "module imports such as 'os:system' are not allowed"),
        ("tools: {modules: [../x.py]}", "project.yaml:1:19: '../x.py' has '..'"),
    ],
)
def test_an_error_in_the_manifest_stops_the_loading(make: Make, manifest: str, says: str) -> None:
    (refusal,) = refusals(make, manifest)
    assert says in refusal and refusal.startswith("project.yaml:1") | refusal.startswith("project.yaml:2")


@pytest.mark.proves("PROJECT-MERGE")
def test_the_worker_lays_its_settings_over_the_manifest(make: Make) -> None:
    manifest = """
        model: anthropic:project
        sandbox:
          network_enabled: false
          paths:
            input: {root: ./input, mode: ro, suffixes: [.pdf, .md]}
            output: {root: ./output, mode: rw, max_file_bytes: 5}
        toolsets: {filesystem: {}, delegation: {allow_workers: [a, b]}}
        limits: {max_turns: 5, max_tokens: 100}
        attachment_policy: {allowed_suffixes: [.pdf], max_attachments: 2}
        approvals: [{function: files.write, decision: ask}]
    """
    keys = """
        model: anthropic:own
        sandbox:
          paths:
            Input: {root: ./input, suffixes: [.txt]}
            scratch: rw:./scratch
        toolsets: {te: {}, delegation: {allow_workers: [a]}}
        limits: {max_turns: 9}
        attachment_policy: {max_total_bytes: 7}
        approvals: [{function: files.read, decision: deny}]
    """
    files = {"project.yaml": manifest, "main.worker": worker(keys), "workers/plain.worker": worker()}
    project = make(files | {"workers/a.worker": worker(), "workers/b.worker": worker()})
    own, plain = project.worker("main"), project.worker("plain")

    assert own.model == ("anthropic:own",) and plain.model == ("anthropic:project",)
    roots = {root.alias: root for root in own.roots}
    assert list(roots) == ["input", "output", "scratch"]
    assert roots["input"].suffixes == (".txt",), "lists are replaced"
    assert roots["input"].mode == "ro", "a default of the worker does not hide what the manifest says"
    assert roots["output"].max_file_bytes == 5 and roots["output"].mode == "rw"
    assert not own.network_enabled
    assert own.toolsets.filesystem is not None and own.toolsets.te is not None
    assert own.allow_workers == ("a",) and plain.allow_workers == ("a", "b")
    assert (own.limits.max_turns, own.limits.max_tokens) == (9, 100)
    assert own.attachment_policy.allowed_suffixes == (".pdf",)
    assert (own.attachment_policy.max_attachments, own.attachment_policy.max_total_bytes) == (2, 7)
    assert [rule.function for rule in own.approvals] == ["files.write", "files.read"]
    assert {root.alias for root in plain.roots} == {"input", "output"} == {root.alias for root in project.roots}


@pytest.mark.proves("PROJECT-MODEL")
def test_the_model_is_the_workers_then_the_manifests_then_the_default(make: Make) -> None:
    files = {"main.worker": worker("model: [a:1, b:2]"), "workers/w.worker": worker()}
    project = make(files, default_model="c:3")
    assert project.worker("main").model == ("a:1", "b:2")
    assert project.worker("w").model == ("c:3",)


@pytest.mark.proves("PROJECT-MODEL")
def test_a_model_that_is_not_compatible_is_refused(make: Make) -> None:
    project = make({"main.worker": worker("compatible_models: ['anthropic:*']")}, default_model="scripted:x")
    with pytest.raises(ProjectError, match=r"main.worker:2:20: model 'scripted:x' is not among the compatible_models"):
        project.worker("main")
    assert make({}, default_model="anthropic:x").worker("main").accepts_model("anthropic:y")
    with pytest.raises(ProjectError, match=r"main.worker:2:20: .*: an empty list rules out every model; name one"):
        make({"main.worker": worker("compatible_models: []")}).worker("main")


@pytest.mark.proves("PROJECT-MERGE")
def test_a_worker_may_change_a_part_of_a_folder_of_the_manifests(make: Make) -> None:
    manifest = "sandbox: {paths: {Out Put: {root: ./out, mode: rw, max_file_bytes: 10}, in: 'ro:./in'}}"
    keys = "sandbox: {paths: {out put: {mode: ro, suffixes: [.md]}, own: 'rw:./own'}}"
    roots = make({"project.yaml": manifest, "main.worker": worker(keys)}).worker("main").roots
    assert [(root.alias, root.path.rpartition("/")[2], root.mode, root.suffixes) for root in roots] == [
        ("in", "in", "ro", None),
        ("out_put", "out", "ro", (".md",)),
        ("own", "own", "rw", None),
    ]
    assert roots[1].max_file_bytes == 10
    with pytest.raises(ProjectError, match=r"main\.worker:2:\d+: key 'root' is missing"):
        make({"main.worker": worker("sandbox: {paths: {new: {mode: ro}}}")}).worker("main")
    with pytest.raises(ProjectError, match=r"project\.yaml:1:\d+: key 'root' is missing"):
        make({"project.yaml": "sandbox: {paths: {new: {mode: ro}}}"})
