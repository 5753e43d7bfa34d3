"""`te grep`: one streamed pass of ripgrep, exact totals, and as many hits as the budget holds.

The totals are exact whatever is shown. ripgrep buffers a file's results, so each file is capped in that pass to
keep its memory flat, and only the files that met the cap are counted once more. `matches` is the number of lines
that grep would print (with `-o` the occurrences, with `-l` and `-L` the files, with `-c` the sum of the counts).

Files that are hidden or ignored (`.gitignore`) are searched only on demand (`--hidden`, `--no-ignore`), as with
ripgrep. Binary files are searched as grep does it, counted, and not printed; where that takes too long, since one of
them is larger than can be read, the search begins again without those that were not named.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress

from llm_do_mcp.te.accounts import Accounts
from llm_do_mcp.te.envelope import TeError, compose
from llm_do_mcp.te.handles import usual_folder
from llm_do_mcp.te.hits import Hits
from llm_do_mcp.te.options import MAX_PATTERN_CHARACTERS, Query, parse
from llm_do_mcp.te.patience import Interrupted, Patience
from llm_do_mcp.te.pattern import NOTHING, choices, invalid, is_lower, literal, translate
from llm_do_mcp.te.ripgrep import NAMED_AT_ONCE, Blocked, Ripgrep, Search, Unhurried
from llm_do_mcp.te.roots import Place, Root, Workspace, escaped_glob, kind_of
from llm_do_mcp.te.settings import KEPT
from llm_do_mcp.te.text import bytes_of, is_text, one_line, passable, shown_text
from llm_do_mcp.te.writing import COLUMNS, parted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from llm_do_mcp.te.envelope import Frame, Line
    from llm_do_mcp.te.longest import Longest

PER_FILE = 20_000
"""Lines of one file that ripgrep prints at most; the rest is counted."""
LARGEST_FILE = 16 << 30
"""Bytes of a file that is searched when it is named."""
WITHOUT_LONG_LINES = "64M"
"""Files above this are skipped in a second attempt, where a line did not fit into ripgrep's memory."""
WITH_BINARY_SHARE = 1 / 6
"""The part of the time, after which a search of folders begins again without binary files."""
_SHORTEST = 3
"""Bytes of the shortest line that ripgrep prints: a digit, a colon and its end."""
_READ_FIRST = 3
"""Bytes that ripgrep reads of a file before all others: as many as may mark an encoding."""
_GIVEN_UP = b": PCRE2: error matching: "
"""What ripgrep says of a file that it does not search to its end."""


