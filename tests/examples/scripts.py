"""Where the examples lie, and the scripts of one as modules: they belong to no package, so they are loaded by path."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).parents[2]
PROJECT = REPOSITORY / "projects" / "pitchdeck_eval"


def copied(project: str, folder: Path) -> Path:
    """A copy of an example in a folder, as a checkout has it: without what running it left behind."""
    ignored = shutil.ignore_patterns(".llm-do", "__pycache__")
    return Path(shutil.copytree(REPOSITORY / "projects" / project, folder / project, ignore=ignored))


def load(relative: str) -> ModuleType:
    """Load a Python file of the example project as a module of its own, once."""
    name = f"pitchdeck_eval_{Path(relative).stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PROJECT / relative)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
