"""`llm-do lib list` and `llm-do lib info`: which libraries there are, and what one is and where it came from."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from typing import Any

from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project import contents
from llm_do_mcp.project.installing import folders, record_of
from llm_do_mcp.project.library import Spec, locate, places, read_library
from llm_do_mcp.runtime.display import escape

BY_HAND = "(put there by hand)"


def show(options: argparse.Namespace) -> int:
    """List the libraries of all places.

    Returns:
        The exit code.
    """
    found = {place: [_listed(place, folder) for folder in folders(place)] for place in places(options.libs)}
    if options.json:
        print(json.dumps([one for libraries in found.values() for one in libraries], indent=2, ensure_ascii=False))
        return DONE
    for place, libraries in found.items():
        print(escape(place))
        for one in libraries:
            whole = f"{one['version'] or '-':10}  {one['from'] or BY_HAND}"
            print(escape(f"  {one['folder']:24}  " + (f"broken: {one['error']}" if one["error"] else whole)))
        if not libraries:
            print("  (none)")
    return DONE


def info(options: argparse.Namespace) -> int:
    """Show one library, as a project would find it.

    Returns:
        The exit code.
    """
    spec = Spec.parse(options.name)
    root = locate(spec, places(options.libs))
    library = read_library(root, spec.name)
    files = contents.digests(library.root)
    content = contents.content_hash(files)
    record = record_of(library.root)
    found = {
        "name": library.name,
        "version": library.version,
        "description": library.manifest.description,
        "exports": list(library.exports),
        "dependencies": list(library.manifest.dependencies),
        "content": content,
        "files": len(files),
        "folder": root,
        "from": record.shown if record else None,
        "commit": record.commit if record else None,
        "installed": record.installed if record else None,
        "changed": record is not None and record.content != content,
    }
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return DONE
    changed = " (changed since)" if found["changed"] else ""
    shown = {
        **{key: found[key] for key in ("name", "version", "description")},
        "exports": ", ".join(library.exports),
        "dependencies": ", ".join(library.manifest.dependencies),
        "content": f"{content} ({len(files)} files)",
        "folder": root,
        "from": record.shown if record else BY_HAND,
        "installed": f"{record.installed}{changed}" if record else None,
    }
    for key, value in shown.items():
        if value:
            print(escape(f"{key:13} {value}"))
    return DONE


def _listed(place: str, folder: str) -> dict[str, Any]:
    """What a list says of one library. Its files are not read: only its manifest and its record are."""
    root = os.path.join(place, folder)
    record = record_of(root)
    listed: dict[str, Any] = {
        "folder": folder,
        "place": place,
        "version": None,
        "description": None,
        "from": record.shown if record else None,
        "record": asdict(record) if record else None,
        "error": None,
    }
    try:
        library = read_library(root, Spec.parse(folder).name)
    except ProjectError as error:
        return {**listed, "error": str(error)}
    return {**listed, "version": library.version, "description": library.manifest.description}
