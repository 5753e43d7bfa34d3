"""The outline of a text: the lines that define something, with their numbers, by the table of languages.

What stands in a text of several lines (a docstring, a template, a comment) defines nothing, so that is blanked first.
"""

from __future__ import annotations

import re

from llm_do_mcp.te.languages import LANGUAGES, Language, language_of
from llm_do_mcp.te.text import shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Entry = tuple[int, bytes]

MOST = 300
ENTRY = 60
_LONGEST_LINE = 500
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
_STATEMENTS = frozenset(
    b"if for while switch catch else do try return with function foreach using lock fixed synchronized new throw await "
    b"yield case elif unless until delete typeof".split()
)
_JAVASCRIPT, _RUST, _SQL, _CPP, _HEADER, _SHELL, _CSHARP = (
    LANGUAGES[name] for name in ("javascript", "rust", "sql", "cpp", "header", "shell", "csharp")
)
_KEY = re.compile(rb"""(\w[\w .-]*+|"[^"]*+" *+|'[^']*+' *+):(?=\s|\Z)""")
_TABLE = re.compile(rb"(?:\[[^][,=]+\]|\[\[[^][,=]+\]\])(?=\s*(?:#|\Z))")
_AFTER_A_NAME = re.compile(rb"[({=<;]|(?<!:):(?!:)")
_AFTER_A_NAME_OF_SQL = re.compile(rb"[(\s;]")
_CLOSING = {b'"': b'"', b"`": b"`", b"[": b"]"}
_MOST_LINES = 12
"""Lines that the parameters of a function are looked for on."""

_QUOTED = rb'"(?:\\.|[^"\\\n])*+"?|' + rb"'(?:\\.|[^'\\\n])*+'?"
_TRIPLE = rb'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\Z)'
_COMMENTS = rb"//[^\n]*|/\*.*?(?:\*/|\Z)|"
_LONG = rb'"(?:\\.|[^"\\])*+"?'
_HERE = rb"(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)[^\n]*+.*?(?:\n[ \t]*(?P=end)[ \t\r]*(?=\n|\Z)|\Z)|"
"""What follows the mark of a text that goes on to a line that is its word again."""
_TEXTS_OF = {
    "python": rb"#[^\n]*|" + _TRIPLE + rb"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\Z)|" + _QUOTED,
    **dict.fromkeys(("kotlin", "swift", "java", "scala"), _COMMENTS + _TRIPLE + rb"|" + _QUOTED),
    **dict.fromkeys(("javascript", "go"), _COMMENTS + rb"`(?:\\.|[^`\\])*+`?|" + _QUOTED),
    **dict.fromkeys(("c", "header", "cpp", "csharp", "php"), _COMMENTS + _QUOTED),
    "rust": _COMMENTS + rb"\bb?r(?P<marks>#*)\".*?(?:\"(?P=marks)|\Z)|'(?:\\.[^'\n]*|[^'\\\n])'|" + _LONG,
    "ruby": rb"(?m:^)(?:=begin\b.*?(?:\n=end\b|\Z)|__END__\r?\n.*)|#[^\n]*|"
    rb"<<[-~]?(?=['\"]?[A-Z])" + _HERE + _QUOTED,
    "shell": rb"(?<![^\s;])#[^\n]*|\\.|\(\([^\n]*|"  # what `<<` does in arithmetic is something else
    rb"(?<!<)<<-?[ \t]*\\?" + _HERE + rb"\$'(?:\\.|[^'\\])*+'?|'[^']*+'?|" + _LONG,
    "sql": rb"--[^\n]*|/\*.*?(?:\*/|\Z)|'[^']*+'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|" + _QUOTED,
    "toml": rb"#[^\n]*|" + _TRIPLE + rb"|'''.*?(?:'''|\Z)|" + _QUOTED,
}
"""By language: comments and texts, those of one line too, since they may hold what begins one of several. What has no
end goes on to the end, so that a text is read once, and not from each beginning anew."""


def outline(path: str, text: bytes) -> list[str]:
    """Entries such as `12 class Engine`, in the order of the file; the deepest are left out where there are many."""
    language = language_of(path.encode("utf-8", "replace"))
    found = _finder(path, language)
    entries = [(depth, number, shown_text(told, ENTRY)) for number, (depth, told) in found(text, language)]
    depths = sorted({depth for depth, _, _ in entries})
    while len(entries) > MOST and len(depths) > 1:
        deepest = depths.pop()
        entries = [entry for entry in entries if entry[0] < deepest]
    told_entries = [f"{number} {told}" for _, number, told in entries]
    more = len(told_entries) - MOST
    return [*told_entries[:MOST], f"{more} more"] if more > 0 else told_entries


def _finder(path: str, language: Language) -> Callable[[bytes, Language], Iterator[tuple[int, Entry]]]:
    if "key" in language.forms:
        return _tables if path.lower().endswith(".toml") else _keys
    return _headings if "heading" in language.forms else _definitions


# ---- Markdown, YAML, TOML


