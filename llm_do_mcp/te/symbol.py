"""The name that a pattern asks for, and what a line that holds it does with it: defines it, imports it, or uses it.

A line is read by the words before the name and the characters behind it, with the table of `languages.py`. What
decides is that a keyword introduces the very name: `class Child(Name)` defines `Child`, `struct name *p;` uses `name`.
"""

from __future__ import annotations

from llm_do_mcp.te.languages import LANGUAGES, Language

BODY = 4
"""A keyword introduces the name: a function, a class, a type, a macro."""
FORM = 3
"""The line has the form of a definition: a function of C, a method, a heading."""
VALUE = 2
"""A variable or a key at the margin."""
WEAK = 1
"""A declaration without a body, or a name that is bound inside something."""
NONE = 0

_META = frozenset("\\.+*?()[]{}^$")
_SQL, _HEADER, _RUBY, _PHP, _SHELL, _CPP, _CSHARP = (
    LANGUAGES[name] for name in ("sql", "header", "ruby", "php", "shell", "cpp", "csharp")
)
_MOST_OCCURRENCES = 4
_SPACE = b" \t"
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
IN_A_WORD = frozenset(_WORD[at : at + 1] for at in range(len(_WORD)))
"""Characters beside a name that is a part of a longer one."""
_POINTERS = b"*&"
NO_DEFINITION_AFTER = frozenset((b"(", b",", b"=", b"!", b"+", b"<", b"{", b"|", b"%", b"?", b"/", b">"))
NO_DEFINITION_BEFORE = frozenset((b".", b",", b"+", b"%", b"/", b"|"))
CLOSED = frozenset((b".)", b".}", b" )", b" ]", b" }"))
"""Characters beside a name that is used: most lines are told apart by them. (`.]` may be of `[tool.name]`.)"""
_NOT_A_TYPE = frozenset(
    b"return else if while for switch case new throw delete goto await yield raise not in and or print del assert "
    b"sizeof typeof defer go".split()
)
_KEYWORDS = frozenset(word.decode() for language in LANGUAGES.values() for word in language.keywords | language.binders)


def name_asked_for(patterns: list[str], *, fixed: bool) -> str | None:
    """The one name that the patterns ask for, also as `\\bname\\b`, `name(` or `def name`; None if they do not."""
    if len(patterns) != 1:
        return None
    text = patterns[0]
    if not fixed:
        for start in ("^", "\\s*", "\\b", "\\<"):
            text = text.removeprefix(start)
        for end in ("$", "\\b", "\\>"):
            text = text.removesuffix(end)
    text = text.removesuffix("(").removesuffix("\\")
    *before, name = text.split(" ")
    is_name = name.replace("-", "_").replace("$", "_").isidentifier()
    return name if is_name and all(word in _KEYWORDS for word in before) else None


def literal_in(patterns: list[str], *, fixed: bool) -> str:
    """The longest text that each match holds, as far as that is seen at once; empty if it is not."""
    if len(patterns) != 1 or (not fixed and "|" in patterns[0]):
        return ""
    if fixed:
        return patterns[0]
    runs = [""]
    for at, character in enumerate(patterns[0]):
        if character in _META or patterns[0][at - 1 : at] == "\\":
            if character in "*?{" and runs[-1]:
                runs[-1] = runs[-1][:-1]
            runs.append("")
        else:
            runs[-1] += character
    return max(runs, key=len)


class Symbol:
    """A name to be recognised in lines.

    Args:
        name: The name.
        caseless: Whether any case of it counts.
    """

    def __init__(self, name: str, *, caseless: bool = False) -> None:
        self.caseless = caseless
        self.name = (name.lower() if caseless else name).encode()

    def found(self, line: bytes, language: Language) -> tuple[int, bool]:
        """How strongly a line defines the name (`BODY` … `NONE`), and whether it is this name or a longer one."""
        where = line.lower() if self.caseless else line
        best = (NONE, False)
        at = where.find(self.name)
        for _ in range(_MOST_OCCURRENCES):
            if at < 0:
                break
            end = at + len(self.name)
            start, stop = _word(line, at, end)
            strength = _strength(line[:start], line[stop:], language)
            if strength:
                best = max(best, (strength, start == at and stop == end), key=lambda found: (found[1], found[0]))
            at = where.find(self.name, stop)
        return best


