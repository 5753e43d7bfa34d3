"""Templates: what they can reach, what they cannot, and that none of them can harm the process that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.errors import InvalidInput, ProjectError, TemplateFailed
from llm_do_mcp.project.load import load_project
from llm_do_mcp.project.render import LOOKED_AT_ONCE, Renderer
from tests.project.conftest import Make, worker, write

pytestmark = pytest.mark.anyio


async def rendered(
    make: Make, renderer: Renderer, body: str, value: Any = "x", files: dict[str, str] | None = None
) -> str:
    project = make({"main.worker": worker("", body), **(files or {})})
    text = (await renderer.render(project, project.worker("main"), value)).instructions
    return text.removesuffix("\n")


async def refusal(
    make: Make, renderer: Renderer, body: str, value: Any = "x", files: dict[str, str] | None = None
) -> str:
    with pytest.raises(TemplateFailed) as caught:
        await rendered(make, renderer, body, value, files)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.proves("A043")
@pytest.mark.parametrize(
    "body",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__'].x }}",
        "{{ ''|attr('__class__') }}",
        "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
        "{{ '{0.__class__}'.format(input) }}",
        "{{ ('{0.__class' ~ '__}').format(input) }}",
        "{{ ('{0.__class__}'|attr('format'))(input) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ joiner.__init__.__globals__.os }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ lipsum.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ file.__self__ }}",
        "{{ file.__globals__ }}",
        "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
        "{{ range.__class__ }}",
        "{{ (1).__class__ }}",
    ],
)
async def test_no_template_reaches_pythons_insides(make: Make, renderer: Renderer, body: str) -> None:
    message = await refusal(make, renderer, body)
    assert message.startswith("main.worker:4: ") and ("not allowed in a template" in message or "undefined" in message)


RUNAWAY = {
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "power": "{{ (10 ** (10 ** 8)) % 7 }}",
    "text": "{{ 'a' * 10 ** 9 }}",
    "padding": "{{ '%1000000000d' % 1 }}",
    "centred": "{{ 'a'|center(10 ** 9) }}",
    "list": "{{ ([0] * 10 ** 9)|length }}",
    "lipsum": "{{ lipsum(n=20000) }}",
    "output": "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
}


@pytest.mark.proves("A044", "TEMPLATE-LIMITS")
@pytest.mark.parametrize("kind", RUNAWAY)
async def test_a_runaway_template_ends_and_the_next_one_renders(make: Make, renderer: Renderer, kind: str) -> None:
    started = time.perf_counter()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        message = await refusal(make, renderer, RUNAWAY[kind])
        group.cancel_scope.cancel()
    took = time.perf_counter() - started
    assert message.startswith("main.worker")
    assert took < 4 and ticks > took / 0.1, "this process was not held up meanwhile"
    assert await rendered(make, renderer, "{{ input }}!") == "x!"


@pytest.mark.proves("A044", "TEMPLATE-LIMITS")
async def test_each_limit_says_which_it_was(make: Make, renderer: Renderer) -> None:
    assert "took longer than 1 s and was stopped" in await refusal(make, renderer, RUNAWAY["loops"])
    assert "gives more than 1,000,000 characters" in await refusal(make, renderer, RUNAWAY["output"])
    if sys.platform == "linux":
        assert await refusal(make, renderer, RUNAWAY["list"]) == (
            "main.worker:4: the template needs more memory than is allowed"
        )


@pytest.mark.proves("A045")
@pytest.mark.parametrize(
    "body",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'self.jinja' %}",
        "{% extends 'a.jinja' %}",
        "{{ " + "+".join(["1"] * 20_000) + " }}",
        "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
        "{% if 1 %}" * 500 + "{% endif %}" * 500,
    ],
)
async def test_a_template_without_end_is_one_error(make: Make, renderer: Renderer, body: str) -> None:
    files = {
        "templates/self.jinja": "{% include 'self.jinja' %}",
        "templates/a.jinja": "{% extends 'b.jinja' %}",
        "templates/b.jinja": "{% extends 'a.jinja' %}",
    }
    message = await refusal(make, renderer, body, files=files)
    assert "nested too deeply; look for what includes or calls itself, or for an expression" in message or (
        "took longer" in message
    )


@pytest.mark.proves("TEMPLATE-FOLDERS")
@pytest.mark.parametrize(
    ("file", "body", "gives"),
    [
        ("workers/a/b.worker", "{{ file('x.md') }}", "beside"),
        ("workers/a/b.worker", "{{ file('a/x.md') }}", "beside"),
        ("workers/b.worker", "{{ file('x.md') }}", "above"),
        ("workers/b/worker.worker", "{{ file('x.md') }}", "own"),
    ],
)
async def test_a_file_that_lies_beside_a_worker_is_found(
    make: Make, renderer: Renderer, file: str, body: str, gives: str
) -> None:
    files = {"workers/a/x.md": "beside", "workers/x.md": "above", "workers/b/x.md": "own"}
    project = make({file: worker(body=body), **files})
    loaded = project.worker(file.removeprefix("workers/").removesuffix(".worker").removesuffix("/worker"))
    assert (await renderer.render(project, loaded, "")).instructions.strip() == gives


@pytest.mark.proves("A046", "A006")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{% include '../secret.txt' %}", "is not inside the template folders"),
        ("{% include 'sub/../../secret.txt' %}", "is not inside the template folders"),
        ("{% include '/etc/passwd' %}", "is not inside the template folders"),
        ("{{ file('/etc/passwd') }}", "is not inside the template folders"),
        ("{{ file('~/x') }}", "is not inside the template folders"),
        ("{{ file('a\\\\b') }}", "is not inside the template folders"),
        ("{% include 'lib:../x' %}", "names a library that is not among the dependencies"),
        ("{% include 'legal:x.jinja' %}", "names a library that is not among the dependencies"),
        ("{% include 'a.jinja\\0' %}", "is not the name of a file"),
        ("{{ file('.env') }}", "is hidden"),
        ("{{ file('sub/.env') }}", "is hidden"),
        ("{% include './sub' %}", "has ./; a name starts at the template folders, wherever it is used"),
        ("{% include '../secret.txt' ignore missing %}", "is not inside the template folders"),
        ("{{ file('secret.txt') }}", "; secret.txt is not read from where it lies, put it into templates/"),
        ("{% include 'none.jinja' %}", "there is no 'none.jinja' in templates/, prompts/, workers/"),
        ("{{ file(1) }}", "is not the name of a file"),
        ("{{ file('binary.bin') }}", "templates/binary.bin is not UTF-8 at byte 0"),
        ("{% include 'wide.txt' %}", "templates/wide.txt is UTF-16; save it as UTF-8"),
        ("{{ file('big.txt') }}", "larger than 1,000,000 bytes"),
        ("{{ file('sub') }}", "a folder, not a file"),
    ],
)
async def test_a_template_includes_only_from_its_folders(
    make: Make, renderer: Renderer, tmp_path: Path, body: str, says: str
) -> None:
    write(tmp_path, {"secret.txt": "SECRET", "templates/.env": "SECRET", "templates/sub/.env": "SECRET"})
    (tmp_path / "templates/binary.bin").write_bytes(b"\xff\x00")
    (tmp_path / "templates/wide.txt").write_bytes("wide".encode("utf-16"))
    (tmp_path / "templates/big.txt").write_bytes(b"x" * 1_000_001)
    message = await refusal(make, renderer, body)
    assert says in message and message.startswith("main.worker:4: ") and "SECRET" not in message


@pytest.mark.proves("A046", "A007", "A024")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and FIFOs")
async def test_a_template_is_never_read_through_a_link_that_leads_outside_or_from_a_fifo(
    make: Make, renderer: Renderer, tmp_path: Path
) -> None:
    write(tmp_path, {"input/secret.txt": "SECRET", "templates/real.jinja": "real"})
    (tmp_path / "templates/out.jinja").symlink_to("/etc/passwd")
    (tmp_path / "templates/up.jinja").symlink_to("../input/secret.txt")
    (tmp_path / "templates/in.jinja").symlink_to("real.jinja")
    os.mkfifo(tmp_path / "templates/fifo.jinja")
    for name in ("out.jinja", "up.jinja"):
        assert "a link that leads outside" in await refusal(make, renderer, f"{{% include '{name}' %}}")
    assert "not a regular file" in await refusal(make, renderer, "{{ file('fifo.jinja') }}")
    assert await rendered(make, renderer, "{% include 'in.jinja' %}") == "real"


@pytest.mark.proves("TEMPLATE-FOLDERS", "A046")
async def test_a_computed_name_reaches_only_what_is_there_to_be_included(make: Make, renderer: Renderer) -> None:
    files = {"workers/notes.md": "notes", "templates/locales/de.jinja": "Hallo", "prompts/P.md": "P"}
    assert await rendered(make, renderer, "{{ file('notes.md') }}", files=files) == "notes"
    assert await rendered(make, renderer, "{% include 'locales/' + input + '.jinja' %}", "de") == "Hallo"
    assert await rendered(make, renderer, "{{ file(input) }}", "P.md") == "P"
    message = await refusal(make, renderer, "{{ file(input) }}", "notes.md")
    assert "there is no 'notes.md' (a computed name) in templates/, prompts/" in message
    assert "is not inside" in await refusal(make, renderer, "{% include input %}", "../main.worker")


@pytest.mark.proves("TEMPLATE-FOLDERS")
async def test_the_nearest_folder_wins(make: Make, renderer: Renderer) -> None:
    body = "{% include 'a' %} {% include 'b' %} {% include 'c' %} {% include 'd' %}"
    project = make(
        {
            "workers/w/worker.worker": worker("", body),
            "workers/w/templates/a": "own-templates",
            "workers/w/a": "own",
            "workers/w/b": "own",
            "templates/a": "project",
            "templates/b": "project",
            "templates/c": "project",
            "prompts/c": "prompts",
            "workers/d": "workers",
        }
    )
    found = await renderer.render(project, project.worker("w"), "")
    assert found.instructions.strip() == "own-templates own project workers"


@pytest.mark.proves("TEMPLATE-FOLDERS")
async def test_templates_extend_and_import_one_another(make: Make, renderer: Renderer) -> None:
    files = {
        "templates/base.jinja": "# {{ title }}\n{% block body %}{% endblock %}",
        "templates/macros.jinja": "{% macro bold(x) %}**{{ x }}**{% endmacro %}",
    }
    body = "{% extends 'base.jinja' %}{% import 'macros.jinja' as m %}{% block body %}{{ m.bold(title) }}{% endblock %}"
    assert await rendered(make, renderer, body, {"title": "T"}, files) == "# T\n**T**"


@pytest.mark.proves("A047", "PROJECT-POSITIONS")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("one\n\n{{ nam }}", "main.worker:6: 'nam' is undefined; known: count, input, name, place"),
        ("{{ place.citty }}", "main.worker:4: 'dict object' has no attribute 'citty'; known: city, zip"),
        ("{% if nam %}{% endif %}", "main.worker:4: 'nam' is undefined"),
        ("{{ 1 / 0 }}", "main.worker:4: ZeroDivisionError: division by zero"),
        ("a\n{{ name|nofilter }}", "main.worker:5: No filter named 'nofilter'."),
        ("a\nb\n{% for x in y %}", "main.worker:6: "),
        ("{{ name }", "main.worker:4: "),
        ("{{ count.x.y }}", "main.worker:4: 'int object' has no attribute 'x'"),
        ("{% include 'inner.jinja' %}", "templates/inner.jinja:2: 'gone' is undefined; known: count"),
        ("{% include 'broken.jinja' %}", "templates/broken.jinja:3: "),
        ("{{ name() }}", "main.worker:4: TypeError: 'str' object is not callable"),
    ],
)
async def test_an_error_names_file_line_and_what_there_is(make: Make, renderer: Renderer, body: str, says: str) -> None:
    value = {"name": "n", "count": 1, "place": {"city": "c", "zip": 1}}
    files = {"templates/inner.jinja": "\n{{ gone }}", "templates/broken.jinja": "\n\n{% if %}"}
    assert (await refusal(make, renderer, body, value, files)).startswith(says)


@pytest.mark.proves("A047")
async def test_errors_in_other_texts_than_the_body_have_their_line(make: Make, renderer: Renderer) -> None:
    keys = "prompt: |\n  first\n  {{ gone }}\nfragments: ['{{ input }}', '{{ input }} {{ gone }}']"
    project = make({"main.worker": worker(keys, "plain")})
    with pytest.raises(TemplateFailed, match=r"main\.worker:4: 'gone' is undefined"):
        await renderer.render(project, project.worker("main"), "x")


@pytest.mark.proves("TEMPLATE-PROMPT")
@pytest.mark.parametrize("prompt", ['""', '" "', "|\n\n"])
def test_an_empty_prompt_is_a_mistake(make: Make, prompt: str) -> None:
    with pytest.raises(ProjectError, match=r"main\.worker:\d+:\d+: prompt: an empty prompt leaves out what the caller"):
        make({"main.worker": worker(f"prompt: {prompt}")}).worker("main")


@pytest.mark.proves("A048")
async def test_what_is_inserted_is_never_rendered_again(make: Make, renderer: Renderer) -> None:
    trap = "{{ 7*7 }} {% raw %} {# x #} <b>&amp;"
    files = {"prompts/trap.md": trap}
    assert await rendered(make, renderer, "{{ input }}|{{ file('trap.md') }}", trap, files) == f"{trap}|{trap}"
    assert await rendered(make, renderer, "{{ text }}", {"text": trap}) == trap


@pytest.mark.proves("A049")
@pytest.mark.parametrize(
    "body",
    ["{{ items.append(1) }}", "{% do d.update({}) %}", "{{ d.update({}) }}", "{{ d.pop('a') }}", "{{ items.sort() }}"],
)
async def test_a_template_changes_nothing_it_was_given(make: Make, renderer: Renderer, body: str) -> None:
    message = await refusal(make, renderer, body, {"items": [1], "d": {"a": 1}})
    assert "not allowed in a template" in message or "unknown tag 'do'" in message


@pytest.mark.proves("TEMPLATE-VARIABLES")
async def test_input_fields_and_parameters_are_variables(make: Make, renderer: Renderer) -> None:
    keys = """
        params: {tone: plain, topic: }
        prompt: '{{ topic }}: {{ input.name }}'
        system_fragments: ['{{ tone }}', as is]
    """
    project = make({"main.worker": worker(keys, "{{ name }} {{ tone }}")})
    main = project.worker("main")
    result = await renderer.render(project, main, {"name": "N"}, {"topic": "T"})
    assert result.instructions == "N plain\n" and result.prompt == "T: N"
    assert result.system_fragments == ("plain", "as is") and result.fragments == ()
    for value, params, says in [
        ({"name": "N"}, {}, "parameter 'topic' is missing"),
        ({"name": "N"}, {"topic": None}, "parameter 'topic' is missing"),
        ({"name": "N"}, {"topic": 1, "ton": 2}, "unknown parameter 'ton'; did you mean 'tone'?"),
        ({"name": "N"}, {"ton": 2, "x": 1}, "'tone'?, unknown parameter 'x'; known: tone, topic, parameter"),
        ({"tone": "x"}, {"topic": 1}, "the input's field 'tone' has the name of a parameter"),
        ({"input": "x"}, {"topic": 1}, "the input's field 'input' has the name of the input itself"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            await renderer.render(project, main, value, params)
        assert str(caught.value).startswith("worker main: ") and says in str(caught.value)


@pytest.mark.proves("TEMPLATE-VARIABLES")
async def test_a_field_called_file_does_not_hide_the_function(make: Make, renderer: Renderer) -> None:
    files = {"prompts/P.md": "P"}
    assert await rendered(make, renderer, "{{ file('P.md') }} {{ input.file }}", {"file": "F"}, files) == "P F"


@pytest.mark.proves("TEMPLATE-PLAIN")
async def test_a_text_without_jinja_is_returned_as_it_is_and_starts_nothing(make: Make, renderer: Renderer) -> None:
    body = "  { not } a } template {\r\n%}\n\n"
    project = make({"main.worker": worker("", body)})
    result = await renderer.render(project, project.worker("main"), "x")
    assert result.instructions == f"{body}\n" and result.prompt is None
    assert renderer._idle == []


@pytest.mark.proves("TEMPLATE-PLAIN")
async def test_texts_keep_their_form(make: Make, renderer: Renderer) -> None:
    value = "\ud800 \u2028 \u00e4 \U0001f600"
    assert await rendered(make, renderer, "\n\n{{ input }}\n\n", value) == f"\n\n{value}\n\n".removesuffix("\n") + "\n"


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_one_child_is_kept_for_the_next_template(make: Make, renderer: Renderer) -> None:
    await rendered(make, renderer, "{{ input }}")
    (first,) = renderer._idle
    await rendered(make, renderer, "{{ input }}{{ input }}")
    assert renderer._idle == [first]


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_many_renders_at_once_do_not_mix(make: Make, renderer: Renderer) -> None:
    project = make({"main.worker": worker("", "{{ input }}")})
    main = project.worker("main")
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        results[number] = (await renderer.render(project, main, str(number))).instructions.strip()

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, number)
    assert results == {number: str(number) for number in range(8)}


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_a_child_that_was_killed_is_replaced(make: Make, renderer: Renderer) -> None:
    await rendered(make, renderer, "{{ input }}")
    (child,) = renderer._idle
    child._process.kill()
    child._process.wait()
    assert await rendered(make, renderer, "{{ input }}") == "x"


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_a_cancelled_render_holds_nothing_up(make: Make, renderer: Renderer) -> None:
    await rendered(make, renderer, "{{ input }}")
    started = time.perf_counter()
    with anyio.move_on_after(0.1) as scope:
        await rendered(make, renderer, RUNAWAY["loops"])
    assert scope.cancelled_caught and time.perf_counter() - started < 0.8
    assert await rendered(make, renderer, "{{ input }}") == "x"


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_closing_ends_what_is_being_rendered(make: Make) -> None:
    renderer = Renderer(seconds=60)
    async with anyio.create_task_group() as group:
        group.start_soon(refusal, make, renderer, RUNAWAY["loops"])
        while not renderer._busy:
            await anyio.sleep(0.01)
        (child,) = renderer._busy
        await anyio.to_thread.run_sync(renderer.close)
    assert child._process.returncode is not None
    with pytest.raises(TemplateFailed, match="closed"):
        await rendered(make, renderer, "{{ input }}")


@pytest.mark.proves("TEMPLATE-CHILD")
@pytest.mark.skipif(sys.platform == "win32", reason="looks for the process by a signal")
@pytest.mark.parametrize("body", ["{{ input }}", RUNAWAY["loops"], RUNAWAY["power"]])
def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"main.worker": worker("", body)})
    script = f"""
