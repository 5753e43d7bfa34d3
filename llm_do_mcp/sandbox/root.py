"""A root: one folder that a worker's files are confined to, with its mode and limits. Plain data.

A root is written into the definition of each run, and a resumed run uses it as it was then. It therefore holds all
that the sandbox needs and nothing that would have to be looked up again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Mode = Literal["ro", "rw", "out"]

DEFAULT_MAX_FILE_BYTES = 10_000_000

STATE_FOLDER = ".llm-do"
"""Where a project's records are kept: it does not exist for anyone who lists, reads, writes or searches files."""

_ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True)
class Root:
    """One folder by its alias.

    Args:
        alias: The name callers use: lower-case letters, digits, `_` and `-`.
        path: Absolute and without links (`os.path.realpath` at load): a link that later takes the place of a folder
            on the way is then refused.
        mode: `ro` is never written; `rw` is; `out` is written, and listed and read back only what this run wrote.
            Writable roots are created when missing.
        suffixes: The only suffixes (`.md`) that can be listed, read and written, whatever their case; None for all.
        max_file_bytes: What is read of a file at most, and written at most.
        read_approval: Whether a read asks a person.
        write_approval: Whether a write asks a person; None where nothing was said and the policy's default holds.
        protected: Patterns of what cannot be written, relative to the root (`patterns.protected_in` makes them);
            `patterns.ALWAYS_PROTECTED` holds besides.
        hidden: Names that are never listed, read or written, at any depth.

    Raises:
        ValueError: A value that is not of this form.
    """

    alias: str
    path: str
    mode: Mode = "ro"
    suffixes: tuple[str, ...] | None = None
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    read_approval: bool = False
    write_approval: bool | None = None
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = (STATE_FOLDER,)

    def __post_init__(self) -> None:
        if not _ALIAS.fullmatch(self.alias):
            raise ValueError(f"alias {self.alias!r}: allowed are lower-case letters, digits, `_` and `-`")
        if not os.path.isabs(self.path):
            raise ValueError(f"alias {self.alias!r}: the root's path must be absolute")
        if self.mode not in get_args(Mode):
            raise ValueError(f"alias {self.alias!r}: mode {self.mode!r}; allowed are ro, rw, out")
        if self.max_file_bytes < 1:
            raise ValueError(f"alias {self.alias!r}: max_file_bytes must be at least 1")

    def allows_suffix(self, name: str) -> bool:
        """Whether a file name ends in one of the root's suffixes."""
        if self.suffixes is None:
            return True
        return name.lower().endswith(tuple("." + suffix.lower().lstrip(".") for suffix in self.suffixes))

    def to_json(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Root:
        values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
        return cls(**values)
