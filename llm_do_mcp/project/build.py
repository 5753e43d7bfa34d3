"""From a worker's file to the effective worker: defaults merged in, references resolved, schemas complete.

All that is wrong with one worker is found in one go, each problem with its place in the worker's file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_do_mcp.errors import InvalidFile, InvalidReference, NotLookedUp, ProjectError, WorkerNotFound
from llm_do_mcp.project import classes, roots, schema, toolmodules
from llm_do_mcp.project.checked import collecting, in_order, quoted
from llm_do_mcp.project.classes import ClassSchemas
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.files import decode
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.paths import join, parent, project_path
from llm_do_mcp.project.protected import is_loadable
from llm_do_mcp.project.references import as_glob
from llm_do_mcp.project.resolve import Found, Level, resolve
from llm_do_mcp.project.schema_files import SelfContained
from llm_do_mcp.project.settings import (
    ApprovalRule,
    AttachmentPolicy,
    Delegation,
    Limits,
    SandboxSettings,
    Toolsets,
    merge,
    narrowed,
)
from llm_do_mcp.project.strictyaml import Document, KeyPath
from llm_do_mcp.project.worker import Template, WorkerFile, WorkerSource, draft_worker
from llm_do_mcp.sandbox.root import Root

PROMPT_SUFFIXES = (".jinja2", ".j2", ".txt", ".md")
CALLS = {"toolsets", "allow_workers", "tools", "tool_rules", "approvals", "imports", "sandbox"}
"""The keys that say what a worker may call, and what of that runs or asks."""


@dataclass(frozen=True)
class Defaults:
    """What every worker of a project, or of one of its libraries, starts from.

    A library's workers have the project's model, and their own where it has none; its limits, or less; its policy
    before their own; and of its sandbox what is granted.

    Args:
        root: The folder of the project or library, absolute and without links.
        manifest: Its manifest.
        document: The manifest's file, for the places; None where there is none.
        tool_modules: The Python files that hold tools for all its workers.
        protected: Patterns, relative to the root, of what no worker can write.
        model: The model and its fallbacks where neither worker nor manifest names one; for a library those that the
            project has, which come first.
        approvals: The project's policy.
        limits: The limits that a worker can change; one of a library only to less.
        classes: The schemas of classes.
        module_imports: Whether modules may be imported by their name in Python.
        network_enabled: False denies the network, whatever a worker says.
        granted: alias → the project's root, of those that a library's workers have; None for the project itself.
        grants: What the project's manifest says of them; None for the project itself.
        libraries: Name → folder of the project's libraries: no worker can write there.
        schemas: Path → schema of the JSON files so far: workers that refer to one file share it.
    """

    root: str
    manifest: Manifest
    document: Document | None
    tool_modules: tuple[str, ...]
    protected: tuple[str, ...]
    model: tuple[str, ...]
    approvals: tuple[ApprovalRule, ...]
    limits: Limits | None
    classes: ClassSchemas
    module_imports: bool
    network_enabled: bool = True
    granted: Mapping[str, Root] | None = None
    grants: SandboxSettings | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    schemas: dict[str, schema.Schema] = field(default_factory=dict, init=False, repr=False, compare=False)


class BrokenWorker(InvalidFile):
    """A worker that cannot be used, and what it amounts to but for that: `check` looks at the rest as well.

    Args:
        problems: All that is wrong in its file.
        draft: The worker, without what is wrong.
        faulty: The keys at the top of its file that the draft goes without.
    """

    def __init__(self, problems: Sequence[ProjectError], draft: Worker, faulty: frozenset[str]) -> None:
        super().__init__(problems)
        self.draft, self.faulty = draft, faulty

    @property
    def calls_are_known(self) -> bool:
        """Whether the draft is given all that the worker would be, and the rules for it."""
        return self.faulty <= WorkerFile.model_fields.keys() - CALLS


def build(found: Found, levels: Sequence[Level], defaults: Defaults, content: bytes | None = None) -> Worker:
    """Load one worker.

    Args:
        found: Its file.
        levels: Where its references are looked up.
        defaults: What it starts from.
        content: What its file holds, where there is none to read.

    Raises:
        BrokenWorker: With everything that is wrong in its file.
        ProjectError: The file cannot be read at all.
    """
    return _Build(found, levels, defaults, content).worker()


class _Build:
    """One worker on its way from file to `Worker`; problems are collected, not raised one by one."""

    def __init__(self, found: Found, levels: Sequence[Level], defaults: Defaults, content: bytes | None = None) -> None:
        self.found, self.levels, self.defaults = found, levels, defaults
        self.files = found.level.files
        content = self.files.read_bytes(found.path) if content is None else content
        self.path = self.files.shown(found.path)
        self.source: WorkerSource = draft_worker(decode(content, self.path), self.path)
        self.problems: list[ProjectError] = [*self.source.problems]

    def worker(self) -> Worker:
        keys, manifest = self.source.keys, self.defaults.manifest
        toolsets = merge(manifest.toolsets, keys.toolsets, Toolsets())
        sandbox = merge(manifest.sandbox, keys.sandbox, SandboxSettings())
        own = toolmodules.labelled(self.files, self._own_tool_modules())
        imported = toolmodules.labelled(self.files, self._imported_tool_modules())
        lock_worker = self._lock_worker(toolsets.delegation)
        worker = Worker(
            id=self.found.canonical,
            path=self.path,
            library=self.found.level.library,
            instructions=self._instructions(),
            folder=self.found.folder,
            description=keys.description or "",
            model=self._model(),
            compatible_models=keys.compatible_models,
            prompt=self.source.template("prompt") if keys.prompt is not None else None,
            fragments=self._texts("fragments", keys.fragments),
            system_fragments=self._texts("system_fragments", keys.system_fragments),
            params=keys.params,
            input_schema=self._schema("input_schema", "schema_in_ref"),
            output_schema=self._schema("output_schema", "schema_object", "output_schema_ref"),
            toolsets=toolsets,
            tools=keys.tools,
            allow_workers=self._allow_workers(toolsets.delegation, lock_worker),
            lock_worker=lock_worker,
            imports=self._imports(),
            tool_rules=keys.tool_rules,
            approvals=(*self.defaults.approvals, *keys.approvals),
            sandbox=merge(sandbox, self.defaults.grants, SandboxSettings()),
            roots=self._roots(sandbox),
            network_enabled=self.defaults.network_enabled and sandbox.network_enabled is not False,
            attachment_policy=merge(manifest.attachment_policy, keys.attachment_policy, AttachmentPolicy()),
            server_side_tools=keys.server_side_tools,
            limits=self._limits(),
            tool_modules=toolmodules.nearest_first(own, imported, self.defaults.tool_modules),
            own_tool_modules=own,
            imported_tool_modules=imported,
            locked=keys.locked,
        )
        self._check(worker)
        if self.problems:
            raise BrokenWorker(in_order(self.problems), worker, self.source.faulty)
        return worker

    def _is_known(self, *keys: str) -> bool:
        """Whether nothing is wrong with keys, so that what follows from them can be told."""
        return self.source.faulty.isdisjoint(keys)

    def _problem(self, message: str, *location: str | int) -> None:
        self.problems.append(self.source.document.error(message, location))

    @contextlib.contextmanager
    def _pointing_at(self, *location: str | int) -> Iterator[None]:
        """Errors that name no place of their own are about a value in the worker's file."""
        with collecting(self.problems):
            try:
                yield
            except (InvalidFile, NotLookedUp):
                raise
            except ProjectError as error:
                if error.path is not None:
                    raise
                raise self.source.document.error(error.message, location) from None

    def _check(self, worker: Worker) -> None:
        keys = self.source.keys
        if keys.name is not None and keys.name != self.found.id:
            problem = f"name {quoted(keys.name)} is not the id that the file's place gives, {self.found.id!r}"
            self._problem(problem, "name")
        for model in worker.model if self._is_known("model", "compatible_models") else ():
            if not worker.accepts_model(model):
                globs = ", ".join(worker.compatible_models or ())
                location = ("model",) if model in keys.model else ("compatible_models",)
                self._problem(f"model {quoted(model)} is not among the compatible_models: {globs}", *location)
        properties = (worker.input_schema or {}).get("properties", {})
        if "input" in properties:
            key = "schema_in_ref" if keys.input_schema is None else "input_schema"
            self._problem("a property called 'input' would hide the template variable 'input'; rename it", key)
        for name in worker.params:
            if name in properties:
                self._problem(f"parameter {name!r} is also a property of the input schema; rename one", "params", name)

    def _model(self) -> tuple[str, ...]:
        """The model and its fallbacks: who uses a library says what is spent, and where its text is sent."""
        own = self.source.keys.model or self.defaults.manifest.model
        given = self.defaults.model
        return own or given if self.found.level.library is None else given or own

    def _limits(self) -> Limits:
        own = self.source.keys.limits
        if self.found.level.library is None:
            return merge(self.defaults.limits, own, Limits())
        return narrowed(self.defaults.limits, own)

    def _instructions(self) -> Template:
        keys = self.source.keys
        if keys.instructions is not None:
            return self.source.template("instructions")
        if keys.system is not None:
            return self.source.template("system")
        if self.source.body is not None and self.source.body.text.strip():
            return self.source.body
        stem = join(self.defaults.manifest.prompts.root, self.found.id)
        prompts = [path for suffix in PROMPT_SUFFIXES if self.files.kind(path := stem + suffix) == "file"]
        if len(prompts) > 1:
            self._problem(f"more than one prompt file: {', '.join(prompts)}; keep one")
        if prompts:
            content, shown = self.files.read_bytes(prompts[0]), self.files.shown(prompts[0])
            return Template(decode(content, shown), shown)
        if keys.prompt is None and self._is_known("instructions", "system", "prompt"):
            body = self.source.body
            where = "under 'instructions'" if body is None else "below the front matter"
            message = f"no instructions; write them {where} or in {stem}.md"
            self.problems.append(ProjectError(message, path=self.path, line=1 if body is None else body.line, column=1))
        return Template("", self.path)

    def _roots(self, sandbox: SandboxSettings) -> tuple[Root, ...]:
        """The worker's folders; what is wrong with them is a problem."""
        if self.defaults.granted is not None:
            return tuple(self._granted(sandbox, self.defaults.granted))
        keys, manifest = self.source.keys.sandbox, self.defaults.manifest.sandbox
        inherited = manifest.paths if manifest is not None else ()
        wrong = list(
            roots.problems(self.source.document, keys, self.defaults.root, absolute=False, inherited=inherited)
        )
        self.problems += wrong
        found = () if wrong else roots.roots(sandbox.paths, self.defaults.root, self.defaults.protected)
        for alias, complaint in roots.reached(found, self.defaults.libraries):
            self._problem(f"sandbox.paths.{alias}: {complaint}", "sandbox", "paths", alias)
        return found

    def _granted(self, sandbox: SandboxSettings, granted: Mapping[str, Root]) -> Iterator[Root]:
        library, own = self.found.level.library, self.source.keys.sandbox
        for alias, root in roots.of_library(sandbox.paths, granted, self.defaults.root):
            if isinstance(root, Root):
                yield root
                continue
            said = self.source.document if own and alias in own.paths else self.defaults.document
            assert said is not None  # it is one of the two that names the alias
            how = "" if alias in granted else f"; the project can grant it: `grants: {{{library}: [{alias}]}}`"
            self.problems.append(said.error(f"sandbox.paths.{alias}: {root}{how}", ("sandbox", "paths", alias)))

    def _texts(self, key: str, texts: tuple[str, ...]) -> tuple[Template, ...]:
        if isinstance(self.source.document.data.get(key), str):
            return (self.source.template(key),)
        return tuple(self.source.template(key, index) for index in range(len(texts)))

    def _schema(self, *keys: str) -> Mapping[str, Any] | None:
        """The schema that one of several keys gives: inline, or a reference where the key ends in `_ref`."""
        data = self.source.document.data
        key = next((key for key in keys if data.get(key) is not None and self._is_known(key)), None)
        if key is None:
            return None
        with self._pointing_at(key):
            if key.endswith("_ref"):
                return self._schema_file(data[key])
            return self._inline_schema(key, data[key])
        return None

    def _inline_schema(self, key: str, given: schema.Schema) -> schema.Schema | None:
        wrong = list(schema.problems(given))
        for problem in wrong:
            self._problem(f"{key}: {problem.message}", key, *problem.location)
        if wrong:
            return None

        def error(message: str, location: KeyPath) -> ProjectError:
            return self.source.document.error(f"{key}: {message}", (key, *location))

        try:
            return self._self_contained().inline(given, self._place_of, error)
        except ValueError as whole:
            raise error(str(whole), ()) from None

    def _self_contained(self) -> SelfContained:
        return SelfContained(self._read_schema, self.files.shown)

    def _schema_file(self, reference: str) -> schema.Schema:
        """The schema of a JSON file or of a class, looked for in the worker's folder and then in the root."""
        if reference.endswith(".json"):
            place = self._place_of(reference)
            if place not in self.defaults.schemas:
                self.defaults.schemas[place] = self._self_contained().file(place)
            return self.defaults.schemas[place]
        if (named := classes.in_file(reference)) is not None:
            place = self._place_of(named[0])
            self._read_schema(place)  # so that it is known to matter what the file holds
            return self.defaults.classes.schema(self.files.shown(place), named[1])
        module, name = classes.in_module(reference)
        if not self.defaults.module_imports:
            raise InvalidReference(f"modules such as that of {quoted(reference)} are not allowed; {toolmodules.ALLOW}")
        return self.defaults.classes.schema(module, name)

    def _place_of(self, reference: str) -> str:
        """The file that a reference means, in the worker's folder or in the root."""
        try:
            path = project_path(reference)
        except ValueError as error:
            raise InvalidReference(str(error)) from None
        places = list(dict.fromkeys(join(folder, path) for folder in (parent(self.found.path), "")))
        existing = next((place for place in places if self.files.kind(place) == "file"), None)
        if existing is None:
            raise ProjectError(f"no schema file {quoted(reference)} (looked for {', '.join(places)})")
        return existing

    def _is_loadable(self, path: str) -> bool:
        return is_loadable(path, self.defaults.protected)

    def _read_schema(self, path: str) -> bytes:
        if not self._is_loadable(path):
            message = "schemas are not loaded from here, where a worker may write; put the file into schemas/"
            raise ProjectError(message, path=self.files.shown(path))
        return self.files.read_bytes(path)

    def _own_tool_modules(self) -> tuple[str, ...]:
        if self.found.folder is not None:
            with self._pointing_at():
                return toolmodules.of_folder(self.files, self.found.folder)
            return ()
        at_the_root = "/" not in self.found.path  # the project's root is the main worker's folder
        return toolmodules.of_folder(self.files, "") if at_the_root else ()

    def _imported_tool_modules(self) -> tuple[str, ...]:
        good = []
        for index, reference in enumerate(self.source.keys.imports.tools):
            with self._pointing_at("imports", "tools", index):
                allowed = self.defaults.module_imports
                if wrong := toolmodules.reference_problem(
                    reference, self.files, self._is_loadable, module_imports=allowed
                ):
                    self._problem(wrong, "imports", "tools", index)
                else:
                    good.append(toolmodules.normal(reference))
        return tuple(good)

    def _imports(self) -> tuple[str, ...]:
        ids = []
        for index, reference in enumerate(self.source.keys.imports.workers):
            with self._pointing_at("imports", "workers", index):
                ids.append(resolve(reference, self.levels).canonical)
        return tuple(ids)

    def _allow_workers(self, delegation: Delegation | None, lock_worker: str | None) -> tuple[str, ...] | None:
        allowed = self.source.keys.allow_workers
        if allowed is None and delegation is None:
            return None
        ids: list[str] = []
        for reference in allowed or ():
            with self._pointing_at("allow_workers"):
                ids.append(self._permitted(reference))
        if delegation is not None:
            for reference in (*(delegation.allow_workers or ()), *(delegation.allow_templates or ())):
                with self._pointing_at("toolsets", "delegation", "allow_workers"):
                    ids.append(self._permitted(reference))
        if lock_worker is not None:
            ids.append(lock_worker)
        made = delegation is not None and delegation.worker_create is not None and delegation.worker_create.enabled
        known = self._is_known("toolsets", "allow_workers")
        if delegation is not None and delegation.worker_call and not ids and not made and known:
            message = "worker_call by itself allows nobody; write `allow_workers: [ids]`, or ['*'] for any worker"
            self._problem(message, "toolsets", "delegation", "worker_call")
        return tuple(dict.fromkeys(ids))

    def _lock_worker(self, delegation: Delegation | None) -> str | None:
        lock = delegation and (delegation.lock_worker or delegation.lock_template)
        if not lock:
            return None
        with self._pointing_at("toolsets", "delegation"):
            return resolve(lock, self.levels).canonical
        return None

    def _permitted(self, reference: str) -> str:
        """An entry of an allow list as an id, or a glob on ids; one that means no worker is kept as it is."""
        level = self.found.level
        if (glob := as_glob(reference, level.section.root)) is not None:
            return glob if ":" in glob else level.canonical(glob)
        try:
            return resolve(reference, self.levels).canonical
        except WorkerNotFound:
            parsed = level.parse(reference)
            return f"{parsed.library}:{parsed.id}" if parsed.library else level.canonical(parsed.id)
