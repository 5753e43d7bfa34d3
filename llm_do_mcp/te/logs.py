"""What a log tells of itself: how many lines of each severity, and the time from the earliest to the latest.

A severity is a word where logs have it: behind the time and what usually follows that (a process, a logger's name), in
brackets, or as `level=…`. The same word in a message, or in the address that somebody asked for, is none. Lines on
which none is found are counted too, so that a sum of some lines does not pass for one of all.
"""

from __future__ import annotations

import re

from llm_do_mcp.te.sniffer import LEVELS, MONTHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LOOKED_AT = 400
"""Bytes of a line."""
_WORDS = b"|".join(LEVELS).lower().replace(b"warn", b"warning|warn")
_WORD, _UPPER = rb"(?:" + _WORDS + rb")", rb"(?:" + _WORDS.upper() + rb")"
_MONTH = rb"(?:" + b"|".join(MONTHS) + rb")"
_TIME = re.compile(
    rb"<?(?:\d{1,3}>)?(?P<syslog>" + _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d)\s+\S+"
    rb'|(?:[^"]{0,60}?|.{0,60}?\b(?:time|ts|timestamp)"?\s?[=:]\s?")'
    rb"(?:(?<!\d)(?P<date>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?)"
    rb"(?:(?:[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)\b)?"
    rb"|(?<!\d)(?P<access>\d\d/" + _MONTH + rb"/\d{4}[: ]\d\d:\d\d:\d\d))"
)
_BEFORE = (
    rb"(?>[\s\]|,;*-]+"
    rb"|\[[^\]]{0,80}\]|\([^)]{0,80}\)|\{[^}]{0,80}\}"  # [main], (worker-1), {a.py:12}
    rb"|[.,+\d][\w.:,+#-]*|Z\b|[A-Z]{2,4}T\b|UTC\b|GMT\b"  # the rest of the time, a process id
    rb"|(?:[\w.$/-]{1,60}\s)?[\w.$/-]{1,60}(?=\s[-|]\s)"  # a logger between dashes, a thread before it
    rb"|[\w.$/-]{1,60}(?:\[\d+\])?:(?=\s)"  # app[12]:
    rb"|[\w.-]{1,60}\s[\w./-]{1,60}\[\d+\]:)"  # host app[12]:
)
_LEVEL = re.compile(
    _BEFORE + rb"{0,10}?(?:[\[(<]\s*(?P<inside>(?i:" + _WORD + rb"))\s*[\])>]"
    rb"|(?P<upper>" + _UPPER + rb")(?=[\s:|\]/,-]|$)"
    rb"|(?P<marked>(?i:" + _WORD + rb"))(?=[:\t]))"
)
_BEHIND = re.compile(
    rb"(?:[.,]\d{1,9})?\s?(?:Z|[A-Z]{2,4}T|UTC|GMT)?[\s\]|,;:-]+(?P<behind>(?i:" + _WORD + rb"))(?=\s|$)"
)
"""Directly behind the time it may be in small letters."""
_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_NAMED = re.compile(rb'(?i)\b(?:level|levelname|loglevel|lvl|severity)"?\s*[=:]\s*"?(' + _WORD + rb")\b")


class Log:
    """Sums up lines.

    Args:
        lines: The lines; only their beginnings are looked at.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.levels: dict[str, int] = {}
        self.others = 0
        """Lines that are not blank, and have none."""
        self.first = self.last = b""
        self._kind: str | None = None
        self._first_month = 0
        self._span: tuple[bytes, bytes] = b"", b""
        for line in lines:
            self._read(_COLOUR.sub(b"", line[:_LOOKED_AT]))

    def _read(self, line: bytes) -> None:
        time = _TIME.match(line)
        if time is not None:
            self._read_time(time)
        level = _level(line, time.end() if time is not None else 0)
        if level:
            self.levels[level] = self.levels.get(level, 0) + 1
        elif line.strip():
            self.others += 1

    def _read_time(self, time: re.Match[bytes]) -> None:
        kind = next(name for name in ("syslog", "date", "access") if time[name])
        shown = time[kind]
        if time["zone"]:
            kind, shown = "zone", shown + time["zone"]
        self._kind = self._kind or kind
        if kind != self._kind:
            return  # not to be compared with the others
        order = self._order(kind, shown)
        if not order:
            return
        if not self.first or order < self._span[0]:
            self.first, self._span = shown, (order, self._span[1])
        if not self.last or order > self._span[1]:
            self.last, self._span = shown, (self._span[0], order)

    def _order(self, kind: str, shown: bytes) -> bytes:
        """What sorts as time does."""
        if kind == "zone":
            return _in_utc(shown.decode().replace("/", "-"))
        if kind == "date":
            return shown.replace(b"/", b"-").replace(b"T", b" ")
        if kind == "access":
            return b"%s %02d %s" % (shown[7:11], MONTHS.index(shown[3:6]), shown[:2] + shown[11:])
        month = MONTHS.index(shown[:3])
        if not self.first:
            self._first_month = month
        # Without a year: what seems to be long before the first line is of the year after it.
        return b"%02d %s" % ((month - self._first_month + 1) % 12, shown[4:])


def _in_utc(time: str) -> bytes:
    from datetime import UTC, datetime

    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat().encode()
    except (ValueError, OverflowError):  # a day that there is not
        return b""


def _level(line: bytes, at: int) -> str:
    """The severity; `at` is where the time ends, or 0."""
    behind = _BEHIND.match(line, at) if at else None
    found = behind or _LEVEL.match(line, at) or _LEVEL.match(line) or _NAMED.search(line)
    return found[found.lastindex or 0].decode().upper().removesuffix("ING") if found is not None else ""
