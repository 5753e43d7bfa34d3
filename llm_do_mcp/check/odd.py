"""What is merely odd in a project, and what should be known about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.check.finding import Finding, Severity
from llm_do_mcp.check.places import Places
from llm_do_mcp.errors import LlmDoError, ModelError, ProjectError
from llm_do_mcp.project import contents, libslock
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.references import MAIN_FILE, SUFFIXES
from llm_do_mcp.toolsets.shell_paths import inside

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.project.manifest import Manifest
    from llm_do_mcp.project.settings import ShellDefault, ShellRule
    from llm_do_mcp.sandbox.root import Root
    from llm_do_mcp.toolsets.workbench import Workbench

_MOST_NAMED = 5


def folders(project: Project, workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """Sandbox folders that are not there yet, and those that the manifest has outside the project."""
    own = {root.alias for root in project.roots}
    for root in project.roots:
        if (message := missing(root)) is not None:
            yield places.of_manifest("warning", message, *_key(root))
    for worker in workers:
        for root in worker.roots:
            if root.alias not in own and (message := missing(root)) is not None:
                yield places.of_worker("warning", message, worker, ("sandbox", "paths", root.alias))
    settings = project.manifest.sandbox
    for root in project.roots if settings is not None else ():
        written = settings.paths[root.alias].root if settings is not None else ""
        if written.startswith("~") or os.path.isabs(written):
            message = f"sandbox.paths.{root.alias}: {written} is absolute, so workers reach {root.path} ({root.mode})"
            yield places.of_manifest("note", message, *_key(root))


def models(bench: Workbench, workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """Workers without a model, and models that cannot be had."""
    without = [worker for worker in workers if not worker.model]
    if without:
        named = ", ".join(worker.id for worker in without[:_MOST_NAMED])
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        how = "write `model: anthropic:claude-haiku-4-5` into the worker or the manifest, or set LLM_DO_MODEL"
        message = f"no model for {named}{more}; {how}"
        if bench.project.manifest_path is None:
            yield places.of_worker("warning", message, without[0])
        else:
            yield places.of_manifest("warning", message)
    for worker in workers:
        for name in worker.model:
            if (problem := model_problem(bench, name)) is not None:
                if worker.library is not None and name in bench.project.manifest.model:
                    yield places.of_manifest("error", problem, "model")
                else:
                    yield places.of_worker("error", problem, worker, ("model",))


def of_models(bench: Workbench, workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """What the manifest says of models that nobody has, and what workers want of theirs in vain."""
    from llm_do_mcp.models.capabilities import to_switch_on
    from llm_do_mcp.models.naming import PROVIDER, covers
    from llm_do_mcp.models.turn import Usage
    from llm_do_mcp.runtime.account import calls_model
    from llm_do_mcp.toolsets.workbench import server_side_tools_of

    used = dict.fromkeys(name for worker in workers for name in worker.model if calls_model(name))
    manifest = bench.project.manifest
    said: tuple[tuple[Severity, str, Iterable[str]], ...] = (
        ("warning", "prices", manifest.prices),
        ("note", "model_capabilities", manifest.model_capabilities),  # of a server that a machine may have
    )
    for severity, key, names in said:
        for name in names:
            if not any(covers(name, model) for model in used):
                message = f"{key}: no worker has a model {name}; models: {', '.join(used) or 'none'}"
                yield places.of_manifest(severity, message, key, name)
    for worker in workers:
        unknown = [name for name in worker.model if calls_model(name) and bench.cost(name, Usage()) is None]
        if worker.limits.max_cost is not None and unknown:
            message = f"limits.max_cost cannot be held: no price is known of {', '.join(unknown)}; add it to `prices`"
            yield places.of_worker("warning", message, worker, ("limits", "max_cost"), ("limits",))
        needs = worker.model and server_side_tools_of(worker)
        if needs and not any(_may_have_server_side_tools(name, manifest) for name in worker.model):
            message = f"server_side_tools are not sent to {', '.join(worker.model)}, not known to have any"
            instead = "name another"
            if any(name.startswith(PROVIDER) for name in worker.model):  # the flags are those of its models
                instead += f", or {to_switch_on('server_side_tools')}"
            yield places.of_worker("warning", f"{message}; {instead}", worker, ("server_side_tools",))


def _may_have_server_side_tools(model: str, manifest: Manifest) -> bool:
    from llm_do_mcp.models.capabilities import capabilities_of
    from llm_do_mcp.models.naming import PROVIDER
    from llm_do_mcp.models.sampling import is_sampling

    if model.startswith(PROVIDER):
        return capabilities_of(model.removeprefix(PROVIDER), manifest.capabilities).server_side_tools
    return not is_sampling(model)


def network(workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """What `network_enabled: false` does, and does not do."""
    location = ("sandbox", "network_enabled")
    for worker in workers:
        if worker.network_enabled:
            continue
        if worker.server_side_tools:
            message = "network_enabled: false denies the worker's server_side_tools"
            yield places.of_worker("warning", message, worker, ("server_side_tools",))
        if worker.toolsets.shell is not None or worker.named_tools or worker.own_tool_modules:
            what = "denies functions of network risk and server-side tools"
            message = f"network_enabled: false {what}; it does not isolate Python or shell commands"
            yield places.of_worker("note", f"{message}, which can reach the network all the same", worker, location)


def fields(workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """Fields of a worker that stand in the place of what every call has."""
    for worker in workers:
        lost = {"extra_context": "say more than its input"}
        if worker.attachment_policy.max_attachments:
            lost["attachments"] = "attach files"
        for name, what in lost.items():
            if name in worker.tool_schema.get("properties", {}):
                then = f"nobody who calls its tool can {what}; rename it to have both"
                message = f"{name!r} is a field of its own, so {then}"
                yield places.of_worker("warning", message, worker, *_fields_of(worker, name))


def _fields_of(worker: Worker, name: str) -> tuple[tuple[str, ...], ...]:
    """Where a worker's file may have a field."""
    written = (("input_schema", "properties", name), ("schema_in_ref",))
    return (("params", name),) if name in worker.params else written


