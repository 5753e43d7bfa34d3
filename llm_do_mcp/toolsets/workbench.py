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
from llm_do_mcp.models.replay import replayed
from llm_do_mcp.models.sampling import is_sampling
from llm_do_mcp.models.select import check_names, open_model
from llm_do_mcp.project.checked import together
from llm_do_mcp.project.identity import code_hash
from llm_do_mcp.project.references import BUILT_IN, is_glob
from llm_do_mcp.project.settings import EVERY_FUNCTION
from llm_do_mcp.project.toolmodules import library_of, normal
from llm_do_mcp.runtime.account import calls_model
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.definition import Attachment, Definition
from llm_do_mcp.runtime.function import JSON, Declaration, Function
from llm_do_mcp.runtime.gate import Functions
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.recent import Recent
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.runtime.worker import work
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets import attached, creation, custom, delegation, filesystem, overview, rules, search, shell
from llm_do_mcp.toolsets.generated import Generated

if TYPE_CHECKING:
    from llm_do_mcp.models.turn import Model, Usage
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.project.render import Rendered, Renderer
    from llm_do_mcp.runtime.tree import Tree
    from llm_do_mcp.toolhost.client import ToolHost
    from llm_do_mcp.toolhost.descriptions import ToolModule

BOUND = 64
"""Operations on files that are kept bound: a client calls the same ones again and again."""