def _word(line: bytes, start: int, end: int) -> tuple[int, int]:
    """The whole word of which `line[start:end]` is a part."""
    return len(line[:start].rstrip(_WORD)), len(line) - len(line[end:].lstrip(_WORD))


def _strength(before: bytes, after: bytes, language: Language) -> int:
    if before[-1:] in NO_DEFINITION_AFTER or after[:1] in NO_DEFINITION_BEFORE:
        return NONE
    if after[:1] == b"?" and language is not _RUBY:
        return NONE
    if language is _SQL:
        before = before.translate(None, b"[]")  # [dbo].[name]
    words = before.split()
    if before[-1:] == b"." and after[:1] == b"(" and len(words) == 1:
        return NONE  # a method of something is called
    margin = before[:1] not in (b" ", b"\t")
    if words and before.lstrip().startswith(language.comments):
        return NONE
    if "heading" in language.forms:
        return FORM if words and not words[0].strip(b"#") else NONE
    if "key" in language.forms:
        return _key(before.strip(), after.lstrip(), margin=margin)
    following = after.lstrip()
    if not words:
        return _first(following, after, language, margin=margin)
    if language is _PHP and (before.endswith(b"$") or words[0] in (b"define('", b'define("')):
        return _variable_of_php(before, following, margin=margin)
    if language is _SQL and words[0].lower() == b"with" and len(words) < 3 and following[:2].lower() == b"as":
        return VALUE
    if (strength := _introduced(words, before, following, language, margin=margin)) != NONE:
        return strength
    if following[:1] in (b"(", b"<"):
        return _typed(words, before, following, language, margin=margin)
    if "closing" in language.forms and following[:1] == b";" and (words[0] == b"typedef" or before.strip() == b"}"):
        return BODY if (before.strip() == b"}" and margin) or words[0] == b"typedef" else NONE
    if words[0] == b"typedef" and before.endswith(b"(*"):
        return BODY
    if "called" in language.forms and following[:1] in (b"=", b"[", b";", b"{"):
        return _field(words, before, following, language, margin=margin)
    if "method" in language.forms and not margin and _assigns(following) and language.modifiers.issuperset(words):
        return VALUE
    if "method" in language.forms and not margin and following[:1] == b":" and language.modifiers.issuperset(words):
        return VALUE if b"=>" in following or following.rstrip().endswith((b"(", b">(")) else WEAK
    if "assigned" in language.forms and before.endswith(b".") and len(words) == 1 and _assigns(following):
        return VALUE if b"function" in following or b"=>" in following else WEAK
    return NONE


