"""From a project to what its runs need: definitions made from workers, functions bound to definitions, models opened.

`define` is the only place where a worker's files decide what a run will do; it makes plain data. `bind` is the only
place where that data becomes code again, for a run that begins and for one that is resumed alike.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.errors import ModelError, ProjectError, ToolModuleError, WorkerNotFound
from llm_do_mcp.models.replay import Records
from llm_do_mcp.models.select import check_names, open_model
from llm_do_mcp.project.identity import code_hash
from llm_do_mcp.project.settings import EVERY_FUNCTION
from llm_do_mcp.project.toolmodules import library_of, normal
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.definition import Attachment, Definition
from llm_do_mcp.runtime.function import JSON, Declaration, Function
from llm_do_mcp.runtime.gate import Functions
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.runtime.worker import work
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.toolsets import creation, custom, delegation, filesystem, overview, rules, search, shell
from llm_do_mcp.toolsets.generated import Generated

if TYPE_CHECKING:
    from llm_do_mcp.models.turn import Model
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.project.render import Renderer
    from llm_do_mcp.toolhost.client import ToolHost
    from llm_do_mcp.toolhost.descriptions import ToolModule


class Workbench:
    """Makes and binds the runs of one project, as it is at one moment.

    Args:
        project: The project. A run and all below it keep the bench that they began with, whatever is edited meanwhile.
        entry: `--entry`: the entry worker, where it is not the project's own.
        model: `--model`: for the entry worker only; `replay:<run>` is for all.
        approvals: `--approvals`: decides what workers are not even told of.
    """

    def __init__(
        self,
        project: Project,
        *,
        entry: str | None = None,
        model: str | None = None,
        approvals: Approvals | None = None,
    ) -> None:
        self.project, self._model = project, model
        self._entry = project.entry if entry is None else entry
        self.approvals = approvals or Approvals()
        self.handles = Handles(tidy=True)
        self.session: set[tuple[str, str]] = set()
        self.generated = Generated()
        self._renderers: list[Renderer] = []
        self._models: dict[tuple[object, ...], Model] = {}
        self._hosts: dict[tuple[object, ...], ToolHost] = {}

    def of(self, project: Project) -> Workbench:
        """The bench of the same project at a later moment. All that is open is shared, and closed with either."""
        later = copy.copy(self)
        later.project = project
        return later

    @property
    def host(self) -> ToolHost:
        """The child process that holds the project's Python; started when something is first called in it.

        There is one for each way of starting it: an edit of `tools.python`, `tools.env`, `dependencies` or
        `libs.lock` counts for later runs.
        """
        hosting = self.project.hosting
        if hosting.key not in self._hosts:
            self._hosts[hosting.key] = hosting.open()
        return self._hosts[hosting.key]

    def worker(self, reference: str, library: str | None = None) -> Worker:
        """The worker that a reference means: of the project, of its libraries, or made in this session.

        Args:
            reference: As it was written.
            library: The library that it is used in, or None for the project.

        Raises:
            ProjectError: It means none, or one that is broken.
        """
        try:
            return self.project.worker(reference, from_library=library)
        except WorkerNotFound:
            made = self.generated.find(reference)
            if made is None or made.name != reference:
                raise
            return made.worker(self.project)

    # ---- definitions

    async def define(
        self,
        worker: Worker,
        given: JSON,
        params: Mapping[str, JSON],
        context: Sequence[str] = (),
        attachments: Sequence[Attachment] = (),
        *,
        unattended: bool = False,
    ) -> Definition:
        """What a run of a worker will be.

        Args:
            worker: Whose run.
            given: Its input.
            params: Values for its template's parameters.
            context: Further texts from the caller.
            attachments: Files from the caller.
            unattended: See `Definition`.

        Raises:
            ProjectError: The worker's template, schema or tools cannot be used.
        """
        await in_thread(self.callees_of, worker)  # loads them: a class as a schema takes its time
        rendered = await self._renderer().render(self.project, worker, given, params)
        plain = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        declarations = await self.declarations(worker)
        return Definition(
            kind="worker",
            name=worker.id,
            input=given,
            instructions=rendered.instructions,
            prompt=plain if rendered.prompt is None else rendered.prompt,
            context=(*rendered.fragments, *context),
            system_context=rendered.system_fragments,
            attachments=tuple(attachments),
            models=self.models_of(worker),
            output_schema=worker.output_schema,
            functions=declarations,
            hidden=self._hidden(worker, declarations, unattended),
            rules=self.rules_of(worker),
            limits=limits_of(worker),
            server_side_tools=server_side_tools_of(worker),
            code=code_hash(worker, rendered.included),
            unattended=unattended,
        )

    def define_call(
        self, declaration: Declaration, value: JSON, rules: tuple[Rule, ...], *, unattended: bool = False
    ) -> Definition:
        """What a single call by a client will be."""
        return Definition(
            kind="call",
            name=declaration.name,
            input=value,
            functions=(declaration,),
            rules=rules,
            limits=UNBOUND,
            unattended=unattended,
        )

    def models_of(self, worker: Worker) -> tuple[str, ...]:
        """The model and fallbacks of a worker; never its caller's.

        Raises:
            ModelError: One that the worker's `compatible_models` rules out.
        """
        replays = (self._model or "").startswith("replay:")  # of a whole tree, and no model is called
        override = self._model if replays or worker.id == self._entry else None
        names = worker.model if override is None else (override,)
        for name in names:
            if not replays and not worker.accepts_model(name):
                allowed = ", ".join(worker.compatible_models or ())
                raise ModelError(f"worker {worker.id} cannot use {name}; it is compatible with {allowed}")
        return names

    def check_model(self, worker: Worker) -> None:
        """See that a worker has a model that can be opened, before a run of it is begun.

        Raises:
            ModelError: It has none, or one of its chain is ruled out or has a name of no known form.
        """
        check_names(worker.id, self.models_of(worker))

    def rules_of(self, worker: Worker) -> tuple[Rule, ...]:
        """The policy for what a worker calls."""
        callees = self.callees_of(worker) if worker.tool_rules else ()
        own = {delegation.own_name(callee): callee.id for callee in callees if callee.input_schema is not None}
        return (*rules.of_worker(self.project, worker, own), *self.generated.rules(worker))

    def _hidden(self, worker: Worker, declarations: Sequence[Declaration], unattended: bool) -> tuple[str, ...]:
        """The functions that a worker's model is not told of, since calls of them could only be refused."""
        policy = self.rules_of(worker)

        def may_be_made(declaration: Declaration) -> bool:
            answers = overview.answers(policy, declaration, "worker")
            may_ask = not unattended and not self.approvals.hides(worker.id, declaration.name)
            return "allow" in answers or ("ask" in answers and may_ask)

        return tuple(declaration.shown for declaration in declarations if not may_be_made(declaration))

    async def declarations(self, worker: Worker) -> tuple[Declaration, ...]:
        """The functions that a worker is given. Those of the project's Python are looked at in the tool host.

        Raises:
            ProjectError: Tools that cannot be used, or two functions of one name.
        """
        shown: dict[str, Declaration] = {}
        for declaration in (*self.built_in(worker), *await self._custom(worker)):
            if shown.setdefault(declaration.shown, declaration) is not declaration:
                both = f"{shown[declaration.shown].name} and {declaration.name}"
                raise ProjectError(f"two functions are called {declaration.shown!r}: {both}", path=worker.path)
        return tuple(shown.values())

    def built_in(self, worker: Worker) -> tuple[Declaration, ...]:
        """The functions that a worker is given without any of the project's Python.

        Raises:
            ProjectError: Settings of a toolset that cannot be used.
        """
        toolsets = worker.toolsets
        found: list[Declaration] = []
        if toolsets.filesystem is not None:
            found += filesystem.declare(worker.roots)
        found += self.delegation_of(worker)
        found += creation.declare(worker, self)
        if toolsets.te is not None:
            restricted = rules.restricted(worker.roots, self.rules_of(worker), "worker")
            found += search.declare(self.project, worker.roots, restricted)
        if toolsets.shell is not None:
            usual = rules.searchable(worker.roots, self.rules_of(worker), "worker")
            found += shell.declare(toolsets.shell, worker.roots, usual, worker.path)
        return tuple(found)

    def delegation_of(self, worker: Worker) -> tuple[Declaration, ...]:
        """The calls of other workers that a worker is given."""
        allowed = worker.allow_workers or ()
        return delegation.declare(
            self.callees_of(worker),
            allowed,
            worker.roots,
            worker.attachment_policy,
            worker.lock_worker,
            worker.library,
        )

    def callees_of(self, worker: Worker) -> tuple[Worker, ...]:
        """The workers that a worker may call, as far as they are there and whole; globs are looked up in the scan."""
        named = [name for name in worker.delegates_to if not is_glob(name)]
        if len(named) < len(worker.delegates_to):
            named += [name for name in self.project.within_reach(worker.library) if worker.may_call(name)]
        found = []
        for name in dict.fromkeys(named):
            with contextlib.suppress(ProjectError):  # one that is broken or missing is told of when it is called
                found.append(self.project.worker(name, from_library=worker.library))
        return tuple(found)

    async def _custom(self, worker: Worker) -> tuple[Declaration, ...]:
        named = worker.named_tools
        every = named is not None and EVERY_FUNCTION in named
        modules = worker.tool_modules if named is not None else worker.own_tool_modules
        unnamed = (*worker.imported_tool_modules, *(() if named is not None else worker.own_tool_modules))
        if not modules and not unnamed and not named:
            return ()
        if (refused := self.project.hosting.refused) is not None:
            if asked := (*(named or ()), *worker.imported_tool_modules):
                names = ", ".join("all functions" if name == EVERY_FUNCTION else name for name in asked)
                raise ToolModuleError(f"worker {worker.id} names {names}, and {refused}")
            return ()
        described = await self._described(dict.fromkeys((*modules, *unnamed)), worker, None if every else named or ())
        wanted = None if every else dict.fromkeys(named or ())
        if wanted is not None:
            # Importing a module, or having it in one's own folder, names its functions.
            wanted.update({function.name: None for path in unnamed for function in described[path].functions})
        try:
            for path in unnamed:
                custom.check_loads(described[path])
            for path in (*worker.imported_tool_modules, *map(normal, self.project.manifest.tools.modules)):
                if path in described:
                    custom.check_offers(described[path])
            levels: dict[object, list[ToolModule]] = {}
            for path, module in described.items():
                levels.setdefault(_nearness(path, worker), []).append(module)
            return custom.declare(levels.values(), wanted)
        except ToolModuleError as error:
            raise ToolModuleError(f"worker {worker.id}: {error}") from None

    async def _described(
        self, modules: Collection[str], worker: Worker, named: Collection[str] | None
    ) -> dict[str, ToolModule]:
        """What modules hold. Other libraries' Python is imported only where something is named that is not nearer."""
        near = [path for path in modules if library_of(path) in (worker.library, None)]
        found = await self.host.describe(near)
        have = {function.name for module in found for function in module.functions}
        if named is None or not have.issuperset(named):
            found = (*found, *await self.host.describe([path for path in modules if path not in near]))
        return {module.path: module for module in found}

    # ---- functions and models

    async def bind(self, run: Run) -> Functions:
        """The functions of a run's definition, with their code."""
        if run.tree.resumed:
            await self.generated.restore(run.tree)
        return Functions(tuple(self._bind(declaration) for declaration in run.definition.functions))

    def _bind(self, declaration: Declaration) -> Function:
        if declaration.toolset == "filesystem":
            return filesystem.bind(declaration, self.handles, self.session)
        if declaration.toolset == "delegation":
            return delegation.bind(declaration, self)
        if declaration.toolset == "creation":
            return creation.bind(declaration, self)
        if declaration.toolset == "te":
            return search.bind(declaration, self.handles)
        if declaration.toolset == "shell":
            return shell.bind(declaration, self.handles)
        return custom.bind(declaration, self.host)

    async def body(self, run: Run) -> JSON:
        """Drives a run."""
        return await work(run, self)

    def model(self, name: str, records: Records) -> Model:
        """A model by its name; one instance serves all runs, whose `records` a replay looks in."""
        manifest = self.project.manifest
        opened_by = (name, manifest.base_url, json.dumps(manifest.model_capabilities))
        if opened_by not in self._models:
            self._models[opened_by] = open_model(
                name,
                project_root=self.project.root,
                toolhost=self.host,
                records=records,
                base_url=manifest.base_url,
                capabilities=manifest.model_capabilities,
            )
        return self._models[opened_by]

    def _renderer(self) -> Renderer:
        """Renders templates; there is one, made with the first."""
        if not self._renderers:
            from llm_do_mcp.project.render import Renderer

            self._renderers.append(Renderer())
        return self._renderers[0]

    def kill(self) -> None:
        """End the project's Python at once: what runs in it does not return, and nothing more can be begun in it."""
        for host in self._hosts.values():
            host.kill()

    async def aclose(self) -> None:
        """Let go of models, the tool host and open roots."""
        for model in self._models.values():
            await model.aclose()
        for host in self._hosts.values():
            await host.aclose()
        for renderer in self._renderers:
            renderer.close()
        self.handles.close()
        self.generated.close()


UNBOUND = Limits(max_turns=10**9, max_tool_calls=10**9, max_tokens=10**12, timeout_s=10**9, max_depth=10**9)
"""A call by a client has no limits of its own; the worker it calls has."""


def _nearness(module: str, worker: Worker) -> object:
    """What modules that are equally near to a worker have in common."""
    if module in worker.own_tool_modules:
        return "own"
    return "imported" if module in worker.imported_tool_modules else (library_of(module),)


def server_side_tools_of(worker: Worker) -> tuple[Mapping[str, JSON], ...]:
    """The tools that the model's provider may run for a worker: none where it has no network."""
    tools = worker.server_side_tools if worker.network_enabled else ()
    return tuple(tool.model_dump(mode="json", exclude_none=True) for tool in tools)


def limits_of(worker: Worker) -> Limits:
    """A worker's limits, with the defaults for what it does not set."""
    return Limits(**worker.limits.model_dump(exclude_none=True, exclude={"max_cost"}))


def is_glob(name: str) -> bool:
    """Whether a name in `allow_workers` means more than one worker."""
    return bool(set(name) & set("*?["))
