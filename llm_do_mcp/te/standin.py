"""The search that is used where there is no ripgrep: it takes ripgrep's arguments and prints what ripgrep would print.

It runs as a process of its own, as ripgrep does, so everything around it stays as it is: what is counted and shown is
made from the same output, and a pattern that would take forever is ended by ending the process. It knows the flags that
`te grep` gives, and no others. It is slower, and its patterns are Python's.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from io import BufferedReader, FileIO, TextIOWrapper

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.filetypes import TYPES
from llm_do_mcp.te.globs import Names, expanded
from llm_do_mcp.te.ignore import Rules, decided
from llm_do_mcp.te.patience import Patience
from llm_do_mcp.te.pattern import APART
from llm_do_mcp.te.perl import KEPT, for_python
from llm_do_mcp.te.roots import HANDLES, Place, Root, Workspace
from llm_do_mcp.te.text import BLOCK, BYTE_ORDER_MARK, UTF_16, bytes_of, encoded, readings
from llm_do_mcp.te.walk import Walk
from llm_do_mcp.te.writing import preview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_FOREVER = float("inf")


class _Refused(Exception):
    """Ends the search as ripgrep would: with a message and code 2."""


class _Asked:
    """The arguments, by name; those that may come more than once as lists."""

    def __init__(self, arguments: list[str]) -> None:
        end = arguments.index("--")
        self.paths = arguments[end + 1 :]
        self.flags: list[tuple[str, str]] = []
        """Names and values, in the order in which they were given."""
        self.lists: dict[str, list[str]] = {}
        for argument in arguments[:end]:
            name, _, value = argument.removeprefix("--").partition("=")
            self.flags.append((name, value))
            self.lists.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        return name in self.lists

    def number(self, name: str) -> int | None:
        value = self.lists[name][-1] if name in self.lists else None
        if value is None:
            return None
        unit = _UNITS.get(value[-1:], 1)
        return int(value[:-1] if unit > 1 else value) * unit


class StandIn:
    """One search.

    Args:
        arguments: Those of ripgrep, and `--guarded` where no path may lead through a link.
        out: Where to print.
    """

    def __init__(self, arguments: list[str], out: BinaryIO) -> None:
        self.asked = _Asked(arguments)
        self.out = out
        self.found = False
        self.failed = False
        self._printed_file = False
        self._with_binary = True
        """Whether a file is searched also where it turns out to be binary."""
        self._globs = self._all_globs()
        given = [glob for name in ("glob", "iglob") for glob in self.asked.lists.get(name, [])]
        self._chooses = any(not glob.startswith(("!", "#")) for glob in given)  # as in an ignore file, `#` says nothing
        """Whether only files that a glob names are searched."""
        self._types = self._all_types()
        self._folds = self.asked.has("ignore-case")
        self._held = bytes_of(self.asked.lists.get("regexp", []))
        self._pattern = None if self.asked.has("files") else self._compiled()
        self._most = self.asked.number("max-count")
        self._largest = self.asked.number("max-filesize")
        self._before = self.asked.number("before-context") or 0
        self._after = self.asked.number("after-context") or 0

    def run(self) -> int:
        """Search; returns ripgrep's exit code."""
        for path in self.asked.paths:
            if path == "-":
                self._search(sys.stdin.fileno(), b"-")
                continue
            try:
                self._below(path)
            except (OSError, TeError) as error:
                self._complain(f"{path}: {error}")
        if self.found and self.asked.has("quiet"):
            return 0
        return 2 if self.failed else int(not self.found)

    # ---- which files ----

    def _below(self, path: str) -> None:
        folder, relative = _rooted(path)
        workspace = Workspace(
            {".": folder},
            hidden=(),
            suffixes={},
            guarded=self.asked.has("guarded"),
            open_ended=not self.asked.has("guarded"),  # who started us has settled where paths may lead
            gitignore=not self.asked.has("no-ignore-vcs"),
            lists_all=True,  # who started us leaves out what is not listed
        )
        root = workspace.roots[0]
        try:
            if not stat.S_ISDIR(root.stat(relative).st_mode):
                self._file(root, relative, os.fsencode(path))
                return
            walk = Walk(
                workspace,
                Patience(_FOREVER, None),
                hidden=self.asked.has("hidden"),
                no_ignore=self.asked.has("no-ignore"),
                follows=self.asked.has("follow"),
                wanted=lambda below, is_folder: self._wanted(f"{folder}/{below}", is_folder=is_folder),
                unhides=self._is_of_type,
            )
            self._with_binary = self.asked.has("binary")
            for entry in walk.below(Place(root, relative)):
                if entry.kind == "f":
                    self._file(root, entry.relative, os.fsencode(f"{folder}/{entry.relative}"))
            for _ in range(walk.errors):
                self._complain(f"{path}: a folder could not be read, or a link not followed")
        finally:
            self._with_binary = True
            workspace.close()

    def _file(self, root: Root, relative: str, shown: bytes) -> None:
        if self.asked.has("files"):
            self.found = True
            if not self.asked.has("quiet"):
                self.out.write(shown + b"\0")
            return
        try:
            handle = root.open(relative)
        except (OSError, ValueError) as error:
            self._complain(f"{os.fsdecode(shown)}: {error}")
            return
        if self._largest is not None and os.fstat(handle).st_size > self._largest:
            os.close(handle)
            return
        self._search(handle, shown)

    def _wanted(self, path: str, *, is_folder: bool) -> bool | None:
        """What globs and types say, in the order of their weight."""
        path = path.removeprefix("./").lstrip("/")
        name = path.rpartition("/")[2]
        wanted = decided(self._globs, path, name, is_folder=is_folder)
        if wanted is not None or is_folder:
            return wanted
        if self._chooses or self._is_of_type(name) is False:
            return False
        return None

    def _is_of_type(self, name: str) -> bool | None:
        """What the types say of a file: the last one that has its name, if any."""
        for wanted, names in self._types:
            if names.match(name):
                return wanted
        return False if any(wanted for wanted, _ in self._types) else None

    def _all_globs(self) -> list[Rules]:
        """The heaviest first."""
        all_globs: list[Rules] = []
        for name in ("iglob", "glob"):
            globs = self.asked.lists.get(name, [])
            for glob in globs:
                try:
                    expanded(glob.removeprefix("!"))
                except ValueError as error:
                    raise _Refused(f"error parsing glob '{glob}': error: {error}") from error
            all_globs.append(Rules(globs, 0, ignore_case=name == "iglob"))
        return all_globs

    def _all_types(self) -> list[tuple[bool, Names]]:
        types: list[tuple[bool, Names]] = []
        for flag, name in self.asked.flags:
            if flag in ("type", "type-not"):
                if name not in TYPES:
                    raise _Refused(f"unrecognized file type: {name}")
                types.append((flag == "type", Names(TYPES[name])))
        return types[::-1]

    # ---- which lines ----

    def _compiled(self) -> re.Pattern[str]:
        patterns = self.asked.lists.get("regexp", [])
        if self.asked.has("pcre2"):
            try:
                patterns = list(map(for_python, patterns))
            except ValueError as error:
                raise _Refused(f"regex parse error:\nerror: {error}") from error
        if self.asked.has("fixed-strings"):
            patterns = list(map(re.escape, patterns))
        whole = "|".join(f"(?:{pattern})" for pattern in patterns)
        if self.asked.has("word-regexp"):
            whole = rf"(?<!\w)(?:{whole})(?!\w)"
        if self.asked.has("line-regexp"):
            whole = rf"^(?:{whole})$"
        try:
            return re.compile(whole.translate(APART), re.IGNORECASE) if self._folds else re.compile(whole)
        except (re.error, RecursionError, OverflowError, ValueError) as error:
            raise _Refused(f"regex parse error:\nerror: {str(error) or 'it is too deep'}") from error

    def _search(self, handle: int, shown: bytes) -> None:
        with BufferedReader(FileIO(handle, closefd=handle > 2), BLOCK) as file:
            try:
                self._search_file(file, shown)
            except OSError as error:
                self._complain(f"{os.fsdecode(shown)}: {error.strerror}")
        self.out.flush()

    def _search_file(self, file: BufferedReader[FileIO], shown: bytes) -> None:
        beginning = b"" if self.asked.has("encoding") else file.peek(BLOCK)
        is_utf_16 = beginning.startswith(UTF_16)
        if beginning.startswith(BYTE_ORDER_MARK):
            file.read(len(BYTE_ORDER_MARK))
        lines = matches = 0
        pattern = self._pattern
        assert pattern is not None
        printed = _Printed(self, shown)
        invert, only = self.asked.has("invert-match"), self.asked.has("only-matching")
        stops_at_first = self.asked.has("files-with-matches")
        every = (only or self.asked.has("count-matches")) and not invert
        source = _Lines(_blocks(file, is_utf_16=is_utf_16), text=self.asked.has("text"))
        for number, offset, line in source:
            if source.is_binary and not self._with_binary:
                return
            text, read, matched = self._read_line(line)
            is_over = self._most is not None and lines >= self._most
            if is_over and not printed.wants_after:
                break
            if is_over or matched is invert:
                printed.context(number, offset, line)
                continue
            lines += 1
            occurrences = list(_occurrences(pattern, read)) if every else []
            matches += len(occurrences) or 1
            if stops_at_first or (source.is_binary and not printed.lists):
                break
            if only:
                for start, end in occurrences:
                    if start == end:
                        continue
                    before = len(encoded(text[:start]))
                    printed.hit(number, offset + before, encoded(text[start:end]))
            else:
                printed.hit(number, offset, line)
        if source.is_binary and matches:
            printed.note()
        printed.end(matches)

    def _read_line(self, line: bytes) -> tuple[str, str, bool]:
        """A line as text, as the pattern reads it, and whether that matches."""
        assert self._pattern is not None
        for text in readings(line, self._held):
            read = text.translate(APART) if self._folds and not line.isascii() else text
            if self._pattern.search(read):
                return text, read, True
        return text, read, False

    def _complain(self, message: str) -> None:
        self.failed = True
        sys.stderr.write(f"rg: {message}\n".encode("utf-8", "replace").decode())


