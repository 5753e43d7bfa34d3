"""Where a command may look: the folders it was given, and how paths in them are written, opened and shown.

In the server the working folder is a virtual one that holds the aliases, so a path is `alias/relative`. The command
has one root, the working directory, and its paths are plain. Paths are resolved as text: `..` never reaches the
file system, and what leaves the roots is refused before anything is opened.

A guarded root is held by a handle and walked from there without following links, so that a path that is checked
cannot be swapped for another one afterwards. ripgrep is given `/proc/self/fd/N` for it where there is such a thing:
a root that is renamed or replaced while it is served stays the folder that it was.
"""

from __future__ import annotations

import os
import stat

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.regular import NO_LINKS, opened
from llm_do_mcp.te.text import one_line, real_path, shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llm_do_mcp.te.unlisted import Unlisted

_BY_HANDLE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
HANDLES = "/proc/self/fd"
"""Where another program finds the folders that it was handed, by number (Linux)."""


class IsLink(OSError):
    """A path that is a link, or goes through one, where that may not be followed."""


class Root:
    """One folder that may be searched.

    Args:
        alias: Its name in the virtual folder; empty for the one root of a plain working directory.
        folder: Its absolute path, or a handle that the caller keeps open.
        suffixes: The only suffixes of files that may be seen, or None for all.
        guarded: Whether it is held by a handle and links in paths are refused.
        contained: Whether links in paths are refused that lead out of it, also where it is not guarded.
    """

    def __init__(
        self,
        alias: str,
        folder: str | int,
        suffixes: Sequence[str] | None,
        *,
        guarded: bool,
        contained: bool = True,
    ) -> None:
        self.alias = alias
        self.path = folder if isinstance(folder, str) else f"{HANDLES}/{folder}"
        self.suffixes = None if suffixes is None else tuple(suffix.lower() for suffix in suffixes)
        self.handle: int | None = None
        if guarded and _BY_HANDLE:
            self.handle = os.open(folder, _FOLDER_FLAGS) if isinstance(folder, str) else os.dup(folder)
        self.guarded = guarded
        self.contained = contained or guarded
        self._real = ""
        """Its path without links, once that was needed."""
        self.mount: str | None = None
        """How ripgrep is told of this root, and how its results start; None while it is not searched."""

    @property
    def reached(self) -> str:
        """The path by which another program reaches this very folder."""
        if self.handle is not None and os.path.isdir(HANDLES):
            return f"{HANDLES}/{self.handle}"
        return self.path.replace(os.sep, "/").rstrip("/") or "/"

    def stat(self, relative: str, *, itself: bool = False) -> os.stat_result:
        """Like `os.stat`, or `os.lstat` (`itself`); raises `OSError`, and `IsLink` for a link that is refused."""
        if self.handle is None:
            above, _, name = relative.rpartition("/")
            return os.lstat(os.path.join(self._join(above), name)) if itself else os.stat(self._join(relative))
        folder, name = self._enter(relative)
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
        if stat.S_ISLNK(found.st_mode) and not itself:
            raise IsLink(relative)
        return found

    def may_be_read(self, relative: str, *, is_folder: bool) -> bool:
        """Whether its permissions let us read a file, or list a folder."""
        wanted = os.R_OK | os.X_OK if is_folder else os.R_OK
        if self.handle is None:
            return os.access(self._join(relative), wanted)
        folder, name = self._enter(relative)
        try:
            return os.access(name, wanted, dir_fd=folder)
        finally:
            os.close(folder)

    def open(self, relative: str) -> int:
        """A handle on a regular file, for reading. Never waits for a FIFO; raises `OSError`."""
        if self.handle is None:
            return opened(self._join(relative))
        folder, name = self._enter(relative)
        try:
            return opened(name, folder=folder, links=False)
        finally:
            os.close(folder)

    def folder(self, relative: str) -> Folder:
        """A folder, to be walked from; raises `OSError`, and `IsLink` for a link on the way where guarded."""
        if self.handle is None:
            return Folder(self._join(relative), None, guarded=self.guarded)
        if not relative:
            # Opened anew: the handle that we were given may be one that cannot be listed (`O_PATH`).
            return Folder("", os.open(".", _FOLDER_FLAGS, dir_fd=self.handle), guarded=True)
        above, name = self._enter(relative)
        try:
            return Folder("", os.open(name, _FOLDER_FLAGS | NO_LINKS, dir_fd=above), guarded=True)
        finally:
            os.close(above)

    def shows(self, name: str) -> bool:
        """Whether a file of this name may be seen, by its suffix."""
        return self.suffixes is None or name.lower().endswith(self.suffixes)

    def _enter(self, relative: str) -> tuple[int, str]:
        """The folder that holds `relative`, reached without following a link, and the last name."""
        assert self.handle is not None
        *folders, name = relative.split("/")
        at = os.dup(self.handle)
        for folder in folders:
            try:
                below = os.open(folder, _FOLDER_FLAGS | NO_LINKS, dir_fd=at)
            except NotADirectoryError as error:
                if stat.S_ISLNK(os.stat(folder, dir_fd=at, follow_symlinks=False).st_mode):
                    raise IsLink(relative) from error
                raise
            finally:
                os.close(at)
            at = below
        return at, name or "."

    def _join(self, relative: str) -> str:
        path = os.path.join(self.path, relative)
        if self.contained and self.lands(relative)[1]:
            raise IsLink(relative)
        return path

    def lands(self, relative: str) -> tuple[list[str], bool]:
        """Where links on the way lead: by name, so that a race can pass, for where there is no handle.

        Returns:
            The names from the root, or from the file system's where it is outside, and whether it is outside.
        """
        self._real = self._real or os.path.realpath(self.path)
        real = os.path.realpath(os.path.join(self.path, relative))
        leads_out = os.path.commonpath([real, self._real]) != self._real
        if leads_out:
            return real.split(os.sep), True
        return [name for name in real[len(self._real) :].split(os.sep) if name], False

    def is_link(self, relative: str) -> bool:
        """Whether a path is itself a link, where there is no handle."""
        return os.path.islink(os.path.join(self.path, relative))

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


