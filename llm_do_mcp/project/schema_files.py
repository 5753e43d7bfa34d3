"""JSON Schemas from files, or written in a worker: what they refer to is taken in, so that they stand for themselves.

References between schema files are followed through the project's own files. In a file a reference starts at the file;
in a worker it is looked for as all schemas of a worker are, so that a schema may be moved into a file of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.files import decode
from llm_do_mcp.project.paths import join, parent, project_path
from llm_do_mcp.project.schema import Schema, at, changed, problems, published
from llm_do_mcp.project.strictyaml import KeyPath

Find = Callable[[str], str]
"""The path in the project of a file that a reference names."""
Error = Callable[[str, KeyPath], ProjectError]
"""A message, and where in the schema, as an error that names the place."""


def parse_json(text: str, path: str) -> Any:
    """JSON without the surprises: no doubled keys, no NaN, no endless nesting.

    Raises:
        ProjectError: With the place where it can be told.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in items:
            if key in mapping:
                raise ProjectError(f"key {quoted(key)} is given twice in one object", path=path)
            mapping[key] = value
        return mapping

    def constant(name: str) -> Any:
        raise ProjectError(f"{name} is not JSON", path=path)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise ProjectError(message, path=path, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError):
        raise ProjectError("nested too deeply, or a number of too many digits", path=path) from None


class SelfContained:
    """Takes the files that a schema refers to into its `$defs`.

    Args:
        read: A file's bytes, by its path in the project; raises `ProjectError` where it may not be loaded.
        shown: A path as a person would name it.
    """

    def __init__(self, read: Callable[[str], bytes], shown: Callable[[str], str]) -> None:
        self._read, self._shown = read, shown
        self._taken_in: dict[str, str] = {}
        self._definitions: Schema = {}
        self._names: set[str] = set()

    def file(self, path: str) -> Schema:
        """The schema in a file, self-contained and published.

        Raises:
            ProjectError: What is wrong, in which file.
        """
        schema = self._load(path)
        if not isinstance(schema, dict):
            raise ProjectError("a schema is a mapping of keywords", path=self._shown(path))
        self._taken_in[path] = ""
        try:
            return published(self._whole(schema, self._beside(path), self._in_file(path)))
        except ValueError as error:
            raise ProjectError(str(error), path=self._shown(path)) from None

    def inline(self, schema: Schema, find: Find, error: Error) -> Schema:
        """A schema that is part of another file, self-contained and published.

        Args:
            schema: Of which the form was checked.
            find: The path in the project of a file that it refers to.
            error: A message, and where in the schema, as an error with its place in the file.

        Raises:
            ProjectError: What is wrong with its references.
            ValueError: What is wrong with the schema as a whole.
        """
        return published(self._whole(schema, find, error))

    def _whole(self, schema: Schema, find: Find, error: Error) -> Schema:
        self._names = set(schema.get("$defs", ()))
        whole = self._rewritten(schema, "", find, error)
        if self._definitions:
            whole["$defs"] = {**whole.get("$defs", {}), **self._definitions}
        return whole

    def _load(self, path: str) -> Any:
        shown = self._shown(path)
        schema = parse_json(decode(self._read(path), shown), shown)
        for problem in problems(schema):
            raise self._in_file(path)(problem.message, problem.location)
        return schema

    def _in_file(self, path: str) -> Error:
        """What makes errors of a JSON file, whose lines nobody has counted."""

        def error(message: str, location: KeyPath) -> ProjectError:
            where = "/".join(map(str, location)) or "the root"
            return ProjectError(f"{message} (at {where})", path=self._shown(path))

        return error

    @staticmethod
    def _beside(path: str) -> Find:
        return lambda reference: project_path(join(parent(path), reference))

    def _rewritten(self, document: Schema, place: str, find: Find, error: Error) -> Schema:
        """A copy of a schema in which every reference leads to a place in the whole.

        Args:
            document: The schema.
            place: Where in the whole it lies, as a reference without `#`.
            find: The path in the project of a file that it refers to.
            error: A message, and where in the schema, as an error.
        """

        def rewrite(schema: Schema, location: KeyPath) -> Schema:
            schema.pop("$schema", None)  # what passes the form check means the same in 2020-12
            schema.pop("$id", None)  # it would change what the references mean
            if schema.get("type") == "array" and not schema.keys() & {"items", "prefixItems"}:
                schema["items"] = {}  # means the same, and some hosts refuse an array without it
            if "$ref" in schema:
                ref = schema["$ref"]
                try:
                    schema["$ref"] = self._reference(ref, document, place, find)
                except (ValueError, ProjectError) as problem:
                    if isinstance(problem, ProjectError) and problem.path is not None:
                        raise  # it is about the file that is referred to
                    raise error(f"$ref {quoted(ref)}: {problem}", (*location, "$ref")) from None
            return schema

        rewritten: Schema = changed(document, rewrite)
        return rewritten

    def _reference(self, ref: str, document: Schema, place: str, find: Find) -> str:
        target, _, fragment = ref.partition("#")
        if fragment and not fragment.startswith("/"):
            raise ValueError("anchors are not supported; write #/$defs/name")
        if ":" in target:
            raise ValueError("only files of the project can be referred to")
        if target:
            file = find(unquote(target))
            document = self._take_in(file)
            place = self._taken_in[file]
        if at(document, f"#{fragment}") is None:
            raise ValueError("it leads to no schema")
        return f"#{place}{fragment}"

    def _take_in(self, path: str) -> Any:
        """Another file's schema, put under `$defs` once."""
        schema = self._load(path)
        if path not in self._taken_in:
            name = re.sub(r"[^A-Za-z0-9_]+", "_", path.removesuffix(".json"))
            while name in self._names:
                name += "_"
            self._names.add(name)
            self._taken_in[path] = place = f"/$defs/{name}"
            self._definitions[name] = {}
            self._definitions[name] = self._rewritten(schema, place, self._beside(path), self._in_file(path))
        return schema