class Workbench:
    """Makes and binds the runs of one project, as it is at one moment.

    Args:
        project: The project. A run and all below it keep the bench that they began with, whatever is edited meanwhile.
        entry: `--entry`: the entry worker, where it is not the project's own.
        model: `--model`: for the entry worker only; `replay:<run>` is for all.
        everywhere: `model` is that of every worker.
        approvals: `--approvals`: decides what workers are not even told of.
    """

    def __init__(
        self,
        project: Project,
        *,
        entry: str | None = None,
        model: str | None = None,
        everywhere: bool = False,
        approvals: Approvals | None = None,
    ) -> None:
        self.project, self._model = project, model
        self._everywhere = everywhere or replayed(model or "") is not None
        self._entry = project.entry if entry is None else entry
        self.approvals = approvals or Approvals()
        self.handles = Handles(tidy=True)
        self.session: set[tuple[str, str]] = set()
        self.generated = Generated()
        self.attached = attached.Attached(self.handles)
        self._files = Recent(self._of_files, BOUND)
        self._renderers: list[Renderer] = []
        self._models: dict[tuple[object, ...], Model] = {}
        self._hosts: dict[tuple[object, ...], ToolHost] = {}
        self._snapshot: ToolHost | None = None
        self._unusable: dict[str, ToolModuleError] = {}
        """Workers whose Python turned out to be wrong."""
        self._refused: dict[str, ToolModuleError] | None = None
        """Workers that cannot be given the Python that they name, whatever is in it; None until that is looked at."""

    def of(self, project: Project) -> Workbench:
        """The bench of the same project at a later moment. All that is open is shared, and closed with either."""
        later = copy.copy(self)
        later.project, later._unusable, later._refused = project, {}, None
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

    @property
    def python(self) -> ToolHost:
        """The project's Python: for a run and all below it as it was when the run began, else as it is on disk."""
        return self.host if self._snapshot is None else self._snapshot

    def worker(self, reference: str, library: str | None = None) -> Worker:
        """The worker that a reference means: of the project, of its libraries, made in this session, or built in.

        Args:
            reference: As it was written.
            library: The library that it is used in, or None for the project.

        Raises:
            ProjectError: It means none, or one that is broken.
        """
        made = self.generated.find(reference)
        try:
            found = self.project.worker(reference, from_library=library)
        except WorkerNotFound:
            if made is None or made.name != reference:
                raise
        else:
            if found.library != BUILT_IN or made is None or made.name != reference:
                return found
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
        rendered = await self.rendered(worker, given, params)
        declarations = await self.declarations(worker, attached.root_of(attachments))
        policy = self.rules_of(worker)
        return Definition(
            kind="worker",
            name=worker.id,
            input=given,
            instructions=rendered.instructions,
            prompt=rendered.asked(given),
            context=(*rendered.fragments, *context),
            system_context=rendered.system_fragments,
            attachments=tuple(attachments),
            models=self.models_of(worker),
            output_schema=worker.output_schema,
            functions=declarations,
            hidden=self._hidden(worker, declarations, policy, unattended),
            rules=policy,
            limits=limits_of(worker),
            server_side_tools=server_side_tools_of(worker),
            code=code_hash(worker, rendered.included),
            unattended=unattended,
        )

    async def rendered(self, worker: Worker, given: JSON, params: Mapping[str, JSON]) -> Rendered:
        """A worker's texts for one call.

        Raises:
            LlmDoError: A parameter that is missing or not known, a template that cannot be rendered, or a library that
                is not what `libs.lock` has.
        """
        await self._check_libraries({worker.library})
        found = await self._renderer().render(self.project, worker, given, params)
        await self._check_libraries({path.partition(":")[0] for path in found.included})
        return found

    async def _check_libraries(self, names: Collection[str | None]) -> None:
        """See that libraries are what `libs.lock` has, as a whole: some of what is used is read by Python alone.

        Raises:
            LibraryChanged: One is not.
        """
        for name, library in self.project.libraries.items():
            if name in names:
                await in_thread(library.files.check_whole)

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
        override = self._model if self._everywhere or worker.id == self._entry else None
        names = worker.model if override is None else (override,)
        for name in names:
            if (calls_model(name) or not self._everywhere) and not worker.accepts_model(name):
                allowed = ", ".join(worker.compatible_models or ())
                raise ModelError(f"worker {worker.id} cannot use {name}; it is compatible with {allowed}")
        return names

    def check_model(self, worker: Worker) -> None:
        """See that a worker has a model that can be opened, before a run of it is begun.

        Raises:
            ModelError: It has none, or one of its chain is ruled out or has a name of no known form.
        """
        check_names(worker.id, self.models_of(worker))

    async def check(self, worker: Worker) -> None:
        """See that nothing is wrong with a worker that shows without its input, before a run of it is begun.

        Raises:
            ProjectError: Its library, its templates, or its functions.
        """
        await self._check_libraries({worker.library})
        await self.declarations(worker)
        if problems := await in_thread(self._renderer().problems, self.project, (worker,)):
            raise together(problems)

    def rules_of(self, worker: Worker) -> tuple[Rule, ...]:
        """The policy for what a worker calls."""
        own = rules.of_worker(self.project, worker, self._own_names(worker))
        return (*own, *self.generated.rules(worker))

    def rules_without_effect(self, worker: Worker) -> tuple[Rule, ...]:
        """What a worker says of functions that changes nothing of the policy."""
        own_names = self._own_names(worker)
        return rules.without_effect(worker, own_names, libraries=bool(self.project.libraries))

    def _own_names(self, worker: Worker) -> dict[str, str]:
        """The workers that a worker calls as tools of their own names: name → id, as far as its rules may need it."""
        callees = self.callees_of(worker) if worker.tool_rules else ()
        return {delegation.own_name(callee): callee.id for callee in callees if callee.input_schema is not None}

    def _hidden(
        self, worker: Worker, declarations: Sequence[Declaration], policy: Sequence[Rule], unattended: bool
    ) -> tuple[str, ...]:
        """The functions that a worker's model is not told of, since calls of them could only be refused."""

        def may_be_made(declaration: Declaration) -> bool:
            answers = overview.answers(policy, declaration, "worker")
            may_ask = not unattended and not self.approvals.hides(worker.id, declaration.name)
            return "allow" in answers or ("ask" in answers and may_ask)

        return tuple(declaration.shown for declaration in declarations if not may_be_made(declaration))

    async def declarations(self, worker: Worker, more: Sequence[Root] = ()) -> tuple[Declaration, ...]:
        """The functions that a worker is given. Those of the project's Python are looked at in the tool host.

        Args:
            worker: Who gets them.
            more: Folders that it has in this one call, besides its own.

        Raises:
            ProjectError: Tools that cannot be used, or two functions of one name.
        """
        shown: dict[str, Declaration] = {}
        of_provider = {tool["tool_type"] for tool in server_side_tools_of(worker)}
        for declaration in (*self.built_in(worker, more), *await self._custom(worker)):
            if shown.setdefault(declaration.shown, declaration) is not declaration:
                both = f"{shown[declaration.shown].name} and {declaration.name}"
                raise ProjectError(f"two functions are called {declaration.shown!r}: {both}", path=worker.path)
            if declaration.shown in of_provider:
                both = f"{declaration.name}, and the one of server_side_tools; rename the function"
                raise ProjectError(f"two tools are called {declaration.shown!r}: {both}", path=worker.path)
        return tuple(shown.values())

    def built_in(self, worker: Worker, more: Sequence[Root] = ()) -> tuple[Declaration, ...]:
        """The functions that a worker is given without any of the project's Python. Arguments as for `declarations`.

        Raises:
            ProjectError: Settings of a toolset that cannot be used.
        """
        toolsets, policy = worker.toolsets, self.rules_of(worker)
        roots = (*worker.roots, *more)
        found: list[Declaration] = []
        if toolsets.filesystem is not None:
            found += filesystem.declare(roots)
        found += self.delegation_of(worker, roots)
        found += creation.declare(worker, policy)
        if toolsets.te is not None:
            found += search.declare(self.project, roots, rules.restricted(roots, policy, "worker"))
        if toolsets.shell is not None:
            usual = rules.searchable(roots, policy)
            found += shell.declare(toolsets.shell, roots, usual, worker.path)
        return tuple(found)

    def delegation_of(self, worker: Worker, roots: Sequence[Root]) -> tuple[Declaration, ...]:
        """The calls of other workers that a worker is given; what lies in `roots` it can attach."""
        allowed = worker.allow_workers or ()
        return delegation.declare(
            self.callees_of(worker),
            allowed,
            roots,
            worker.attachment_policy,
            worker.lock_worker,
            worker.library,
            made=worker.calls_made_workers,
        )

    def callees_of(self, worker: Worker) -> tuple[Worker, ...]:
        """The workers that a worker may call, as far as they are there and whole."""
        found = []
        for name in self.named_callees(worker):
            with contextlib.suppress(ProjectError):  # one that is broken or missing is told of when it is called
                found.append(self.project.worker(name, from_library=worker.library))
        return tuple(found)

    def named_callees(self, worker: Worker) -> tuple[str, ...]:
        """The ids of the workers that a worker may call, whole or not; globs are looked up in the scan."""
        named = [name for name in worker.delegates_to if not is_glob(name)]
        if len(named) < len(worker.delegates_to):
            named += [name for name in self.project.within_reach(worker.library) if worker.may_call(name)]
        return tuple(dict.fromkeys(named))

    def check_python(self, worker: Worker) -> None:
        """See, without running any, that a worker names no Python that it cannot be given.

        Raises:
            ToolModuleError: None may be loaded, or there is none.
        """
        named = worker.named_tools or ()
        if (refused := self.project.hosting.refused) is not None:
            if asked := (*named, *worker.imported_tool_modules):
                names = ", ".join("all functions" if name == EVERY_FUNCTION else name for name in asked)
                raise ToolModuleError(f"worker {worker.id} names {names}, and {refused}")
        elif EVERY_FUNCTION not in named and not tool_modules_of(worker):
            for name in named:
                raise ToolModuleError(f"worker {worker.id}: there is no tool {name!r}: no tool module was found")

    @property
    def unusable(self) -> Mapping[str, ToolModuleError]:
        """The exported workers that name Python that they cannot be given, as far as that is known by now.

        What is in the Python is known of workers that somebody has looked at: those that were called.
        """
        if self._refused is None:
            self._refused = {}
            for worker in self.project.exported():
                try:
                    self.check_python(worker)
                except ToolModuleError as error:
                    self._refused[worker.id] = error
        return {**self._unusable, **self._refused}

    async def _custom(self, worker: Worker) -> tuple[Declaration, ...]:
        named = worker.named_tools
        every = named is not None and EVERY_FUNCTION in named
        unnamed = (*worker.imported_tool_modules, *(() if named is not None else worker.own_tool_modules))
        self.check_python(worker)
        modules = () if self.project.hosting.refused is not None else tool_modules_of(worker)
        if not modules:
            return ()
        levels = await self._described(modules, worker, None if every else named or (), unnamed)
        described = {module.path: module for level in levels for module in level}
        wanted = None if every else dict.fromkeys(named or ())
        if wanted is not None:
            # Importing a module, or having it in one's own folder, names its functions.
            wholly = (name for path in unnamed for name in custom.offered(described[path]))
            wanted.update({name: None for name in wholly if ":" not in name})
        try:
            for path in unnamed:
                custom.check_loads(described[path])
            for path in (*worker.imported_tool_modules, *map(normal, self.project.manifest.tools.modules)):
                if path in described:
                    custom.check_offers(described[path])
            given = custom.declare(levels, wanted)
        except ToolModuleError as error:
            self._unusable[worker.id] = broken = ToolModuleError(f"worker {worker.id}: {error}")
            raise broken from None
        self._unusable.pop(worker.id, None)
        return given

    async def _described(
        self, modules: Collection[str], worker: Worker, named: Collection[str] | None, whole: Collection[str]
    ) -> list[tuple[ToolModule, ...]]:
        """What modules hold, in groups of equally near ones, the nearest first; no farther than is of use.

        What lies farther than all that is named is not imported, nor what lies farther than a module that does not
        load: there nothing is known to be the nearest.

        Args:
            modules: The modules, nearest first.
            worker: Whose.
            named: The functions that it names; None for all.
            whole: Modules of which it has all functions.
        """
        levels: dict[object, list[str]] = {}
        for path in sorted(modules, key=lambda path: library_of(path) not in (worker.library, None)):
            levels.setdefault(_nearness(path, worker), []).append(path)
        found: list[tuple[ToolModule, ...]] = []
        missing, ahead = None if named is None else set(named), set(whole)
        for paths in levels.values():
            if missing is not None and not missing and not ahead:
                break
            found.append(level := await self.python.describe(paths))
            ahead.difference_update(paths)
            if missing is not None:
                missing.difference_update(name for module in level for name in custom.offered(module))
                if any(module.error for module in level):
                    missing.clear()
        return found

    # ---- functions and models

    async def bind(self, run: Run) -> Functions:
        """The functions of a run's definition, with their code."""
        if run.tree.resumed:
            await self.generated.restore(run.tree)
        return Functions(tuple(self._bind(self.attached.placed(one, run)) for one in run.definition.functions))

    def _of_files(self, declaration: Declaration) -> Function:
        return filesystem.bind(declaration, self.handles, self.session)

    def _bind(self, declaration: Declaration) -> Function:
        if declaration.toolset == "filesystem":
            return self._files.of(declaration)
        if declaration.toolset == "delegation":
            return delegation.bind(declaration, self)
        if declaration.toolset == "creation":
            return creation.bind(declaration, self)
        if declaration.toolset == "te":
            return search.bind(declaration, self.handles)
        if declaration.toolset == "shell":
            return shell.bind(declaration, self.handles)
        return custom.bind(declaration, self.python)

    async def body(self, run: Run) -> JSON:
        """Drives a run: all that is below it has the project, and its Python, as they were when it began."""
        if run.definition.only_reads:  # it needs neither
            return await work(run, self)
        if self._snapshot is not None:
            async with self.attached.laid_out(run):
                return await work(run, self)
        with self.host.snapshot() as host:
            bench = copy.copy(self)
            bench._snapshot = host
            return await bench.body(run)

    async def freeze(self, worker: Worker) -> None:
        """Let what a worker and those that it may call are made of be what it is now, whatever is edited meanwhile.

        What only a glob of a worker farther down lets be called is frozen when that worker is called.
        """

        def below() -> set[str]:
            workers = (*self.project.closure(worker), *self.callees_of(worker))
            return {module for one in workers for module in tool_modules_of(one)}

        await self.python.keep(await in_thread(below))  # a class as a schema takes its time

    def model(self, name: str, tree: Tree) -> Model:
        """A model by its name, for a run; one instance serves all runs, but for their clients' own models."""
        manifest = self.project.manifest
        capabilities = manifest.capabilities
        opened_by = (name, manifest.base_url, json.dumps(capabilities))
        if opened_by in self._models:
            return self._models[opened_by]
        opened = open_model(
            name,
            project_root=self.project.root,
            toolhost=self.host,
            records=tree.store.events,
            sample=tree.sample,
            base_url=manifest.base_url,
            capabilities=capabilities,
        )
        return opened if is_sampling(name) else self._models.setdefault(opened_by, opened)

    def cost(self, model: str, usage: Usage) -> float | None:
        """US dollars that a turn of a model cost; None where its price is not known."""
        from llm_do_mcp.models.prices import cost

        manifest = self.project.manifest
        return cost(model, usage, manifest.prices, manifest.base_url)

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
        self.attached.close()


UNBOUND = Limits(max_turns=10**9, max_tool_calls=10**9, max_tokens=10**12, timeout_s=10**9, max_depth=10**9)
"""A call by a client has no limits of its own; the worker it calls has."""


def tool_modules_of(worker: Worker) -> tuple[str, ...]:
    """The modules that a worker's functions may come from, nearest first."""
    modules = worker.tool_modules if worker.named_tools is not None else worker.own_tool_modules
    return tuple(dict.fromkeys((*modules, *worker.imported_tool_modules)))


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
    return Limits(**worker.limits.model_dump(exclude_none=True))