def creation(workers: Sequence[Worker], places: Places) -> Iterator[Finding]:
    """Folders for new workers, which once could be named."""
    for worker in workers:
        delegation = worker.toolsets.delegation
        made = None if delegation is None else delegation.worker_create
        if made is not None and made.output_dir is not None:
            message = "worker_create.output_dir changes nothing: new workers are kept for the session, nowhere else"
            location = ("toolsets", "delegation", "worker_create", "output_dir")
            yield places.of_worker("warning", message, worker, location)


def strays(project: Project) -> Iterator[Finding]:
    """Files at the project's root that are workers by their names, and by their place are none."""
    known = project.scan().workers.values()
    for name in sorted(os.listdir(project.root)):
        if name.endswith(SUFFIXES[0]) and name not in known:
            where = f"{MAIN_FILE} and what is below {project.manifest.workers.root}/"
            yield Finding("warning", f"no worker of the project, since its workers are {where}; move it there", name)


def commands(workers: Sequence[Worker], project: str, places: Places) -> Iterator[Finding]:
    """What is left to a program that runs without asking: its words are looked at, and not what it does."""
    for worker in workers:
        shell = worker.toolsets.shell
        default = () if shell is None or shell.default is None else (shell.default,)
        said: Sequence[ShellRule | ShellDefault] = () if shell is None else (*shell.rules, *default)
        around = [root.alias for root in worker.roots if root.mode != "ro" and inside(project, [root.path])]
        if around and any(one.allowed and not one.approval_required for one in said):
            where = ", ".join(around)
            message = (
                f"toolsets.shell: a command that runs without asking may change what is protected in {where} (workers, "
                "tools, .git, approvals.lock) where its words do not name it, as `git config` does"
            )
            yield places.of_worker("note", message, worker, ("toolsets", "shell"))


def libraries(project: Project, places: Places) -> Iterator[Finding]:
    """Libraries that may change unnoticed, and those that have."""
    free = [name for name, library in project.libraries.items() if library.files.locked is None]
    if free:
        message = f"not locked, so what is loaded may change unnoticed: {', '.join(free)}; look, then `llm-do lib lock`"
        yield places.of_manifest("warning", message, "dependencies")
    for name, library in project.libraries.items():
        if (locked := library.files.locked) is None:
            continue
        try:
            found = list(libslock.differences(locked.files, contents.digests(library.root)))
        except LlmDoError as error:
            yield Finding("error", f"library {name}: {error}", libslock.NAME)
            continue
        for difference in found:
            message = f"library {name}: {difference.path} was {difference.kind} since; {libslock.ACCEPT}"
            yield Finding("error", message, libslock.NAME)


def missing(root: Root) -> str | None:
    """What there is to say of a sandbox folder that is not there, or None."""
    if os.path.isdir(root.path):
        return None
    then = "make it" if root.mode == "ro" else "it is made when it is first used"
    return f"sandbox.paths.{root.alias}: the folder does not exist yet; {then}"


def _key(root: Root) -> tuple[str, ...]:
    """Where the manifest has a root."""
    return ("sandbox", "paths", root.alias, "root")


def model_problem(bench: Workbench, name: str) -> str | None:
    """Why a model can never be had, or None. Nothing is connected."""
    from llm_do_mcp.models.select import check_names

    root = bench.project.root
    try:
        check_names("", (name,))
        provider, _, file = name.partition(":")
        if provider == "scripted" and ProjectFiles(root).kind(file) != "file":
            return f"model {name!r}: there is no script {file}"
    except (ModelError, ProjectError) as error:
        return str(error)
    return None
