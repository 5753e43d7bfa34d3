"""The `filesystem` toolset: list, read and write files under the caller's sandbox roots.

A worker's model names files `alias/path` and is given three functions for all its roots; an MCP client is given
three per root, with paths below it. Both are the same functions of the gate, `files.list`, `files.read` and
`files.write`, with paths in the one form `alias/path`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llm_do_mcp.models.attachments import attachment
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import DETAIL_CHARS, Call
from llm_do_mcp.runtime.policy import decide
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox.files import NOTHING, Handles, Sandbox
from llm_do_mcp.sandbox.names import one_spelling
from llm_do_mcp.sandbox.opener import WouldWait
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets.envelope import MOST_CHARS
from llm_do_mcp.toolsets.rules import telling_apart

READ_CHARS = 200_000
"""Characters that a read gives where the caller does not say."""
FILE_CHARS = 45
"""What a file of a listing takes besides its path and size, where results show it."""
MORE_CHARS = 200
"""What it takes to say that there are more."""

_MODES = {"ro": "read only", "rw": "read and write", "out": "write; shows only what this run wrote"}


def declare(roots: Sequence[Root]) -> tuple[Declaration, ...]:
    """The file operations over these roots; writing only where one can be written."""
    if not roots:
        return ()
    folders = "; ".join(f"{root.alias} ({_MODES[root.mode]})" for root in roots)
    path = {"type": "string", "description": f"alias/path. Folders: {folders}"}
    options = {"roots": [root.to_json() for root in roots]}
    declarations = [
        Declaration(
            name="files.list",
            shown="list_files",
            description=f"List the files of a folder. Folders: {folders}.",
            input_schema=_object(
                {
                    "path": {**path, "description": f"alias, or alias/folder. Folders: {folders}"},
                    "pattern": {"type": "string", "description": "glob below it, by default **/*"},
                },
                ["path"],
            ),
            output_schema=LISTING,
            risk="read",
            toolset="filesystem",
            options=options,
        ),
        Declaration(
            name="files.read",
            shown="read_file",
            description="Read a text file. A long one is read in parts: go on with `offset`.",
            input_schema=_object(
                {
                    "path": path,
                    "max_chars": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": READ_CHARS},
                    "offset": {"type": "integer", "minimum": 0, "description": "in characters"},
                },
                ["path"],
            ),
            risk="read",
            toolset="filesystem",
            options=options,
        ),
    ]
    if any(root.mode != "ro" for root in roots):
        declarations.append(
            Declaration(
                name="files.write",
                shown="write_file",
                description="Write a text file as a whole; folders on the way are made. A person may be asked first.",
                input_schema=_object({"path": path, "content": {"type": "string"}}, ["path", "content"]),
                output_schema=WRITTEN,
                risk="write",
                toolset="filesystem",
                options=options,
            )
        )
    return tuple(declarations)


def bind(declaration: Declaration, handles: Handles, session: set[tuple[str, str]]) -> Function:
    """A file operation, ready to run.

    Args:
        declaration: Which.
        handles: Open roots.
        session: What all runs of this process have written: what a client sees of `out` roots, since each of its
            calls is a run of its own. A worker sees what its own run wrote.
    """
    roots = tuple(Root.from_json(root) for root in declaration.options["roots"])

    def sandbox(call: Call, *, waits: bool = True) -> Sandbox:
        written = session if call.caller == "client" else _written(call)
        unlinked = telling_apart(roots, call.run.definition.rules, call.caller)
        return Sandbox(roots, written, unlinked=unlinked, handles=handles, waits=waits)

    operation, preview = {
        "files.list": (_complete if declaration.shown == COMPLETE else _list, _preview_of("list files in")),
        "files.read": (_attach if declaration.shown == ATTACH else _read, _preview_of("read the file")),
        "files.write": (_write, _preview_write),
    }[declaration.name]

    async def execute(call: Call) -> JSON:
        if operation is _read:  # what is in memory is read in less time than a thread takes to begin
            with contextlib.suppress(WouldWait):
                return _read(sandbox(call, waits=False), call)
        output: JSON = await in_thread(operation, sandbox(call), call)
        if declaration.name == "files.write":
            session.add(_alias_and_path(output["path"]))
        return output

    async def shown(call: Call) -> Preview:
        return await in_thread(preview, sandbox(call), call)

    return Function(declaration, execute, shown)


# ---- completions: a listing of the first that begin so

COMPLETE = "complete_path"


def declare_completion(roots: Sequence[Root], most: int) -> Declaration:
    """Listing the first paths of a root that begin with a text: the same function as listing, for policy and record.

    Args:
        roots: Where they may be.
        most: How many.
    """
    return Declaration(
        name="files.list",
        shown=COMPLETE,
        description="List the paths that begin so.",
        input_schema=_object({"path": {"type": "string"}, "begun": {"type": "string"}}, ["path", "begun"]),
        risk="read",
        toolset="filesystem",
        options={"roots": [root.to_json() for root in roots], "most": most},
    )


def _complete(sandbox: Sandbox, call: Call) -> JSON:
    alias, listable, most = call.input["path"], _listable(call), call.function.declaration.options["most"]
    return list(sandbox.first(alias, call.input["begun"], most, lambda path: listable(f"{alias}/{path}")))


# ---- attachments: a read whose result is a blob of the run

ATTACH = "attach_file"
BYTES = "application/octet-stream"


def declare_attach(roots: Sequence[Root], *, any_kind: bool = False) -> Declaration:
    """Reading a file as an attachment: the same function as reading it, for policy and record.

    Args:
        roots: Where it may be.
        any_kind: Also what no model can be sent.
    """
    return Declaration(
        name="files.read",
        shown=ATTACH,
        description="Read a file to attach it.",
        input_schema=_object({"path": {"type": "string"}, "max_bytes": {"type": "integer"}}, ["path", "max_bytes"]),
        risk="read",
        toolset="filesystem",
        options={"roots": [root.to_json() for root in roots], **({"any_kind": True} if any_kind else {})},
    )


def _attach(sandbox: Sandbox, call: Call) -> JSON:
    alias, rel = sandbox.split(call.input["path"])
    data = sandbox.read_bytes(alias, rel, call.input["max_bytes"])
    any_kind = call.function.declaration.options.get("any_kind", False)
    media_type = BYTES if any_kind else attachment(call.input["path"], data)["media_type"]
    digest = hashlib.sha256(data).hexdigest()
    call.run.tree.keep(digest, data)
    return {"name": rel.rpartition("/")[2], "media_type": media_type, "blob": digest, "size": len(data)}


# ---- the operations; they block, and run in a thread


def _list(sandbox: Sandbox, call: Call) -> JSON:
    alias, rel = sandbox.split(call.input["path"])
    listing = sandbox.list(alias, call.input.get("pattern") or "**/*", rel)
    files = [{"path": f"{alias}/{entry.path}", "bytes": entry.bytes} for entry in listing.entries]
    listable = _listable(call)
    kept = [file for file in files if listable(str(file["path"]))]
    found: dict[str, JSON] = {"files": [], "total": len(kept) + listing.more}
    skipped = [*listing.skipped, *([f"and {listing.skipped_more} more"] if listing.skipped_more else [])]
    if len(kept) < len(files):
        skipped.append(f"{len(files) - len(kept)} that the policy does not let you list with what is around them")
    if skipped:
        found["skipped"] = skipped
    found["files"] = shown = kept[: _fitting(kept, MOST_CHARS - MORE_CHARS - len(_shown(found)))]
    if more := found["total"] - len(shown):
        found["more"] = f"{more} more, after these in the order of names; list a part by a pattern: src/**, [m-z]*"
    return found


def _fitting(files: Sequence[Mapping[str, JSON]], room: int) -> int:
    """How many of the files, the first ones, results have room for, in characters."""
    for number, file in enumerate(files):
        room -= FILE_CHARS + len(_shown(file["path"])) + len(str(file["bytes"]))
        if room < 0:
            return number
    return len(files)


def _shown(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _listable(call: Call) -> Callable[[str], bool]:
    """Whether a file may be shown among others: what a rule refuses is not, nor what asks where its folder did not."""
    rules, declaration = call.run.definition.rules, call.function.declaration
    if all(rule.subject is None for rule in rules if rule.speaks_of(declaration, call.caller)):
        return lambda path: True  # what holds for the folder holds for all that is in it
    allowed = {"allow", decide(rules, declaration, call.input, call.caller)[0]}
    return lambda path: decide(rules, declaration, {"path": path}, call.caller)[0] in allowed


def _read(sandbox: Sandbox, call: Call) -> JSON:
    alias, rel = sandbox.split(call.input["path"])
    # In JSON Schema 2.0 is an integer too.
    most, offset = int(call.input.get("max_chars", READ_CHARS)), int(call.input.get("offset", 0))
    read = sandbox.read_text(alias, rel, most, offset)
    if not read.truncated:
        return read.text
    end = read.offset + len(read.text)
    rest = f"{read.total_chars - end} more characters of {read.total_chars}; read on with offset {end}"
    if read.unread_bytes_from is not None:
        rest = f"{rest}; nothing beyond byte {read.unread_bytes_from} is read"
    return f"{read.text}\n[{rest}]"


def _write(sandbox: Sandbox, call: Call) -> JSON:
    alias, rel = sandbox.split(call.input["path"])
    written = sandbox.write_text(alias, rel, call.input["content"], over=call.basis)
    return {"path": f"{alias}/{written.path}", "bytes": written.bytes, "created": written.created}


def _written(call: Call) -> set[tuple[str, str]]:
    """What this run has written, for `out` roots."""
    return {
        _alias_and_path(event.data["path"])
        for event in call.run.tree.events.values()
        if event.kind == "files.write" and event.state == "done" and "path" in event.data
    }


def _alias_and_path(path: str) -> tuple[str, str]:
    alias, _, rel = path.partition("/")
    return alias, rel


def _preview_of(action: str) -> Callable[[Sandbox, Call], Preview]:
    def preview(sandbox: Sandbox, call: Call) -> Preview:
        return Preview(action, one_spelling(call.input["path"]), scope=sandbox.split(call.input["path"])[0])

    return preview


def _preview_write(sandbox: Sandbox, call: Call) -> Preview:
    from llm_do_mcp.toolsets.difference import difference

    alias, rel = sandbox.split(call.input["path"])
    target, content = one_spelling(call.input["path"]), call.input["content"]
    sandbox.encoded(alias, rel, content)  # what cannot be written is refused, and nobody is asked
    present = sandbox.present(alias, rel)
    action = "create the file" if present.state == NOTHING else "change the file"
    shown = difference(present, content, most=DETAIL_CHARS)
    return Preview(action, target, shown, scope=alias, basis=present.state)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


LISTING = _object(
    {
        "files": {
            "type": "array",
            "items": _object({"path": {"type": "string"}, "bytes": {"type": "integer"}}, ["path", "bytes"]),
        },
        "total": {"type": "integer", "description": "how many there are, shown or not"},
        "more": {"type": "string"},
        "skipped": {"type": "array", "items": {"type": "string"}},
    },
    ["files", "total"],
)
WRITTEN = _object(
    {"path": {"type": "string"}, "bytes": {"type": "integer"}, "created": {"type": "boolean"}},
    ["path", "bytes", "created"],
)