def _introduced(words: list[bytes], before: bytes, following: bytes, language: Language, *, margin: bool) -> int:
    """A keyword stands right before the name, or before what qualifies it (`def self.name`, `class A::Name`)."""
    glued = before[-1] not in _SPACE
    if glued and before[-1] in _POINTERS and words[-1].strip(_POINTERS):
        return NONE  # a type with its pointer: `int *name`
    at = len(words) - 1
    if glued:
        qualifier = words[-1].strip(b'"`*&')
        if words[-1][-1:] not in b'.:"`*&' or not (qualifier.translate(None, b".:_<>,?") or b"a").isalnum():
            return NONE
        at -= 1
    if "receiver" in language.forms and before.startswith(b"func (") and before.rstrip()[-1:] == b")":
        return BODY if before.count(b"(") == 1 else NONE
    if at >= 1 and words[at][:1] == b"<" and words[at][-1:] == b">":
        at -= 1  # fun <T> name
    if at >= 1 and language is _SHELL and words[at][:1] == b"-":
        at -= 1  # declare -a name
    if at < 0:
        return NONE
    lower = language is _SQL
    said = [word.lower() for word in words] if lower else words
    keyword = said[at]
    if keyword not in language.keywords and keyword not in language.binders:
        return NONE
    if not all(
        word in language.modifiers
        or word in language.keywords
        or word == b"#"
        or word.startswith((b"@", b"pub(", b'"'))
        for word in said[:at]
    ):
        return NONE
    if keyword in language.keywords:
        if lower and said[0] != b"create":
            return NONE
        if keyword in (b"struct", b"union", b"enum", b"class") and "called" in language.forms:
            return _type_of_c(said, following)
        if keyword == b"typedef":
            return NONE
        return WEAK if following[:1] == b";" and keyword not in (b"struct", b"def", b"mod") else BODY
    if keyword == b"case" and following[:1] == b":":
        return NONE
    if language is _SHELL and following[:1] != b"=":
        return WEAK
    if b"=>" in following or b"function" in following:
        return FORM if margin else VALUE
    return VALUE if margin else WEAK


def _type_of_c(words: list[bytes], following: bytes) -> int:
    """`struct name` begins a definition, declares, or is only the type of something."""
    if following[:1] in (b"", b"{", b":", b"/", b"<") or (words[-1] == b"class" and following.endswith(b"{")):
        return BODY
    return WEAK if following[:1] == b";" and words[0] != b"typedef" else NONE


def _first(following: bytes, after: bytes, language: Language, *, margin: bool) -> int:
    """The name begins its line."""
    forms = language.forms
    ends = following.rstrip()
    if following[:1] == b"(":
        if "label" in forms:
            return FORM if following[1:2] == b")" else NONE
        if "split" in forms and margin and not ends.endswith(b";"):
            return FORM if language is not _HEADER else WEAK
        if "method" in forms and not margin:
            return _with_body(ends)
        return NONE
    if "method" in forms and not margin and following[:1] == b"<" and b"(" in following:
        return _with_body(ends)
    if "receiver" in forms:
        return _first_of_go(following, ends)
    if "method" in forms and following[:1] == b":" and _is_callable(following[1:].lstrip()):
        return VALUE
    if "assigned" in forms and (_assigns(following) or _annotated(following)):
        if not margin and after[:1] == b"=":
            return NONE  # an argument by its name
        return VALUE if margin else WEAK
    return NONE


def _first_of_go(following: bytes, ends: bytes) -> int:
    """A type or a constant in a block, a field, a variable."""
    if following.startswith((b"struct", b"interface")):
        return BODY if ends.endswith((b"{", b"}")) else NONE
    if following.startswith(b":=") or b"=" not in following:
        kind = following.partition(b"`")[0].rstrip()
        is_field = kind.translate(None, b"*[]._").isalnum() and kind[:1] not in b"._"
        return WEAK if is_field or following.startswith(b":=") else NONE
    return VALUE if ends.endswith(b"= iota") or b"= iota " in ends else NONE


def _is_callable(value: bytes) -> bool:
    return value.startswith((b"function", b"async ")) or (value[:1] == b"(" and b"=>" in value)


def _variable_of_php(before: bytes, following: bytes, *, margin: bool) -> int:
    """`define('name', …)`, `$name = …`, or `$name` behind modifiers and its type."""
    *words, last = before.split()
    if not last.endswith(b"$"):
        return VALUE
    if last == b"$" and not words:
        return (VALUE if margin else WEAK) if _assigns(following) else NONE
    is_property = last == b"$" and words[0] in _PHP.modifiers | {b"var"} and following[:1] in (b"=", b";")
    return VALUE if is_property else NONE


