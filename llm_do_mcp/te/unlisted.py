"""`.llm-doignore`: what a project keeps out of lists and searches. It hides nothing from who names it."""

from __future__ import annotations

from llm_do_mcp.te.ignore import LARGEST, Rules, decided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from llm_do_mcp.te.roots import Root

FILE = ".llm-doignore"


class Unlisted:
    """What holds in one root: the file at its top, and one of the project that it is a part of.

    Args:
        root: Where.
        text: The project's file, or "".
        place: The path from that file's folder to the root.
    """

    def __init__(self, root: Root, text: str, place: str) -> None:
        self._rules: list[Rules] = []
        self._folders: dict[str, bool] = {}
        if (own := _own(root)) is not None:
            self._rules.append(Rules(own.split("\n"), 0))
        if text:
            self._rules.append(Rules(text.split("\n"), 0, place.split("/") if place else ()))

    @property
    def any(self) -> bool:
        """Whether there is such a file."""
        return bool(self._rules)

    def hide(self, path: str, named: int, *, is_folder: bool) -> bool:
        """Whether a path is kept out, by itself or with a folder that it lies in.

        Args:
            path: From the root.
            named: How many of its characters were named: that much of it is not held against the file.
            is_folder: Whether it is a folder.
        """
        if len(path) <= named:
            return False
        above, _, name = path.rpartition("/")
        key = f"{named} {above}"
        if key not in self._folders:
            self._folders[key] = bool(above) and self.hide(above, named, is_folder=True)
        return self._folders[key] or bool(decided(self._rules, path, name, is_folder=is_folder))


def _own(root: Root) -> str | None:
    try:
        folder = root.folder("")
    except OSError:
        return None
    try:
        return folder.text(FILE, LARGEST)
    finally:
        folder.close()
