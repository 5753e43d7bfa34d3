"""Durations as JSON has them: text in the form of ISO 8601, `PT1H30M`, as schemas mean it by the format `duration`.

The pattern has no look-ahead for "at least one of these": it is matched in linear time, where there is none.
"""

from __future__ import annotations

import datetime
import re

_SECONDS = r"[0-9]+(\.[0-9]+)?S"
_TIME = rf"T([0-9]+H([0-9]+M)?({_SECONDS})?|[0-9]+M({_SECONDS})?|{_SECONDS})"
PATTERN = rf"^[-+]?P([0-9]+D({_TIME})?|{_TIME})$"
_PARTS = re.compile(r"([-+]?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def parse(text: str) -> datetime.timedelta:
    """A duration of days, hours, minutes and seconds.

    Raises:
        ValueError: It is of another form, or too long to be counted.
    """
    found = _PARTS.fullmatch(text)
    if found is None or re.match(PATTERN, text) is None:
        raise ValueError(f"not a duration: {text!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups()[1:])
    try:
        length = datetime.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    return -length if found[1] == "-" else length


def text_of(length: datetime.timedelta) -> str:
    """A duration as text that `parse` reads."""
    sign, length = ("-", -length) if length < datetime.timedelta() else ("", length)
    fraction = f".{length.microseconds:06d}".rstrip("0") if length.microseconds else ""
    days = f"{length.days}D" if length.days else ""
    seconds = f"T{length.seconds}{fraction}S" if length.seconds or fraction or not days else ""
    return f"{sign}P{days}{seconds}"