class _Printed:
    """What is printed of one file."""

    def __init__(self, search: StandIn, shown: bytes) -> None:
        self._search = search
        self._asked = search.asked
        self._shown = shown
        self._begun = False
        self._last = 0  # the number of the last line that was printed
        self.wants_after = 0
        """How many lines more are wanted around the last hit."""
        self._waiting: list[tuple[int, int, bytes]] = []
        self.lists = any(map(self._asked.has, ("count", "count-matches", "files-with-matches")))

    def hit(self, number: int, offset: int, text: bytes) -> None:
        if self.lists:
            return
        for line in self._waiting:
            self._line(*line, b"-")
        self._waiting.clear()
        self._line(number, offset, text, b":")
        self.wants_after = self._search._after

    def context(self, number: int, offset: int, text: bytes) -> None:
        if self.wants_after:
            self.wants_after -= 1
            self._line(number, offset, text, b"-")
        elif self._search._before:
            self._waiting = [*self._waiting, (number, offset, text)][-self._search._before :]

    def note(self) -> None:
        if not self.lists:
            if not self._begun and self._search._printed_file:
                self._search.out.write(b"\n")
            self._search._printed_file = True
            self._search.out.write(self._shown + b': binary file matches (found "\\0" byte around offset 0)\n')

    def end(self, matches: int) -> None:
        search, asked = self._search, self._asked
        search.found = search.found or bool(matches)
        if not self.lists or not (matches or asked.has("include-zero")):
            return
        search.out.write(self._shown + b"\0")
        if asked.has("count") or asked.has("count-matches"):
            search.out.write(b"%d\n" % matches)

    def _line(self, number: int, offset: int, text: bytes, mark: bytes) -> None:
        out = self._search.out
        if not self._begun and self._asked.has("heading"):
            out.write((b"\n" if self._search._printed_file else b"") + self._shown + b"\0")
        elif self._begun and (self._search._before or self._search._after) and number > self._last + 1:
            out.write(b"--\n")
        self._begun = self._search._printed_file = True
        self._last = number
        columns = self._asked.number("max-columns")
        if columns is not None:
            text = preview(text, columns)
        if self._asked.has("line-number"):
            out.write(b"%d%s" % (number, mark))
        if self._asked.has("byte-offset"):
            out.write(b"%d%s" % (offset, mark))
        out.write(text + b"\n")


