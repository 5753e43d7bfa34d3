"""Which files `--include`, `--exclude` and `--exclude-dir` choose, where ripgrep's globs do not say the same as grep.

ripgrep searches a file that is named whatever its globs say; grep holds its options against it too, by the end of the
path as it was typed. Of files that match none of grep's globs, all are searched where the first option was an
`--exclude`; with ripgrep's none, as soon as there is an `--include`. And ripgrep's globs are said of folders too:
`--exclude='test*'` would leave out what lies in `tests`, and `--include='*'` take in what is hidden or ignored.
"""

from __future__ import annotations

from llm_do_mcp.te.globs import Names, expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Selection:
    """The options of one command.

    Args:
        rules: Of each `--include` (True) and `--exclude` (False), in the order in which they were given, the glob.
        folders: The globs of `--exclude-dir`.
    """

    def __init__(self, rules: Sequence[tuple[bool, str]], folders: Sequence[str]) -> None:
        self._rules = [(includes, _names(glob)) for includes, glob in rules]
        # Where a glob has a suffix, no folder is taken to have it: files that are left out need not be searched then.
        self._names_folders = any(not glob.strip("*") if includes else "." not in glob for includes, glob in rules)
        self._folders = [_names(glob.rstrip("/")) for glob in folders]

    @property
    def is_beyond_globs(self) -> bool:
        """Whether ripgrep's globs cannot say it: files are then chosen among those that were found."""
        return self._names_folders or (any(includes for includes, _ in self._rules) and not self._rules[0][0])

    def admits(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether what was named so is searched: the last glob that matches decides."""
        ends = [path, *(path[at + 1 :] for at, character in enumerate(path) if character == "/")]
        if is_folder:
            return not any(names.match(end) for names in self._folders for end in ends)
        for includes, names in reversed(self._rules):
            if any(map(names.match, ends)):
                return includes
        return not self._rules or not self._rules[0][0]


def _names(glob: str) -> Names:
    try:
        return Names(expanded(glob))
    except ValueError:  # ripgrep is given it too, and says what is wrong with it
        return Names([glob])