class Grep:
    """One `te grep` command.

    Args:
        arguments: What follows `grep`.
        workspace: Where it may look.
        patience: When it has to stop.
        confined: Whether ripgrep runs under Landlock. A guarded workspace without it verifies each line.
    """

    def __init__(self, arguments: Sequence[str], workspace: Workspace, patience: Patience, *, confined: bool) -> None:
        self.query: Query = parse(list(arguments))
        self.workspace = workspace
        self.verify = workspace.guarded and not confined
        self.notes: list[str] = []
        self.fields: dict[str, int | str] = {}
        self.corrected: list[int] = []
        """The files whose numbers a second look has corrected, or was about to."""
        self.selects = False
        """Whether a line was selected, where files are listed or counted: with `-L` in a file that is not."""
        self._flags: list[str] = []
        """What ripgrep is told whatever it prints (see `_asked`), once that is settled."""
        self.longest: Longest | None = None
        """What finds the occurrences (`-o`) where the first alternative that matches may not be the longest."""
        self._held: re.Pattern[bytes] | None = None
        """What finds the bytes in the patterns of `longest` that are no text."""
        self._astray: list[str] = []
        """Globs against links that lead out of what may be searched, where links are followed."""
        self.places = self._places()
        roots = list(dict.fromkeys(place.root for place in self.places))
        self.ripgrep = Ripgrep(
            patience,
            working_folder=workspace.mount(roots),
            folders=[root.handle for root in roots if root.handle is not None],
            confined=confined,
        )
        _check(self.query.patterns or [])
        self._begin()
        if self.ripgrep.missing:
            self._tell_of_built_in()

    def run(self, frame: Frame) -> tuple[str, int]:
        """The answer, and grep's exit code: 0 matches, 1 none, 2 an error.

        Raises:
            TeError: The command cannot be answered at all.
        """
        try:
            if self._can_match():
                self._search()
            sections = self.hits.sections(frame.budget)
            answer = compose("grep", lambda cut: self._told(cut=cut), self.notes, sections, frame)
            told = self._told(cut=False)
        finally:
            self.accounts.close()
        by_selection = self.query.output == "without" or self.query.shows_nothing
        found = self.selects if by_selection else told["matches"] or self.accounts.binary
        return answer, 2 if "error" in told else int(not found)

    @property
    def input_size(self) -> int:
        """Bytes that ripgrep printed, as far as they are kept."""
        return self.accounts.spool.size

    def remembered(self) -> tuple[object, Iterable[bytes]] | None:
        """What `recalled` needs: the counts that were corrected, how paths start, and all that was printed."""
        if self.query.output != "lines":
            return None
        corrected = {index: self.accounts.counts[index] for index in self.corrected}
        return (corrected, self.workspace.mounts()), self.accounts.spool.pieces()

    def recalled(
        self, facts: tuple[dict[int, int], list[str | None]], pieces: Iterable[bytes], budget: int
    ) -> Iterator[tuple[int, Iterable[Line]]]:
        """The sections of this search without searching again; then, as -1, what was printed in part or not at all."""
        corrected, mounts = facts
        here = {place.root: place.root.mount for place in self.places}
        self.workspace.remount(mounts)
        try:
            self.accounts.read(pieces)
            for index, count in corrected.items():
                self.accounts.counts[index] = count
            for number, section in enumerate(self.hits.sections(budget)):
                yield number, section.rest()
            unkept = (index for index in range(len(self.accounts.counts)) if not self.accounts.is_kept(index))
            large = {*corrected, *unkept}
            cut = [index for index in self.hits.cut_lines if index not in large]
            for first in range(0, len(cut), NAMED_AT_ONCE):
                yield -1, self._whole_of_some(cut[first : first + NAMED_AT_ONCE], here)
            for index in sorted(large):
                if self.accounts.counts[index]:
                    yield -1, self._whole(index, self._printed_whole(self._mounted(index, here)))
        finally:
            self.accounts.close()

    def _whole_of_some(self, files: Sequence[int], mounts: Mapping[Root, str | None]) -> Iterator[Line]:
        """The lines of files that are shown in part, with one search for all the files."""
        paths = [self._mounted(index, mounts) for index in files]
        again = Accounts()
        try:
            if there := [path for path in paths if path]:
                again.read(self._printed_of(*there, whole=True))
            found = {path: at for at, path in enumerate(again.paths) if again.is_kept(at)}
            for index, path in zip(files, paths, strict=True):
                at = found.get(os.fsencode(path))
                lines = self._printed_whole(path) if at is None else (line for _, line in again.lines(at))
                yield from self._whole(index, lines)
        finally:
            again.close()

    def _mounted(self, index: int, mounts: Mapping[Root, str | None]) -> str:
        """The path of a file for ripgrep, which may have been another when it was found.

        It is empty where no regular file is there any more: ripgrep would wait for a FIFO.
        """
        root, relative = self.workspace.locate(self.accounts.paths[index])
        with suppress(OSError):
            if kind_of(root.stat(relative).st_mode) == "f":
                return f"{mounts[root]}/{relative}"
        return ""

    def _whole(self, index: int, whole: Iterable[bytes]) -> Iterator[Line]:
        """The lines of a file that are shown in part, and those behind the last that was printed: all of each.

        Where the file has changed, so that some of them are not there, what had been printed of those has to do.

        Args:
            index: The file.
            whole: All that is printed for it.
        """
        last, missing = self.accounts.last_number(index), self.hits.cut_lines.get(index, 0)

        def wanted() -> Iterator[bytes]:
            nonlocal missing
            for line in whole:
                if not (number := parted(line)[0]):
                    continue
                is_cut = int(number) <= last and self.hits.cuts(line)
                missing -= is_cut
                if is_cut or int(number) > last:
                    yield line

        yield from self.hits.written(index, wanted(), whole=True)
        if missing > 0:
            printed = (line for _, line in self.accounts.lines(index))
            yield from deque((line for line in self.hits.written(index, printed) if line.is_cut), missing)

    def _printed_whole(self, path: str) -> Iterator[bytes]:
        """The lines of one file, long ones whole; none where it is gone (`_mounted`)."""
        if not path:
            return
        from llm_do_mcp.te.relined import whole_lines

        heading = True
        for lines in whole_lines(self._printed_of(path, whole=True)):
            for line in lines:
                if heading:
                    _, nul, line = line.partition(b"\0")
                    heading = not nul
                if not heading:
                    yield line

    def _begin(self) -> None:
        """Nothing has been found yet."""
        patterns = [] if self.query.pattern_files else self.query.patterns or []
        self.accounts = Accounts(self._seen, self._counted())
        self.hits = Hits(self.query, patterns, self.accounts, self.workspace, self.ripgrep, verify=self.verify)

    def _tell_of_built_in(self) -> None:
        self.notes.insert(0, f"searched by the slower built-in search: {self.ripgrep.missing}")

    def _seen(self, paths: Sequence[bytes]) -> Sequence[bool]:
        """Which of the files that ripgrep found count: those that may be seen, and are chosen."""
        query, workspace = self.query, self.workspace
        seen = workspace.seen(paths)
        if query.follow:
            seen = [is_seen and workspace.contains(path) for is_seen, path in zip(seen, paths, strict=True)]
        if query.selection is not None and query.selection.is_beyond_globs:
            admits = query.selection.admits
            named = {os.fsencode(place.argument) for place in self.places if place.size is not None}
            seen = [
                is_seen and (path in named or admits(os.fsdecode(path[path.rfind(b"/") + 1 :])))
                for is_seen, path in zip(seen, paths, strict=True)
            ]
        return seen

    def _told(self, *, cut: bool) -> dict[str, int | str]:
        """The header's fields."""
        accounts, hits = self.accounts, self.hits
        fields: dict[str, int | str] = {"matches": accounts.total - hits.changed, "files": accounts.files}
        if cut and accounts.total:
            fields["hot_zone"] = hits.hot_zone()
        for name, number in (("binary", accounts.binary), ("changed", hits.changed)):
            if number:
                fields[name] = number
        return {**fields, **self.fields}

    @property
    def _prints_occurrences(self) -> bool:
        return self.query.only_matching and self.query.output == "lines" and not self.query.invert

    @property
    def _follows(self) -> bool:
        return self.query.follow and not self.workspace.guarded

    def _can_match(self) -> bool:
        return self.query.max_count != 0 or self.query.output == "without"

    def _places(self) -> list[Place]:
        """What is to be searched. As with grep, a path that is not there is told and the others are searched."""
        if not self.query.paths:
            globs = self.query.globs
            return [place for place in self.workspace.resolve(".") if not self.workspace.excluded(place.root, globs)]
        places: list[Place] = []
        errors: list[TeError] = []
        selection = self.query.selection
        for path in self.query.paths:
            try:
                found = self.workspace.resolve(path)
            except TeError as error:
                errors.append(error)
                continue
            places += [
                place for place in found if selection is None or selection.admits(path, is_folder=place.size is None)
            ]
        for place in list(places):
            if place.size is not None and place.size > LARGEST_FILE:
                places.remove(place)
                shown = self.workspace.shown(place.root, place.relative)
                errors.append(TeError("too_large", f"{shown} is over {LARGEST_FILE >> 30} GiB, too large to search"))
        if errors and not places:
            raise errors[0]
        if errors:
            self.fields["error"] = errors[0].code
            self.notes.extend(error.message for error in errors[:5])
        return places

    # ---- the search ----

    def _search(self) -> None:
        try:
            if self._follows:
                from llm_do_mcp.te.astray import globs_against

                self._astray = globs_against(self.places, self.workspace, self.query, self.ripgrep.patience)
            self._pass_to_an_end()
            if self.query.output == "lines":
                self._look_again()
        except Interrupted as interruption:
            if interruption.code == "cancelled":
                raise TeError("cancelled", "the search was cancelled") from interruption
            self.fields["error"] = interruption.code
            self.notes.append(
                f"stopped after {self.ripgrep.patience.seconds:g} s: the totals are of what was searched until then"
            )

    def _pass_to_an_end(self) -> None:
        try:
            self._pass()
        except Blocked as blocked:
            self.ripgrep.do_without(str(blocked))
            self._flags = []
            self._tell_of_built_in()
            self._begin_again()
            self._pass()

    def _pass(self) -> None:
        asked, where = self._asked(), ["--", *(place.argument for place in self.places)]
        if not self.places:
            self._tell_if_nothing_was_searched(where)
            return
        search = self._with_binary_files([*asked, *self._format(capped=True), *where])
        if b"memory allocation of" in search.complaint:
            # A line did not fit into the memory that ripgrep may have, and ended it. Once more, without such files.
            self._check_not_blocked()
            self._begin_again()
            self.fields["skipped"] = f"over {WITHOUT_LONG_LINES}"
            self.notes.append(f"files over {WITHOUT_LONG_LINES} were skipped: a line in one of them is too long")
            smaller = ["--binary", f"--max-filesize={WITHOUT_LONG_LINES}"]
            search = self._read([*asked, *smaller, *self._format(capped=True), *where])
        found = bool(self.accounts.files or self.accounts.binary)
        if not found and search.exit_code == 2:
            self._explain(search)
        if search.exit_code not in (0, 1, 2):
            self.fields["error"] = "search_failed"
            self.notes.append(
                f"ripgrep ended early (code {search.exit_code}): the totals are of what it told until then"
            )
        if search.complaints:
            self.fields["errors"] = search.complaints
        if _GIVEN_UP in search.complaint:
            self.fields["error"] = "search_failed"
            self.notes.append("ripgrep gave a file up: this pattern has more ways to match there than PCRE2 tries")
        if not found and all(place.size is None for place in self.places):
            self._tell_if_nothing_was_searched(where, search.complaints)

    def _with_binary_files(self, arguments: list[str]) -> Search:
        patience = self.ripgrep.patience
        if all(place.size is not None for place in self.places):  # a file that is named is searched in any case
            return self._read(arguments)
        share = patience.at_most(patience.seconds * WITH_BINARY_SHARE)
        try:
            return self._read(["--binary", *arguments], share)
        except Interrupted:
            patience.check()
        self._check_not_blocked()
        self._begin_again()
        self.fields["skipped"] = "binary files"
        self.notes.append(
            f"binary files in folders were left out: with them the search had not ended after {share.seconds:.2g} s"
        )
        return self._read(arguments)

    def _check_not_blocked(self) -> None:
        if not (self.query.no_ignore or self.ripgrep.missing):
            from llm_do_mcp.te.blocked import check

            check(
                self.places,
                self.workspace,
                self.ripgrep.patience,
                follows=self._follows,
                beyond_root=not self.ripgrep.confined,
            )

    def _begin_again(self) -> None:
        self.accounts.close()
        self._begin()

    def _read(self, arguments: list[str], patience: Patience | None = None) -> Search:
        lines = self.query.output == "lines" and not self.query.shows_nothing
        with Unhurried():
            search = self.ripgrep.start(arguments, patience=patience)
            self.workspace.read_rules()
            try:
                if lines:
                    for piece in self._printed(search):
                        self.accounts.feed(piece)
                        self.hits.advance()
                else:
                    self._read_list(search.pieces())
            finally:
                self.accounts.finish()
        if lines and self.query.context and self.query.before:
            self._find_binary(arguments, patience)
        return search

    def _find_binary(self, arguments: list[str], patience: Patience | None) -> None:
        """Count the binary files of which ripgrep says nothing: it leaves one at the first line around a hit."""
        listed = self.ripgrep.start(["--files-with-matches", *arguments], patience=patience)
        self.accounts.add_binary(listed.all().split(b"\0")[:-1])

    def _printed(self, search: Search, *, whole: bool = False) -> Iterator[bytes]:
        """What ripgrep prints, changed where it does not do as grep does; `whole`: long lines were asked for whole."""
        query = self.query
        if self.longest is None and not (query.context and query.max_count):
            return search.pieces()
        from llm_do_mcp.te.relined import at_most, occurrences, relined

        if self.longest is not None:
            change = occurrences(self.longest.find, self._held, offsets=self.verify, whole=whole)
            return relined(search.pieces(), change)
        return relined(search.pieces(), at_most(query.max_count or 0, offsets=self.verify))

    def _printed_of(self, *paths: str, whole: bool = False) -> Iterator[bytes]:
        """All that is printed for files; that of a single one ripgrep streams, since it reads no other."""
        search = self.ripgrep.start([*self._asked(), *self._format(whole=whole), "--", *paths])
        return self._printed(search, whole=whole)

    def _read_list(self, pieces: Iterable[bytes]) -> None:
        """The records of `-l` (`path NUL`), `-c` and `-L` (`path NUL count newline`)."""
        counted = self.query.output in ("counts", "without")
        wants_none = self.query.output == "without"
        rest = b""
        for piece in pieces:
            rest += piece
            at = 0
            while (end := rest.find(b"\0", at)) >= 0:
                path, count, after = rest[at:end], 1, end + 1
                if counted:
                    newline = rest.find(b"\n", after)
                    if newline < 0:
                        break
                    count, after = int(rest[after:newline]), newline + 1
                self.selects = self.selects or count > 0
                if wants_none and not count:
                    self.accounts.add(path, 1)
                elif not wants_none and not self.query.shows_nothing:
                    self.accounts.add(path, count)
                at = after
            rest = rest[at:]

    def _look_again(self) -> None:
        """Correct the numbers of the files of which one pass of ripgrep does not tell all."""
        accounts, most = self.accounts, self.query.max_count
        if most is None or most > PER_FILE:
            self.corrected = [index for index, count in enumerate(accounts.counts) if self._is_capped(index, count)]
            if self.corrected:
                self._recount()
        elif 0 < most <= _READ_FIRST:
            from llm_do_mcp.te.second_look import leave_out_binary

            printed = _READ_FIRST * (_SHORTEST + 2 * self.verify)
            self.corrected = leave_out_binary(accounts, self.workspace, printed)

    def _recount(self) -> None:
        from llm_do_mcp.te.second_look import recount, recount_occurrences

        if self.query.only_matching:
            recount_occurrences(self.accounts, self.corrected, self._printed_of, self._counted())
        else:
            recount(self.accounts, self.corrected, self.ripgrep, [*self._asked(), *self._counting()])

    def _is_capped(self, index: int, count: int) -> bool:
        """Whether a file may have met the cap of the first pass: with `-o` also by lines without an occurrence."""
        accounts = self.accounts
        if count >= PER_FILE:
            return True
        if not self.query.only_matching or accounts.printed(index) < _SHORTEST * PER_FILE:
            return False
        return accounts.last_number(index) >= PER_FILE or not accounts.is_kept(index)

    def _tell_if_nothing_was_searched(self, where: list[str], complaints: int = 0) -> None:
        """No match in no file is not "0 matches": everything may be hidden or ignored."""
        if not self._searches_something(where):
            self.fields["error"] = "nothing_searched"
            why = "hidden, ignored or excluded (see --hidden, --no-ignore)"
            self.notes.append(f"no file was searched: all {'may not be read, or ' if complaints else ''}are {why}")

    def _searches_something(self, where: list[str]) -> bool:
        if not self.places:
            return False
        files = [*self._filters(), "--files"]
        selection = self.query.selection
        if not self.workspace.has_rules and (selection is None or not selection.is_beyond_globs):
            return not self.ripgrep.output([*files, "--quiet", *where])[0]  # all counts that ripgrep finds
        rest = b""
        for piece in self.ripgrep.start([*files, "--null", *where]).pieces():
            *paths, rest = (rest + piece).split(b"\0")
            if any(self._seen(paths)):
                return True
        return False

    def _explain(self, search: Search) -> None:
        """Raise what ripgrep's refusal means; return where it only could not read something."""
        complaint = search.complaint.removeprefix(b"rg: ")
        reason = shown_text(complaint.rpartition(b"error: ")[2].partition(b"\n")[0], 200)
        if complaint.startswith((b"regex parse error", b"compiled regex", b"the literal", b"PCRE2: error compiling")):
            raise invalid(reason.removeprefix("PCRE2: error compiling pattern "))
        if complaint.startswith(b"PCRE2 is not available"):
            raise TeError("invalid_pattern", "this ripgrep has no PCRE2, which -P and back references need")
        if complaint.startswith(b"unrecognized file type"):
            raise TeError("unknown_type", f"{reason} ({self._known_types()})")
        if complaint.startswith(b"error parsing glob"):
            raise TeError("invalid_glob", reason)
        if not search.complaints:
            raise TeError("search_failed", f"ripgrep refused the search: {reason}")

    def _known_types(self) -> str:
        if not self.ripgrep.missing:
            return "rg --type-list shows those that ripgrep knows"
        from llm_do_mcp.te.filetypes import TYPES

        return f"without ripgrep there are {' '.join(TYPES)}"

    # ---- what ripgrep is told ----

    def _asked(self) -> list[str]:
        """What is looked for, and in which files; settled once, since files of patterns are read for it."""
        if not self._flags:
            self._flags = [*self._patterns(), *self._filters()]
        return self._flags

    def _patterns(self) -> list[str]:
        query = self.query
        patterns = [*(query.patterns or []), *self._patterns_from_files()]
        _check(patterns)
        if query.max_count == 0:
            return [f"--regexp={NOTHING}"]
        case = query.case
        if self.ripgrep.missing and case:  # what stands in for it knows no `--smart-case`
            case = "--ignore-case" if self._ignores_case(patterns) else ""
        flags: list[str] = []
        if (query.word or query.syntax == "perl") and not all(map(is_text, patterns)):
            raise invalid("it holds a byte that is not UTF-8, and -w and -P read text")
        by_flag = query.word
        if query.word and query.syntax != "perl" and not self.ripgrep.missing and _are_words(patterns):
            # Its flag finds no word beside a byte that is not UTF-8.
            patterns, by_flag = [rf"\b{{start}}(?:{'|'.join(patterns)})\b{{end}}"], False
        elif query.syntax == "fixed":
            patterns.sort(key=len, reverse=True)  # of those that match at a place, `-o` prints the longest
            if self.ripgrep.missing or all(map(is_text, patterns)):
                flags.append("--fixed-strings")
            else:
                patterns = ["".join(map(literal, pattern)) for pattern in patterns]
        elif query.syntax == "perl":
            flags.append("--pcre2")
            if self._prints_occurrences and not self.ripgrep.missing:
                # At the end of a file without a last newline it prints the whole line for an empty one.
                patterns = [rf"(?!\z)(?:{pattern})" for pattern in patterns]
        else:
            extended, python = query.syntax == "extended", bool(self.ripgrep.missing)
            if self._prints_occurrences:
                self._choose(patterns, extended=extended)
            patterns, pcre = translate(patterns, extended=extended, python=python)
            if pcre:
                flags.append("--pcre2")
        if not patterns:
            patterns = [NOTHING]
            flags = []
        flags.extend(f"--regexp={pattern}" for pattern in patterns)
        for wanted, flag in (
            (case, case),
            (by_flag, "--word-regexp"),
            (query.whole_line, "--line-regexp"),
            (query.invert, "--invert-match"),
        ):
            if wanted:
                flags.append(flag)
        return flags

    def _ignores_case(self, patterns: list[str]) -> bool:
        """Whether ripgrep does, given these patterns; as they were typed."""
        query = self.query
        if query.case != "--smart-case":
            return bool(query.case)
        if query.syntax in ("basic", "extended"):
            patterns, _ = translate(patterns, extended=query.syntax == "extended")
        return is_lower(patterns, fixed=query.syntax == "fixed")

    def _choose(self, patterns: list[str], *, extended: bool) -> None:
        """See to it that of several alternatives the longest is an occurrence."""
        if (branches := choices(patterns, extended=extended)) is None:
            return
        from llm_do_mcp.te.longest import Longest, TooLarge

        query = self.query
        self._held = bytes_of(patterns)
        with suppress(TooLarge):  # then it is the first
            self.longest = Longest(
                branches,
                ignore_case=self._ignores_case(patterns),
                word=query.word,
                whole_line=query.whole_line,
                check=self.ripgrep.patience.check,
            )

    def _patterns_from_files(self) -> list[str]:
        patterns: list[str] = []
        for name in self.query.pattern_files:
            places = self.workspace.resolve(name)
            try:
                if len(places) != 1:
                    raise OSError("a folder")
                handle = places[0].root.open(places[0].relative)
            except OSError as error:
                raise TeError("not_a_file", f"-f needs a regular file: {one_line(name)}") from error
            with os.fdopen(handle, "rb") as file:
                text = file.read(MAX_PATTERN_CHARACTERS + 1)
            if len(text) > MAX_PATTERN_CHARACTERS:
                raise TeError(
                    "too_long", f"te grep takes no pattern file of more than {MAX_PATTERN_CHARACTERS:,} bytes"
                )
            patterns.extend(os.fsdecode(line) for line in text.removesuffix(b"\n").split(b"\n") if text)
        return patterns

    def _filters(self) -> list[str]:
        query, anchored = self.query, self.workspace.anchored
        # What is found must not depend on who searches: on files that git has for a user.
        flags = ["--no-mmap", "--no-ignore-global", *query.types]
        if not self.workspace.lies_in_repository:  # there git's ignore files hold up to its top, elsewhere anywhere
            flags.append("--no-require-git")
        flags.extend(f"--glob={glob}" for given in query.globs for glob in anchored(given))
        flags.extend(f"--iglob={glob}" for given in query.caseless_globs for glob in anchored(given))
        flags.extend(f"--glob={glob}" for glob in self._astray)
        for name in sorted(self.workspace.hidden):
            if name == KEPT and not self.workspace.holds(usual_folder()):
                continue  # it is not there; should it be after all, it is left out of what was found
            if query.hidden or query.globs or query.caseless_globs or not name.startswith("."):
                flags.append(f"--iglob=!{escaped_glob(name)}")  # the last one wins; each costs a search a few percent
        if query.hidden:
            flags.append("--hidden")
        if query.no_ignore:
            flags.append("--no-ignore")
        elif not self.workspace.gitignore:
            flags.append("--no-ignore-vcs")
        if self._follows:
            flags.append("--follow")
        if self.workspace.guarded:
            flags.append("--no-ignore-parent")  # nor, where these cannot be read, on files outside the roots
        if self.verify:
            flags.append("--encoding=none")  # offsets are then those of the file
        if os.name == "nt":
            flags.append("--path-separator=/")
        return flags

    def _counting(self) -> list[str]:
        most = self.query.max_count
        limit = [] if most is None else [f"--max-count={most}"]
        return ["--count", "--null", "--with-filename", *limit]

    def _format(self, *, capped: bool = False, whole: bool = False) -> list[str]:
        """How ripgrep prints: `capped`, at most `PER_FILE` lines of a file; `whole`, long lines not only in part."""
        query = self.query
        listed = {
            "files": ["--files-with-matches", "--null"],
            # The others are told too, since grep's exit code is theirs.
            "without": ["--count", "--include-zero", "--null", "--with-filename", "--max-count=1"],
            "counts": self._counting(),
        }
        kind = "files" if query.shows_nothing else query.output
        if kind in listed:
            return listed[kind]
        flags = ["--line-number", "--heading", "--null", "--with-filename"]
        if limits := [number for number in (PER_FILE if capped else None, query.max_count) if number is not None]:
            flags.append(f"--max-count={min(limits)}")
        if self.longest is None and not whole:
            flags.extend((f"--max-columns={COLUMNS}", "--max-columns-preview"))
        if self.verify:
            flags.append("--byte-offset")
        if query.only_matching and self.longest is None:
            flags.append("--only-matching")
        elif query.context:
            flags.extend((f"--before-context={query.before}", f"--after-context={query.after}"))
        return flags

    def _counted(self) -> re.Pattern[bytes] | None:
        """What is a match in ripgrep's output; None where every line is one."""
        if self.query.output != "lines" or not (self.query.context or self.query.only_matching):
            return None
        import re

        something = b"." if self.query.only_matching else b""
        return re.compile(rb"(?m)^\d+:" + (rb"\d+:" if self.verify else b"") + something)


def _are_words(patterns: Sequence[str]) -> bool:
    """Whether they are words that fit into one argument."""
    return sum(map(len, patterns)) <= MAX_PATTERN_CHARACTERS and all(
        pattern.isascii() and pattern.replace("_", "a").isalnum() for pattern in patterns
    )


def _check(patterns: Iterable[str]) -> None:
    if not all(map(passable, patterns)):
        raise invalid("it holds a NUL, or half of a surrogate pair")
