"""`llm-do my-worker`: a worker or project that is known by name, from the folders of `LLM_DO_PATH`."""

from __future__ import annotations

import os

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.manifest import MANIFEST_NAMES
from llm_do_mcp.project.references import MAIN_FILE, SUFFIXES, is_id

ENVIRONMENT = "LLM_DO_PATH"
HOME = "~/.llm-do/workers"


def find(given: str) -> str:
    """What is meant by the first word of a command: the path itself where there is something, else a name.

    In each folder of `LLM_DO_PATH`, in order, `NAME.worker` (or `.yaml`, `.yml`) is a worker and `NAME/` a project.

    Args:
        given: A path, or a name such as `my-worker` or `reports/summarizer`.

    Returns:
        The path. A path that is not there is given back as it is: whoever opens it says so best.

    Raises:
        UsageError: Nothing of that name; says where was looked.
        ProjectError: One folder has two of that name.
    """
    if os.path.lexists(given) or not is_id(given):
        return given
    places = _folders()
    for place in places:
        file = os.path.join(place, *given.split("/"))
        found = [file + suffix for suffix in SUFFIXES if os.path.isfile(file + suffix)]
        found += [file] if any(os.path.lexists(os.path.join(file, name)) for name in _OF_A_PROJECT) else []
        if len(found) > 1:
            raise ProjectError(f"{quoted(given)} may be {' or '.join(found)}; name one by its path")
        if found:
            return found[0]
    searched = f"looked for it and for {given}.worker in {', '.join(places) or 'no folder'}"
    raise UsageError(
        f"there is no {quoted(given)} here, and none in {ENVIRONMENT} ({searched}); name a project's folder"
    )


_OF_A_PROJECT = (MAIN_FILE, *MANIFEST_NAMES, "workers")


def _folders() -> tuple[str, ...]:
    """The folders of `LLM_DO_PATH`, in order.

    Raises:
        UsageError: One is not absolute.
    """
    found = []
    for folder in os.environ.get(ENVIRONMENT, HOME).split(os.pathsep):
        if not folder:
            continue  # as `A::B` or a trailing colon leave one; it never means the working directory
        if not os.path.isabs(expanded := os.path.expanduser(folder)):
            raise UsageError(f"{ENVIRONMENT}: {quoted(folder)} is not absolute; it would mean another folder elsewhere")
        found.append(os.path.normpath(expanded))
    return tuple(dict.fromkeys(found))