def _headings(text: bytes, language: Language) -> Iterator[tuple[int, Entry]]:
    """`# heading`, and a line that is underlined; not in fences, comments, nor in the front matter."""
    lines = [line.rstrip() for line in text.split(b"\n")]
    start = _end_of_front_matter(lines)
    fence = before = b""
    in_comment = False
    for number, line in enumerate(lines[start:], start + 1):
        body, paragraph = line.lstrip(), before
        before = b""
        is_indented = line.startswith((b"    ", b"\t"))
        if in_comment or (not fence and body.startswith(b"<!--")):
            in_comment = b"-->" not in line
        elif fence:
            if body.startswith(fence) and not body.strip(fence[:1]) and not is_indented:
                fence = b""
        elif body.startswith((b"```", b"~~~")) and not is_indented:
            fence = body[: len(body) - len(body.lstrip(body[:1]))]
        elif not is_indented and (entry := _heading(body)) is not None:
            yield number, entry
        elif paragraph and len(body) > 1 and not body.strip(body[:1]) and body[:1] in b"=-":
            depth = 1 if body[:1] == b"=" else 2
            yield number - 1, (depth, b"#" * depth + b" " + paragraph)
        elif not is_indented and not body.startswith((b">", b"|", b"- ", b"* ", b"+ ")):
            before = body


def _end_of_front_matter(lines: list[bytes]) -> int:
    if lines[0] == b"---":
        for number, line in enumerate(lines[1:], 2):
            if line in (b"---", b"..."):
                return number
    return 0


def _heading(line: bytes) -> Entry | None:
    title = line.lstrip(b"#")
    depth = len(line) - len(title)
    if not 0 < depth <= 6 or title[:1] not in (b" ", b"\t"):
        return None
    return depth, b"#" * depth + b" " + title.strip().rstrip(b"#").rstrip()


def _keys(text: bytes, language: Language) -> Iterator[tuple[int, Entry]]:
    """`key: …` of YAML at the margin."""
    for number, line in enumerate(text.split(b"\n"), 1):
        if (key := _KEY.match(line)) is not None:
            yield number, (0, key[1].rstrip())


def _tables(text: bytes, language: Language) -> Iterator[tuple[int, Entry]]:
    """`[table]` of TOML at the margin, but for what may be a row of an array: that follows what is not at its end."""
    goes_on = False
    for number, line in enumerate(_without_texts(text, "toml").split(b"\n"), 1):
        if not goes_on and (table := _TABLE.match(line)) is not None:
            yield number, (0, table[0])
        if before := line.partition(b"#")[0].rstrip():
            goes_on = before.endswith((b"[", b","))


# ---- code


def _definitions(text: bytes, language: Language) -> Iterator[tuple[int, Entry]]:
    name = next(name for name, known in LANGUAGES.items() if known is language)
    lines = _without_texts(text, name).split(b"\n")
    may_go_on = not {"called", "split", "method"}.isdisjoint(language.forms)
    for number, line in enumerate(lines, 1):
        if may_go_on and line.count(b"(") > line.count(b")"):
            line = _with_parameters(lines, number - 1)
        if (entry := _entry(line, language)) is not None:
            yield number, entry


def _with_parameters(lines: list[bytes], at: int) -> bytes:
    """A line with those on which its brackets are closed; alone where they are not."""
    whole = lines[at].rstrip()
    for line in lines[at + 1 : at + _MOST_LINES]:
        whole += b" " + line.strip()
        if whole.count(b"(") <= whole.count(b")"):
            return whole
    return lines[at]


def _without_texts(text: bytes, name: str) -> bytes:
    """The same lines, blank where a text or a comment of several lines is in the language of this name."""
    if name not in _TEXTS_OF:
        return text

    def blank(found: re.Match[bytes]) -> bytes:
        # What has no end may be none at all: in JavaScript, a pattern can look like the start of a comment.
        is_open = found.end() == len(text) and found[0][:1] in b"/`<"
        return found[0] if is_open else b"\n" * found[0].count(b"\n") or found[0]

    return re.sub(_TEXTS_OF[name], blank, text, flags=re.DOTALL)


def _entry(line: bytes, language: Language) -> Entry | None:
    body = line.strip()
    if not body or len(body) > _LONGEST_LINE or body.startswith(language.comments):
        return None
    depth = len(line) - len(line.lstrip())
    if language is _CPP and body.startswith(b"template"):
        body = _behind_angles(body.removeprefix(b"template").lstrip())
    told = _introduced(body, language, at_margin=not depth)
    # Most headers are C's, where what looks like a method is a loop: `list_for_each(…) {`.
    has_methods = language is not _HEADER and {"called", "method"} & language.forms and b"class" in language.keywords
    if told is None and depth and has_methods:
        told = _property(body) if language is _CSHARP and b"(" not in body else _method(body, language)
    if told is None and not depth and {"called", "split", "label"} & language.forms and _is_function(body, language):
        told = body.partition(b"(")[0].rstrip()
    if told is None and not depth and language is _JAVASCRIPT:
        told = _function_in(body)
    return None if told is None else (depth, told)