class Folder:
    """A folder on a walk: by its handle in a guarded root, else by its path.

    Args:
        path: Its path; not used where there is a handle.
        handle: A handle on it, which belongs to this object.
        guarded: Whether links are refused.
    """

    def __init__(self, path: str, handle: int | None, *, guarded: bool) -> None:
        self._path = path
        self._handle = handle
        self._guarded = guarded

    def entries(self) -> list[tuple[str, str]]:
        """What is in it, by name: the names, and of what kind each is: `f`ile, `d`irectory, `l`ink or `o`ther."""
        with os.scandir(self._path if self._handle is None else self._handle) as found:
            return sorted([(entry.name, _kind(entry)) for entry in found])

    def enter(self, name: str) -> Folder:
        """A folder in it; raises `OSError`, also for a link."""
        if self._handle is not None:
            return Folder("", os.open(name, _FOLDER_FLAGS | NO_LINKS, dir_fd=self._handle), guarded=self._guarded)
        path = f"{self._path}/{name}"
        if self._guarded and os.path.islink(path):
            raise IsLink(name)
        return Folder(path, None, guarded=self._guarded)

    def stat(self, name: str, *, itself: bool = True) -> os.stat_result:
        """Of an entry; of a link, that of the link itself, or of what it leads to."""
        if self._handle is not None:
            return os.stat(name, dir_fd=self._handle, follow_symlinks=not itself)
        return os.stat(f"{self._path}/{name}", follow_symlinks=not itself)

    def has(self, name: str) -> bool:
        """Whether there is an entry of this name, and what it leads to if it is a link."""
        try:
            self.stat(name, itself=False)
        except OSError:
            return False
        return True

    def text(self, name: str, most: int) -> str | None:
        """The first bytes of a regular file in it, as text; None if there is no such file."""
        try:
            path = name if self._handle is not None else f"{self._path}/{name}"
            with open(opened(path, folder=self._handle, links=self._handle is None), "rb") as file:
                return os.fsdecode(file.read(most))
        except OSError:
            return None

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def kind_of(mode: int) -> str:
    """Of what kind something is, as in `Folder.entries`."""
    return {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l"}.get(stat.S_IFMT(mode), "o")


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "l"
    if entry.is_dir(follow_symlinks=False):
        return "d"
    return "f" if entry.is_file(follow_symlinks=False) else "o"


class Place:
    """A path that a command named: a root and a path below it (empty for the root itself).

    `size` is a file's size in bytes, and None for what is none. `kind` is as in `Folder.entries`.
    """

    __slots__ = ("kind", "relative", "root", "size")

    def __init__(self, root: Root, relative: str, size: int | None = None, kind: str = "d") -> None:
        self.root = root
        self.relative = relative
        self.size = size
        self.kind = kind

    @property
    def argument(self) -> str:
        """The path as ripgrep is given it. It never starts with `-`."""
        assert self.root.mount is not None
        return f"{self.root.mount}/{self.relative}" if self.relative else self.root.mount or "/"


class Workspace:
    """All roots of one command.

    Args:
        roots: Alias → absolute path or folder handle; the alias "." stands for a plain working directory.
        hidden: Names of files and folders that are never found, whatever the flags say.
        suffixes: Alias → the only suffixes that may be seen there.
        left_out: Alias → why that folder is not searched.
        guarded: Whether paths must not lead out of the roots.
        here: The folder that paths in a plain workspace are relative to, where that is not the root.
        open_ended: Whether a plain workspace that is not guarded may be left by a path that is typed.
        gitignore: Whether `.gitignore` files hold.
        lists_all: Whether no `.llm-doignore` holds.
        unlisted: Alias → the text of a `.llm-doignore` that holds there, and where the root lies from it.

    Raises:
        TeError: `nothing_to_search`: there is no root, or one is gone.
    """

    def __init__(
        self,
        roots: Mapping[str, str | int],
        *,
        hidden: Sequence[str],
        suffixes: Mapping[str, Sequence[str]],
        guarded: bool,
        left_out: Mapping[str, str] | None = None,
        here: str = "",
        open_ended: bool = False,
        gitignore: bool = True,
        lists_all: bool = False,
        unlisted: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.left_out = left_out or {}
        self.gitignore = gitignore
        self._lists_all = lists_all
        self._here = here
        self._unlisted = dict(unlisted or {})
        self._rules: dict[Root, Unlisted] = {}
        self._in_repository: bool | None = None
        self._landings: dict[tuple[Root, str], tuple[list[str], bool]] = {}
        """By folder, where links on the way to it lead."""
        self._named: list[tuple[Root, str]] = []
        self._mounted: list[tuple[str, Root]] = []
        """How paths start that ripgrep prints, and where they lie."""
        self.hidden = frozenset(map(_folded, hidden))
        self.guarded = guarded
        self.roots: list[Root] = []
        try:
            for alias, folder in roots.items():
                allowed = suffixes.get(alias)
                name = "" if alias == "." else alias
                self.roots.append(Root(name, folder, allowed, guarded=guarded, contained=not open_ended))
        except OSError as error:
            self.close()
            raise TeError("nothing_to_search", f"the folder {alias} cannot be opened") from error
        if not self.roots:
            raise TeError("nothing_to_search", "there is no folder to search")
        self.plain = not self.roots[0].alias
        self._base, self._above = _between(here, self.roots[0].path) if here else ([], [])
        beyond = open_ended and os.name == "posix"
        self._beyond = Root("", "/", None, guarded=False, contained=False) if beyond else None
        """Where paths lead that leave the workspace; None if they must not."""

    def close(self) -> None:
        for root in self.roots:
            root.close()

    def mount(self, searched: Sequence[Root]) -> str:
        """Settle how ripgrep is told of the roots that are searched; the others cannot appear in its results.

        One root is ripgrep's working folder, which is fastest: the kernel resolves short paths. Several cannot be.

        Returns:
            The folder in which ripgrep has to run.
        """
        alone = len(searched) == 1
        for root in searched:
            root.mount = "." if alone else "" if root is self._beyond else root.reached
        self._mounted = [(f"{root.mount}/", root) for root in self._all() if root.mount is not None]
        return searched[0].reached if alone else os.path.abspath(os.sep)

    def mounts(self) -> list[str | None]:
        """How ripgrep was told of each root; None for those that were not searched."""
        return [root.mount for root in self._all()]

    def remount(self, mounts: Sequence[str | None]) -> None:
        """What ripgrep printed in another process is read now, which was told of the roots in this way."""
        for root, mount in zip(self._all(), mounts, strict=False):
            root.mount = mount
        self._mounted = [(f"{root.mount}/", root) for root in self._all() if root.mount is not None]

    def holds(self, folder: str) -> bool:
        """Whether a folder lies below what is searched, as far as its path tells."""
        path = os.path.realpath(folder) + os.sep
        return any(path.startswith(os.path.join(os.path.realpath(root.reached), "")) for _, root in self._mounted)

    def _all(self) -> list[Root]:
        return self.roots if self._beyond is None else [*self.roots, self._beyond]

    def resolve(self, argument: str, *, itself: bool = False) -> list[Place]:
        """The places that a path names: several for the virtual folder itself.

        Args:
            argument: The path.
            itself: Whether just what is there is meant, of whatever kind: a link is a link, and nothing is read.

        Raises:
            TeError: `outside`, `path_not_found`, `not_readable`, `not_a_file` or `standard_input`.
        """
        shown = one_line(argument)
        missing = TeError("path_not_found", f"no such file or folder: {shown}")
        if not argument or "\0" in argument:
            raise missing
        if argument == "-":
            raise TeError("standard_input", "standard input is not read, only files (te -i grep in a shell reads it)")
        try:
            parts = self._parts(real_path(argument), shown)
        except TeError:
            if self._beyond is None:
                raise
            path = os.path.normpath(os.path.join(self._here or self.roots[0].path, argument))
            if (place := self._place(self._beyond, path.lstrip("/"), shown, itself=itself)) is None:
                raise missing from None
            return [place]
        if self._is_hidden(parts):
            raise missing
        if not parts:
            return [Place(root, "") for root in self.roots]
        root = self.roots[0] if self.plain else next((root for root in self.roots if root.alias == parts[0]), None)
        if root is None and parts[0] in self.left_out:
            raise TeError("not_readable", f"{shown} is not searched: {self.left_out[parts[0]]}")
        if root is None:
            raise TeError("path_not_found", f"{missing.message}; the folders here are {self._aliases()}")
        place = self._place(root, "/".join(parts if self.plain else parts[1:]), shown, itself=itself)
        if place is None:
            raise missing
        if place.relative and parts != self._base:
            self._named.append((root, place.relative))
            if root.handle is None:  # what a link leads to is named with it
                self._named.append((root, "/".join(root.lands(place.relative)[0])))
        return [place]

    def hides(self, name: str) -> bool:
        """Whether nothing of this name is ever seen."""
        return _folded(name) in self.hidden

    def _is_hidden(self, parts: Sequence[str]) -> bool:
        return any(map(self.hides, parts))

    def _aliases(self) -> str:
        return " ".join(root.alias for root in self.roots[:20])

    def _parts(self, path: str, shown: str) -> list[str]:
        """The path's names, with `.` and `..` taken away."""
        outside = TeError("outside", f"{shown} is outside what may be searched")
        if os.name == "nt":
            path = path.replace("\\", "/")
        parts = list(self._base)
        base = self.roots[0].path.rstrip("/")
        inside = not self._above
        if self.plain and not self.guarded and (path + "/").startswith(base + "/"):
            path, parts, inside = path[len(base) + 1 :] or ".", [], True
        if path.startswith("/") or (os.name == "nt" and ":" in path):
            raise outside
        for part in path.split("/"):
            if part == ".." and parts and parts[-1] != "..":
                parts.pop()
            elif part == ".." and inside:
                raise outside
            elif part not in ("", "."):
                parts.append(part)
        return parts if inside else self._below(parts, shown)

    def _below(self, parts: list[str], shown: str) -> list[str]:
        """Names from a folder that is not in the root, as those below it; what lies on the way stands for the root."""
        if parts == self._above[: len(parts)]:
            return []
        if parts[: len(self._above)] != self._above:
            raise TeError("outside", f"{shown} is outside what may be searched, which is {'/'.join(self._above)}")
        return parts[len(self._above) :]

    def _place(self, root: Root, relative: str, shown: str, *, itself: bool) -> Place | None:
        """What is there, or None if nothing is that may be seen."""
        unreadable = TeError("not_readable", f"{shown} may not be read")
        try:
            found = root.stat(relative, itself=itself)
            kind = kind_of(found.st_mode)
            if not self._is_shown(root, relative, kind, itself=itself):
                return None
            readable = itself or kind == "o" or root.may_be_read(relative, is_folder=kind == "d")
        except IsLink as error:
            through = "a link; name the file or folder itself" if self.guarded else "a link out of what may be searched"
            raise TeError("outside", f"{shown} leads through {through}") from error
        except PermissionError as error:
            raise unreadable from error
        except (OSError, ValueError):
            return None
        if kind == "o" and not itself:
            raise TeError("not_a_file", f"{shown} is neither a regular file nor a folder")
        if not readable:
            raise unreadable
        return Place(root, relative, found.st_size if kind == "f" else None, kind)

    def _is_shown(self, root: Root, relative: str, kind: str, *, itself: bool) -> bool:
        """Whether something that is there may be seen: by its suffix, and by where links lead (to `itself`: none)."""
        if kind != "d" and not root.shows(relative):
            return False
        followed = relative.rpartition("/")[0] if itself else relative
        return root.handle is not None or not self._is_hidden(root.lands(followed)[0])

    def working_folder(self) -> bytes:
        """The folder that paths are relative to, as paths start that ripgrep prints; b"" where it is not searched."""
        plain = self.plain and not self._above and self.roots[0].mount is not None
        return os.fsencode("".join(f"{name}/" for name in (self.roots[0].mount, *self._base))) if plain else b""

    def tops(self) -> list[bytes]:
        """The roots, as the paths start that ripgrep prints."""
        return [os.fsencode(start[:-1]) for start, _ in self._mounted]

    def locate(self, path: bytes) -> tuple[Root, str]:
        """The root and the relative path of a path that ripgrep printed."""
        name = os.fsdecode(path)
        for start, root in self._mounted:
            if name.startswith(start):
                return root, name[len(start) :]
        raise ValueError("ripgrep printed a path of no root")

    def seen(self, paths: Sequence[bytes]) -> list[bool]:
        """Which of the files that ripgrep found may be seen at all."""
        # Told at once where it is true of all: no name in the paths is hidden, and there are no other rules.
        together = b"\n".join(paths)
        folded = together.lower()
        may_hide = not together.isascii() or any(os.fsencode(name) in folded for name in self.hidden)
        if not paths or not (may_hide or self.has_rules):
            return [True] * len(paths)
        return list(map(self._is_seen, paths))

    def contains(self, path: bytes) -> bool:
        """Whether a file that ripgrep found by following links lies where paths may lead, and may be seen there."""
        root, relative = self.locate(path)
        names, leads_out = self._lands(root, relative)
        if not self._may_lead(root, names, leads_out=leads_out):
            return False
        return leads_out or not self.unlists(root, "/".join(names), is_folder=False)

    def may_follow(self, root: Root, relative: str) -> bool:
        """Whether links may be followed on the way to a path."""
        if not (root.contained or self.hidden):
            return True
        names, leads_out = root.lands(relative)
        return self._may_lead(root, names, leads_out=leads_out)

    def _lands(self, root: Root, relative: str) -> tuple[list[str], bool]:
        """As `Root.lands`, of a file among many: of a folder only once."""
        folder, _, name = relative.rpartition("/")
        if not folder or root.is_link(relative):
            return root.lands(relative)
        if (root, folder) not in self._landings:
            self._landings[root, folder] = root.lands(folder)
        names, leads_out = self._landings[root, folder]
        return [*names, name], leads_out

    def _may_lead(self, root: Root, names: Sequence[str], *, leads_out: bool) -> bool:
        return not (self._is_hidden(names) or (leads_out and root.contained))

    def all_of(self, root: Root) -> Workspace:
        """What ripgrep goes through in one of the roots: also what is left out of what it finds. It is to be closed."""
        return Workspace(
            {".": root.path if root.handle is None else root.handle},
            hidden=tuple(self.hidden),
            suffixes={},
            guarded=root.guarded,
            open_ended=not root.contained,
            gitignore=self.gitignore,
            lists_all=True,
        )

    @property
    def lies_in_repository(self) -> bool:
        """Whether the root is in a repository of git, and what lies above it may be asked."""
        if self._in_repository is None:
            from llm_do_mcp.te.ignore import lies_in_repository

            self._in_repository = not self.guarded and lies_in_repository(os.path.abspath(self.roots[0].path))
        return self._in_repository

    def read_rules(self) -> None:
        """Read what `seen` goes by: ahead of it, while ripgrep is searching."""
        for _, root in self._mounted:
            self._rules_of(root)

    @property
    def has_rules(self) -> bool:
        """Whether files that ripgrep finds may not be seen, other than by hidden names."""
        return any(self._has_rules(root) for _, root in self._mounted)

    def _has_rules(self, root: Root) -> bool:
        return root.suffixes is not None or self._rules_of(root).any

    def _is_seen(self, path: bytes) -> bool:
        root, relative = self.locate(path)
        if self._is_hidden(relative.split("/")):
            return False
        return root.shows(relative) and not self.unlists(root, relative, is_folder=False)

    def unlists(self, root: Root, relative: str, *, is_folder: bool) -> bool:
        """Whether a `.llm-doignore` keeps a path out of what is found; what is named itself is found all the same."""
        if self._lists_all or not (rules := self._rules_of(root)).any:
            return False
        named = [name for place, name in self._named if place is root and f"{relative}/".startswith(f"{name}/")]
        return rules.hide(relative, max(map(len, named), default=0), is_folder=is_folder)

    def _rules_of(self, root: Root) -> Unlisted:
        if root not in self._rules:
            from llm_do_mcp.te.unlisted import Unlisted

            self._rules[root] = Unlisted(root, *self._unlisted.get(root.alias or ".", ("", "")))
        return self._rules[root]

    def order(self, path: bytes) -> tuple[int, bytes]:
        """Where a path that ripgrep printed comes in an answer: by root, in the order they were given, then by name."""
        name = os.fsdecode(path) if len(self._mounted) > 1 else ""
        for index, (start, _) in enumerate(self._mounted):
            if name.startswith(start):
                return index, path
        return len(self._mounted), path

    def shown(self, root: Root, relative: str) -> str:
        """A file's name in the answer, usable as a path in the next command."""
        name = shown_path(self.typed(root, relative))
        return f"./{name}" if name.startswith(("#", "[", "-")) and not root.alias else name  # nothing but a path

    def typed(self, root: Root, relative: str) -> str:
        """A path as it is typed in the folder in which the command runs; "" for that folder."""
        if root.alias:
            return f"{root.alias}/{relative}"
        if root is self._beyond:
            return self._from_here(f"/{relative}")
        if not self._base and not self._above:
            return relative
        names, base = relative.split("/") if relative else [], self._base
        same = 0
        while same < min(len(base), len(names)) and names[same] == base[same]:
            same += 1
        return "/".join([*self._above, *[".."] * (len(base) - same), *names[same:]])

    def _from_here(self, path: str) -> str:
        """A path outside of the root as it is typed: from the working folder, where the two have a folder in common."""
        here = self._here or os.path.realpath(self.roots[0].path)
        if os.path.commonpath((path, here)) == "/":
            return path
        typed = os.path.relpath(path, here)
        return "" if typed == "." else typed + "/" * path.endswith("/")

    def anchored(self, glob: str) -> list[str]:
        """A caller's glob for ripgrep. One with a `/` inside starts at an alias, or else in each of the roots."""
        mark = "!" if glob.startswith("!") else ""
        body = glob[len(mark) :]
        if "/" not in body.rstrip("/") or body.startswith("**/"):
            return [glob]
        if self.plain:
            base = "".join(f"/{escaped_glob(name)}" for name in self._base)
            above = "/".join(["", *self._above])
            if above and (below := f"/{body.removeprefix('./').lstrip('/')}").startswith(f"{above}/"):
                return [mark + below.removeprefix(above)]
            return [f"{mark}{base}/{body.lstrip('/')}" if base else glob]
        from fnmatch import fnmatchcase

        body = body.removeprefix("./").lstrip("/")
        first, _, rest = body.partition("/")
        roots = [root for root in self.roots if root.mount is not None]
        named = [root for root in roots if fnmatchcase(root.alias, first)]
        return [
            f"{mark}{'' if root.mount == '.' else escaped_glob(root.reached)}/{(rest or '**') if named else body}"
            for root in named or roots
        ]

    def excluded(self, root: Root, globs: Sequence[str]) -> bool:
        """Whether a glob without a `/` inside (`--exclude-dir=alias`) excludes a whole root by its alias."""
        names = [glob[1:].rstrip("/") for glob in globs if glob.startswith("!")]
        if not names or not root.alias:
            return False
        from fnmatch import fnmatchcase

        return any(fnmatchcase(root.alias, name) for name in names if "/" not in name)


def _between(here: str, root: str) -> tuple[list[str], list[str]]:
    """The names from the root to a folder in it; or else those from a folder that is not in it to the root."""
    down, up = (
        os.path.relpath(end, start).replace(os.sep, "/").split("/") for end, start in ((here, root), (root, here))
    )
    return ([], up) if down[0] == ".." else ([name for name in down if name != "."], [])


def _folded(name: str) -> str:
    """One form for the spellings that some file system takes for the same name."""
    if not name.isascii():
        from unicodedata import category, normalize

        name = normalize("NFC", "".join(character for character in name if category(character) != "Cf"))
    return name.casefold().rstrip(" .") or name


def escaped_glob(path: str) -> str:
    """A glob that matches this path and no other."""
    glob = "".join("\\" + character if character in "\\*?[]{}!" else character for character in path)
    return f"{glob[:-1]}{{{glob[-1]}}}" if glob[-1:].isspace() else glob  # a space that ends a glob counts for nothing
