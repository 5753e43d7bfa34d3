"""Where in a line the longest of what patterns match lies, as POSIX has it; for what engines answer with the first.

The alternatives are one automaton, whose states are made as texts need them. It goes over a text once from each place
where a match may begin, whatever the pattern is, and never tries again: no pattern can take forever.
"""

from __future__ import annotations

import re

from llm_do_mcp.te.pattern import APART, Atom, Either

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from llm_do_mcp.te.pattern import Part

    State = tuple[frozenset[int], bool]
    """The steps that may come next, and whether what has been read so far matches."""

MOST_STEPS = 20_000
"""Steps of an automaton; `a{1000}` has a thousand."""
MOST_KEPT = 50_000
"""States that are kept, by what leads to them."""
_CHECKED_EVERY = 4096
_NONE, _WORD, _OTHER = range(3)
"""The kinds of neighbours: none, a character of a word, another one. Places between characters know no more."""
_SAMPLES = ("", "a", ".")
"""Of each kind one."""


class TooLarge(Exception):
    """The patterns make too large an automaton."""


class Longest:
    """Finds what `grep -o` prints.

    Args:
        branches: The alternatives, as `pattern.choices` gives them.
        ignore_case: As with `-i`.
        word: As with `-w`.
        whole_line: As with `-x`.
        check: Called now and then; raises what ends the search.

    Raises:
        TooLarge: See `MOST_STEPS`.
    """

    def __init__(
        self,
        branches: Sequence[Sequence[Part]],
        *,
        ignore_case: bool,
        word: bool,
        whole_line: bool,
        check: Callable[[], object],
    ) -> None:
        self._flags = re.IGNORECASE if ignore_case else 0
        self._word = word
        self._whole_line = whole_line
        self._check = check
        self._atoms: list[Atom | None] = [None]
        """By step, the atom that leads on to the steps behind it; None where these follow at once."""
        self._behind: list[list[int]] = [[]]  # the first one is the end
        try:
            self._starts = [self._added(branch, 0) for branch in branches]
        except RecursionError as error:
            raise TooLarge from error
        self._one = {atom.source: self._compiled(atom.source) for atom in self._atoms if atom is not None}
        self._next: dict[tuple[frozenset[int], str, int], State] = {}
        self._begun: dict[tuple[int, int], State] = {}
        sources = {atom.source for atom in self._atoms if atom is not None and atom.width}
        self._any = self._compiled("|".join(f"(?:{source})" for source in sorted(sources)) or r"(?!)")

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where each match begins and ends, from left to right; none that is empty."""
        if self._flags and not text.isascii():
            text = text.translate(APART)
        at = tries = 0
        while (found := self._any.search(text, at)) is not None:
            at = found.start()
            end = self._end(text, at)
            if end > at:
                yield at, end
            at = max(end, at + 1)
            tries += 1
            if not tries % _CHECKED_EVERY:
                self._check()

    def _end(self, text: str, start: int) -> int:
        """Where the longest match ends that begins there; -1 where there is none."""
        if (self._whole_line and start) or (self._word and start and _kind(text[start - 1]) == _WORD):
            return -1
        best, at, size = -1, start, len(text)
        steps, matches = self._beginning(_kind(text[start - 1 : start]), _kind(text[start : start + 1]))
        while steps and at < size:
            if not at % _CHECKED_EVERY:
                self._check()
            character = text[at]
            at += 1
            steps, matches = self._after(steps, character, _kind(text[at : at + 1]))
            if matches and (at == size if self._whole_line else not self._word or _kind(text[at : at + 1]) != _WORD):
                best = at
        return best

    def _compiled(self, source: str) -> re.Pattern[str]:
        return re.compile(source.translate(APART) if self._flags else source, self._flags)

    # ---- the automaton ----

    def _added(self, parts: Sequence[Part], end: int) -> int:
        """The step with which parts begin that go on at `end`."""
        for part in reversed(parts):
            end = self._added_one(part, end)
        return end

    def _added_one(self, part: Part, end: int) -> int:
        if isinstance(part, Atom):
            return self._step(part, [end])
        if isinstance(part, Either):
            return self._step(None, [self._added(branch, end) for branch in part.branches])
        for _ in range(part.least, part.most if part.most is not None else part.least):
            end = self._step(None, [self._added_one(part.part, end), end])
        if part.most is None:
            again = self._step(None, [end])
            self._behind[again].append(self._added_one(part.part, again))
            end = again
        for _ in range(part.least):
            end = self._added_one(part.part, end)
        return end

    def _step(self, atom: Atom | None, behind: list[int]) -> int:
        if len(self._atoms) >= MOST_STEPS:
            raise TooLarge
        self._atoms.append(atom)
        self._behind.append(behind)
        return len(self._atoms) - 1

    def _beginning(self, before: int, after: int) -> State:
        if (before, after) not in self._begun:
            self._begun[before, after] = self._reached(self._starts, before, after)
        return self._begun[before, after]

    def _after(self, steps: frozenset[int], character: str, after: int) -> State:
        """The state behind a character, before a neighbour of a kind."""
        key = (steps, character, after)
        if key not in self._next:
            if len(self._next) >= MOST_KEPT:
                self._next.clear()
            behind = [next_ for step in steps if self._takes(step, character) for next_ in self._behind[step]]
            self._next[key] = self._reached(behind, _kind(character), after)
        return self._next[key]

    def _takes(self, step: int, character: str) -> bool:
        atom = self._atoms[step]
        return atom is not None and self._one[atom.source].fullmatch(character) is not None

    def _reached(self, steps: Sequence[int], before: int, after: int) -> State:
        """All steps that need a character, and whether the end is among those that follow without one."""
        seen: set[int] = set()
        waiting = list(steps)
        while waiting:
            step = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            atom = self._atoms[step]
            if atom is None or (not atom.width and self._holds(atom, before, after)):
                waiting.extend(self._behind[step])
        needing = (step for step in seen if (atom := self._atoms[step]) is not None and atom.width)
        return frozenset(needing), 0 in seen

    def _holds(self, atom: Atom, before: int, after: int) -> bool:
        """Whether a place lies between two such neighbours."""
        sample = _SAMPLES[before] + _SAMPLES[after]
        return self._one[atom.source].match(sample, len(_SAMPLES[before])) is not None


def _kind(neighbour: str) -> int:
    return _NONE if not neighbour else _WORD if neighbour.isalnum() or neighbour == "_" else _OTHER