import time
from llm_do_mcp.project.load import load_project
from llm_do_mcp.project.render import Renderer
project = load_project({str(tmp_path)!r})
worker = project.worker("main")
renderer = Renderer(seconds=0.5)
child = renderer._take()
child.start()
child._process.stdin.write(renderer._request(project, worker, [worker.instructions], {{"input": "x"}}))
child._process.stdin.flush()
print(child._process.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())  # the child has been asked, and has or will read it
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":  # a zombie that nobody has waited for is no longer running
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@pytest.mark.proves("TEMPLATE-CHILD")
async def test_a_child_imports_nothing_from_the_project_or_the_working_directory(
    make: Make, renderer: Renderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, dict.fromkeys(("json.py", "jinja2.py", "signal.py", "sitecustomize.py"), "raise SystemExit"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert await rendered(make, renderer, "{{ input }}") == "x"


@pytest.mark.proves("TEMPLATE-CHILD")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_child_has_none_of_the_servers_secrets(
    make: Make, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "SECRET")
    await rendered(make, renderer, "{{ input }}")
    (child,) = renderer._idle
    assert b"SECRET" not in Path(f"/proc/{child._process.pid}/environ").read_bytes()


@pytest.mark.proves("TEMPLATE-VARIABLES")
async def test_any_json_can_be_input(make: Make, renderer: Renderer) -> None:
    value = {"a": [1, 2.5, None, True, {"b": "c"}], "n": 10**30}
    text = await rendered(make, renderer, "{{ input|tojson }}", value)
    assert json.loads(text) == value
    with pytest.raises(InvalidInput, match=r"^worker main: the input cannot be carried as JSON \(.*\)$"):
        await rendered(make, renderer, "{{ input }}", {"n": float("nan")})


@pytest.mark.proves("A016")
async def test_a_project_that_vanished_is_one_error(make: Make, renderer: Renderer, tmp_path: Path) -> None:
    write(tmp_path / "p", {"main.worker": worker("", "{% include 'x' %}")})
    project = load_project(tmp_path / "p")
    main = project.worker("main")
    (tmp_path / "p").rename(tmp_path / "q")
    with pytest.raises(TemplateFailed, match="there is no 'x' in templates/"):
        await renderer.render(project, main, "")


@pytest.mark.proves("TEMPLATE-ONE-LOOK")
def test_many_workers_are_looked_at_together_and_one_that_ends_the_look_hides_no_other(tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(LOOKED_AT_ONCE + 2)]
    files = {f"workers/{name}.worker": worker("", "{{ input }}") for name in names}
    files["workers/w1.worker"] = worker("", "{{ input | shout }}")
    files["workers/w2.worker"] = worker("", "{% include 'none.jinja' %}")
    files[f"workers/{names[-1]}.worker"] = worker("", "{% if %}")
    files["workers/w3.worker"] = worker("", RUNAWAY["power"])  # Jinja computes constants where it compiles
    write(tmp_path, files)
    project = load_project(tmp_path)
    renderer = Renderer(seconds=1)
    try:
        found = renderer.problems(project, [project.worker(name) for name in names])
    finally:
        renderer.close()
    told = {str(error.path): error.message for error in found}
    assert set(told) == {f"workers/{name}.worker" for name in ("w1", "w2", "w3", names[-1])}
    assert "took longer than 1 s" in told["workers/w3.worker"]
    assert "shout" in told["workers/w1.worker"] and "none.jinja" in told["workers/w2.worker"]