def _with_body(ends: bytes) -> int:
    """What follows the name of a method: its parameters, and a body where it has one here; or else it is a call."""
    balanced = ends.count(b"(") == ends.count(b")")
    if ends.endswith(b"{") and balanced:
        return FORM
    inside = ends[ends.find(b"(") + 1 :]
    typed = inside.partition(b":")[0].rstrip(b"?")
    if not balanced and ends.endswith((b"{", b",")):
        return FORM if _is_name(typed) and b":" in inside else NONE
    if balanced and (b"): " in ends or (_is_name(typed) and b":" in inside)):
        return VALUE if b"=>" not in ends.partition(b"): ")[0] else NONE
    return NONE


def _is_name(text: bytes) -> bool:
    return text.replace(b"_", b"a").replace(b"$", b"a").isalnum()


def _typed(words: list[bytes], before: bytes, following: bytes, language: Language, *, margin: bool) -> int:
    """Words stand before a name that a parenthesis follows: a function with its type, or a call."""
    ends = following.rstrip()
    words = _without_annotations(words)
    if "method" in language.forms:
        return _with_body(ends) if all(word in language.modifiers or word == b"*" for word in words) else NONE
    if "called" not in language.forms or not _are_a_type(words, before):
        return NONE
    if following[:1] == b"<":
        following = following[following.find(b">(") + 1 :]  # name<T>(…)
    if following[:1] != b"(":
        return NONE
    if ends.endswith(b";") or words[0] == b"extern" or b"(" in words[0]:
        return WEAK
    if margin:
        if language is _HEADER and not ends.endswith(b"{") and not {b"static", b"inline"} & set(words):
            return WEAK
        return FORM
    if (ends.endswith(b"{") and ends.count(b"(") == ends.count(b")")) or words[0] in language.modifiers:
        return FORM
    return NONE


def _are_a_type(words: list[bytes], before: bytes) -> bool:
    """Whether words that stand before a name can be its type, with what modifies it."""
    if not words or words[0] in _NOT_A_TYPE or before[-1] not in b" \t*&:~>":
        return False
    said = b" ".join(words)
    return said.translate(None, b" *&:<>,~_[]().").isalnum() and said.count(b"(") == said.count(b")")


def _without_annotations(words: list[bytes]) -> list[bytes]:
    """Without `@Override` and `[Fact]` in front."""
    at = 0
    while at < len(words) and (words[at][:1] == b"@" or (words[at][:1] == b"[" and words[at][-1:] == b"]")):
        at += 1
    return words[at:]


def _field(words: list[bytes], before: bytes, following: bytes, language: Language, *, margin: bool) -> int:
    """A type stands before a name, and behind that a value, the end, or a property's accessors."""
    words = _without_annotations(words)
    if not _are_a_type(words, before):
        return NONE
    ends = following[:1] == b";"
    if margin:
        if ends and "split" in language.forms:
            return WEAK if words[0] == b"extern" else VALUE
        return VALUE if following[:1] in (b"=", b"[") else NONE
    if words[0] not in language.modifiers or len(words) < 2 or b"class" not in language.keywords:
        return NONE
    if following[:1] == b"{" or following.startswith(b"=>"):
        return VALUE if language is _CSHARP else NONE
    if language is _CPP and b"static" not in words and b"constexpr" not in words:
        return NONE  # it may be a variable of a function
    return VALUE if ends or _assigns(following) else NONE


def _assigns(following: bytes) -> bool:
    return following[:1] == b"=" and following[1:2] not in (b"=", b">", b"~")


def _annotated(following: bytes) -> bool:
    return following[:1] == b":" and following[1:2] != b":" and b"=" in following


def _key(before: bytes, following: bytes, *, margin: bool) -> int:
    """`name: …`, `"name": …`, `- name: …`, `name = …`, `[tool.name]`."""
    if before[:1] == b"[" and following[:1] == b"]":
        return VALUE
    if before in (b"", b'"', b"'", b"-", b"export") and following.lstrip(b"\"' ")[:1] in (b":", b"="):
        return VALUE if margin else WEAK
    return NONE