def _introduced(body: bytes, language: Language, *, at_margin: bool) -> bytes | None:
    """What a keyword introduces, or at the margin the word before a value."""
    words = (body.lower() if language is _SQL else body).split(None, 6)
    first = 0
    while first < len(words) - 1 and _modifies(words[first], language) and words[first] not in language.keywords:
        first += 1
    if not words or (language is _SQL and words[0] != b"create"):
        return None
    if language is _RUST and words[first].partition(b"<")[0] == b"impl":
        return body.partition(b"{")[0].partition(b" where")[0].rstrip()
    if words[first] in language.keywords:
        return _named(body, words[: first + 1])
    binder = next((at for at in range(first + 1) if words[at] in language.binders), None)
    if binder is None or not at_margin or language is _SHELL:
        return None
    if language is _JAVASCRIPT and words[0] != b"export" and not _is_callable(body.partition(b"=")[2]):
        return None  # most of them are only known in their file
    return _named(body, words[: binder + 1])


def _modifies(word: bytes, language: Language) -> bool:
    if language is _RUST and (word.startswith((b'"', b"pub(")) or word.endswith(b")")):  # extern "C", pub(in a::b)
        return True
    return word in language.modifiers


def _behind_angles(text: bytes) -> bytes:
    """What follows `<…>` at the start of a text, where it starts so."""
    depth = 0
    for at in range(len(text)):
        depth += (text[at : at + 1] == b"<") - (text[at : at + 1] == b">" and text[at - 1 : at] != b"-")
        if not depth:
            return text[at + 1 :].lstrip() if at else text
    return b""


def _named(body: bytes, words: list[bytes]) -> bytes | None:
    """A definition's start: the words that introduce it and its name, without its arguments and its body."""
    at, folded = 0, body.lower() if words[0] == b"create" else body
    for word in words:
        at = folded.find(word, at) + len(word)
    name = _behind_angles(body[at:].lstrip())
    if not name or (name[:1] not in _WORD and name[:1] not in b'(*&"`['):
        return None
    start = len(body) - len(name)
    if words[-1] == b"func" and name[:1] == b"(":  # Go's receiver belongs to the name
        end = body.find(b"(", body.find(b")"))
    elif words[-1] == b"fun":  # and so does Kotlin's
        end = body.find(b"(", start)
    else:
        closing = _CLOSING.get(name[:1], b"") if words[0] == b"create" else b""
        quoted = body.find(closing, start + 1) if closing else start
        ends = _AFTER_A_NAME_OF_SQL if words[0] == b"create" else _AFTER_A_NAME
        found = ends.search(body, max(start, quoted) + 1)
        end = len(body) if found is None else found.start()
    return body[: end if end > 0 else len(body)].rstrip()


def _is_function(body: bytes, language: Language) -> bool:
    """`type name(…)` at the margin that is no statement and no mere declaration; in GNU's C `name (…)`."""
    before, bracket, behind = body.partition(b"(")
    words = before.split()
    if not bracket or not words or words[0] in _STATEMENTS:
        return False
    if b"=" in before or b"}" in before:
        return False
    is_alone = len(words) == 1 and behind.lstrip().startswith(b")")  # `name () {` of a shell
    name = before.rstrip() if "split" in language.forms or ("label" in language.forms and is_alone) else before
    return name[-1:] in _WORD and body[-1:] not in (b";", b",", b"\\")


def _method(body: bytes, language: Language) -> bytes | None:
    """`name(…) {` in a body, or with its modifiers and the bracket on the next line, or an expression behind `=>`."""
    before, bracket, behind = body.partition(b"(")
    before = before.rstrip()
    words = before.split()
    if not bracket or not words or words[0] in _STATEMENTS:
        return None
    if before[-1:] not in _WORD and not (before.endswith(b">") and len(words) > 1):
        return None
    if any(mark in before for mark in (b"=", b".", b"}", b'"', b"'")) or body.count(b"(") != body.count(b")"):
        return None
    is_modified = len(words) > 1 and words[0] in language.modifiers
    has_body = body.endswith(b"}") and b") {" in body and body.count(b"{") == body.count(b"}")  # on this very line
    opens = has_body or body.endswith(b"{") or (is_modified and (body.endswith(b")") or b") =>" in behind))
    return before if opens else None


def _property(body: bytes) -> bytes | None:
    """`type name { get; set; }`, or an expression behind `=>`, with its modifiers."""
    before, bracket, behind = body.partition(b"{")
    if not bracket or b"=>" in before:
        before, bracket, behind = body.partition(b"=>")
    is_one = behind.lstrip().startswith((b"get", b"set", b"init")) or bracket == b"=>"
    words = before.split()
    is_modified = len(words) > 2 and words[0] in _CSHARP.modifiers and b"=" not in before
    return before.rstrip() if is_one and is_modified else None


def _function_in(body: bytes) -> bytes | None:
    """`module.exports.name = function (…)`, `Type.prototype.name = (…) =>`."""
    name, equals, value = body.partition(b"=")
    is_name = name.strip(_WORD + b".$ ") == b"" and b"." in name
    return name.rstrip() if equals and is_name and _is_callable(value) else None


def _is_callable(value: bytes) -> bool:
    return b"=>" in value or value.lstrip().startswith((b"function", b"async ", b"class "))