def _rooted(path: str) -> tuple[str, str]:
    """The folder that may not be left (the working folder, a handle, or the path's own), and the path below it."""
    if path == "." or path.startswith("./"):
        return ".", path[2:]
    if path.startswith(f"{HANDLES}/"):
        number, _, relative = path[len(HANDLES) + 1 :].partition("/")
        return f"{HANDLES}/{number}", relative
    folder, _, name = path.rpartition("/")
    return (path, "") if os.path.isdir(path) else (folder or ".", name)


class _Lines:
    """Number, offset and text of each line. From the first NUL on, each NUL ends a line too, as for grep.

    Args:
        blocks: Pieces of the file.
        text: Whether a NUL is a character like any other.
    """

    def __init__(self, blocks: Iterable[bytes], *, text: bool = False) -> None:
        self.is_binary = False
        self._blocks = blocks
        self._text = text

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        number, offset = 0, 0
        begun: list[bytes] = []
        for block in self._blocks:
            self.is_binary = self.is_binary or (b"\0" in block and not self._text)
            *whole, rest = (block.replace(b"\0", b"\n") if self.is_binary else block).split(b"\n")
            for line in whole:
                line = b"".join((*begun, line)) if begun else line
                begun.clear()
                number += 1
                yield number, offset, line
                offset += len(line) + 1
            if rest:
                begun.append(rest)
        if begun:
            yield number + 1, offset, b"".join(begun)


def _blocks(file: BufferedReader[FileIO], *, is_utf_16: bool) -> Iterator[bytes]:
    """The pieces of a file; UTF-16 as UTF-8."""
    if not is_utf_16:
        return iter(lambda: file.read(BLOCK), b"")
    decoded = TextIOWrapper(file, encoding="utf-16", errors="replace", newline="\n")
    return (text.encode("utf-8", "replace") for text in iter(lambda: decoded.read(BLOCK), ""))


def _occurrences(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where each occurrence begins and ends. Unlike with `finditer`, where an empty one is there is no other one."""
    at = 0
    while at <= len(text) and (found := pattern.search(text, at)) is not None:
        start = found.start(KEPT) if KEPT in pattern.groupindex else -1
        yield start if start >= 0 else found.start(), found.end()
        at = max(found.end(), found.start() + 1)


def main() -> None:
    """Search as the arguments say, and exit as ripgrep does."""
    try:
        code = StandIn(sys.argv[1:], sys.stdout.buffer).run()
        sys.stdout.flush()
    except _Refused as refused:
        sys.stderr.write(f"rg: {refused}\n")
        code = 2
    except MemoryError:
        sys.stderr.write("rg: memory allocation of a line failed\n")
        code = 101
    except BrokenPipeError:
        code = 0
    os._exit(code)
