"""What kind of text a file is: by its suffix, then by how it starts. What nothing tells is just `text`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BY_SUFFIX = {
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "md": "markdown",
    "markdown": "markdown",
    "mdx": "markdown",
    "log": "log",
    "csv": "tabular",
    "tsv": "tabular",
    "txt": "",
    "rst": "text",
    "ts": "code/typescript",
    "tsx": "code/typescript",
    "h": "code/c",
}
"""An empty kind: the suffix tells nothing."""
_INTERPRETERS = (("python", "python"), ("node", "javascript"), ("ruby", "ruby"), ("php", "php"), ("sh", "shell"))
_MAGIC = (
    (b"%PDF-", "PDF"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\x7fELF", "ELF"),
    (b"SQLite format 3", "SQLite"),
)
_FEW = 5
LEVELS = tuple(b"EMERG PANIC FATAL ALERT CRITICAL CRIT SEVERE ERROR WARN NOTICE INFO DEBUG TRACE".split())
"""Severities, the heaviest first."""
MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def sniff(path: str, head: bytes) -> str:
    """The kind of a text: `json`, `jsonl`, `yaml`, `toml`, `markdown`, `log`, `tabular`, `text`, `code/<language>`.

    Args:
        path: Its path; only the suffix counts.
        head: Its first bytes, some lines of them.
    """
    kind = _by_suffix(path.rpartition("/")[2])
    if kind:
        return kind
    if head.startswith(b"#!"):
        program = head.partition(b"\n")[0].decode("utf-8", "replace")
        return next((f"code/{language}" for name, language in _INTERPRETERS if name in program), "code/other")
    lines = head.split(b"\n")[:_FEW]
    if sum(map(_is_logged, lines)) >= 2:
        return "log"
    start = head.lstrip()
    if start[:1] in (b"{", b"[") and _is_json(start, lines):
        return "jsonl" if len(lines) > 1 and all(map(_is_object, lines[:2])) else "json"
    return "tabular" if _is_table(lines) else "text"


def magic(head: bytes) -> str:
    """The name of a binary format, or nothing."""
    return next((name for start, name in _MAGIC if head.startswith(start)), "")


def _by_suffix(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    suffix = suffix.lower()
    if not dot or not stem:
        return ""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    from llm_do_mcp.te.languages import LANGUAGES, language_of

    language = language_of(name.encode("utf-8", "replace"))
    found = next(known for known, entry in LANGUAGES.items() if entry is language)
    return "" if found == "other" else "text" if found == "keys" else f"code/{found}"


def _is_logged(line: bytes) -> bool:
    """A line that starts with a time of day or a severity, or has a server's time in brackets. A diary has dates."""
    start = line[:80].lstrip(b"[<( ")
    if start[:4].isdigit() and start[4:5] in (b"-", b"/") and start[5:7].isdigit() and start[8:10].isdigit():
        clock = start[10:14]
        return (clock[:1] in (b"T", b" ") and clock[1:3].isdigit() and clock[3:] == b":") or _is_level(start[10:])
    if start[:3] in MONTHS and start[4:6].strip().isdigit() and start[9:10] == b":":
        return True
    in_brackets = line[line.find(b"[", 0, 80) + 1 :][:12]
    access = in_brackets[:2].isdigit() and in_brackets[2:3] == b"/" and in_brackets[3:6] in MONTHS
    return access or _is_level(start)


def _is_level(text: bytes) -> bool:
    words = text.lstrip(b" [(<|-").replace(b"]", b" ").replace(b":", b" ").split(None, 1)
    return bool(words) and words[0].rstrip(b")>|,").removesuffix(b"ING") in LEVELS


def _is_json(start: bytes, lines: Sequence[bytes]) -> bool:
    body = start[1:].lstrip()
    if start[:1] == b"{":
        return body[:1] in (b'"', b"}")
    goes_on = body[:1] in b'{["]-0123456789tfn' and not lines[0].rstrip().endswith(b"]")
    return goes_on or start.rstrip().endswith(b"]")


def _is_object(line: bytes) -> bool:
    return line[:1] == b"{" and line.rstrip().endswith(b"}")


def _is_table(lines: Sequence[bytes]) -> bool:
    whole = [line for line in lines[:-1] if line]
    return len(whole) >= 2 and any(
        len({line.count(mark) for line in whole}) == 1
        and whole[0].count(mark) >= least
        and not all(_is_sentence(line, mark) for line in whole)
        for mark, least in ((b"\t", 1), (b",", 2), (b";", 2), (b"|", 2))
    )


def _is_sentence(line: bytes, mark: bytes) -> bool:
    """Whether a space follows each mark, and some part has as many words as few cells have."""
    return line.count(mark + b" ") == line.count(mark) and any(len(part.split()) > 3 for part in line.split(mark))
