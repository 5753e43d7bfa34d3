"""Looks again at single files of which one pass of ripgrep does not tell all, so that their numbers are exact.

A file that met the cap of the pass has more than was printed. And with `-m` ripgrep may have ended before it read what
makes a file binary.
"""

from __future__ import annotations

import os
from contextlib import suppress

from llm_do_mcp.te.accounts import Accounts
from llm_do_mcp.te.ripgrep import NAMED_AT_ONCE
from llm_do_mcp.te.text import BLOCK, UTF_16

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence

    from llm_do_mcp.te.ripgrep import Ripgrep
    from llm_do_mcp.te.roots import Workspace


def recount(accounts: Accounts, files: Sequence[int], ripgrep: Ripgrep, arguments: Sequence[str]) -> None:
    """Have the matching lines of files counted.

    Args:
        accounts: Has the files and their numbers.
        files: Which of them.
        ripgrep: Counts.
        arguments: What makes it print, of each file, the path, a NUL, the number and a line end.
    """
    for first in range(0, len(files), NAMED_AT_ONCE):
        batch = {accounts.paths[index]: index for index in files[first : first + NAMED_AT_ONCE]}
        _, printed = ripgrep.output([*arguments, "--", *map(os.fsdecode, batch)])
        for path, index in batch.items():
            _, _, after = printed.partition(path + b"\0")
            number = after.partition(b"\n")[0]
            if number.isdigit():  # else it has vanished since
                accounts.counts[index] = max(accounts.counts[index], int(number))


def recount_occurrences(
    accounts: Accounts,
    files: Iterable[int],
    printed: Callable[[str], Iterable[bytes]],
    counted: re.Pattern[bytes] | None,
) -> None:
    """Count the occurrences in files; ripgrep's own count has the empty ones too.

    Args:
        accounts: Has the files and their numbers.
        files: Which of them.
        printed: All that is printed for the file of this path.
        counted: See `Accounts`.
    """
    for index in files:
        again = Accounts(counted=counted)
        try:
            again.read(printed(os.fsdecode(accounts.paths[index])))
            accounts.counts[index] = max(accounts.counts[index], again.total)
        finally:
            again.close()


def leave_out_binary(accounts: Accounts, workspace: Workspace, most: int) -> list[int]:
    """Count as binary what was taken for text.

    Args:
        accounts: Has the files and their numbers.
        workspace: Where the files are.
        most: Bytes that were printed at most for a file that may be one.

    Returns:
        The files that were.
    """
    found = []
    for index, count in enumerate(accounts.counts):
        if not count or not 0 < accounts.printed(index) <= most:
            continue
        root, relative = workspace.locate(accounts.paths[index])
        with suppress(OSError, ValueError), open(root.open(relative), "rb", buffering=0) as file:
            beginning = file.read(BLOCK)
            if b"\0" in beginning and not beginning.startswith(UTF_16):
                accounts.counts[index] = 0
                accounts.binary += 1
                found.append(index)
    return found
