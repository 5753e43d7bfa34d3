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
_PYTHON, _GO, _SQL, _HEADER, _RUBY, _PHP, _SHELL, _CPP, _CSHARP, _HASKELL = (
    LANGUAGES[name] for name in ("python", "go", "sql", "header", "ruby", "php", "shell", "cpp", "csharp", "haskell")
)
_QUESTIONS = (_RUBY, LANGUAGES["elixir"])
"""Where the name of a function may end in a question mark."""
_MOST_OCCURRENCES = 4
_FURTHEST = 500
"""Characters before a name that a line may still define, which that of a program without line ends has more of."""
_SPACE = b" \t"
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
IN_A_WORD = frozenset(_WORD[at : at + 1] for at in range(len(_WORD)))
"""Characters beside a name that is a part of a longer one."""
_POINTERS = b"*&"
NO_DEFINITION_AFTER = frozenset((b"(", b",", b"=", b"!", b"+", b"<", b"{", b"|", b"%", b"?", b"/", b">"))
NO_DEFINITION_BEFORE = frozenset((b".", b"+", b"%", b"/", b"|"))
_LISTED = frozenset((b":", b"$"))
"""Before a name that is defined though a comma follows: `attr_reader :name, :other`, `private int $name,`."""
_LIST = frozenset(bytes((byte,)) + b"," for byte in range(256)) - {before + b"," for before in _LISTED}
CLOSED = frozenset((b".)", b".}", b" )", b" ]", b" }")) | _LIST
"""Characters beside a name that is used: most lines are told apart by them. (`.]` may be of `[tool.name]`.)"""
_NOT_A_TYPE = frozenset(
    b"return else if while for switch case new throw delete goto await yield raise not in and or print del assert "
    b"sizeof typeof defer go do break continue import package using select orderby co_return co_await co_yield".split()
)
_OPERATORS = (b" ? ", b" < ", b" > ", b" && ")
"""What stands in an expression, and not in a type."""
_MAYBE = (b"?:", b"!:")
"""What stands between a member and its type that may be missing, or is set elsewhere."""
_ENDS_A_FIELD = frozenset((b"=", b"[", b";", b"{", b""))
_BEFORE_A_KEY = frozenset((b"", b'"', b"'", b"-", b"export"))
_ENDS_A_PROPERTY = frozenset((b"=", b";", b",", b")", b""))
_RESULT = frozenset((b"(", b"*", b"[", b"<"))
"""How a result begins in Go that is no word."""
_FIELDS_OF_GO = (b"func(", b"chan ", b"<-chan ", b"map[")
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
            if not 0 <= at < _FURTHEST:
                break
            end = at + len(self.name)
            # Of what it is a part of, if it is a part of a longer word.
            before, after = line[:at].rstrip(_WORD), line[end:].lstrip(_WORD)
            if strength := _strength(before, after, language):
                is_exact = len(before) == at and len(after) == len(line) - end
                best = max(best, (strength, is_exact), key=lambda found: (found[1], found[0]))
            at = where.find(self.name, len(line) - len(after))
        return best


def _strength(before: bytes, after: bytes, language: Language) -> int:
    last, mark = before[-1:], after[:1]
    if last in NO_DEFINITION_AFTER or mark in NO_DEFINITION_BEFORE:
        return NONE
    if mark == b"," and last not in _LISTED:
        return NONE
    if mark == b"?" and language not in _QUESTIONS and after[1:2] != b":":
        return NONE
    if language.noise is not None:
        before = language.noise.out_of(before)
    words = before.split()
    if last == b"." and mark == b"(" and len(words) == 1:
        return NONE  # a method of something is called
    margin = before[:1] not in (b" ", b"\t")
    if words and before.lstrip().startswith(language.comments):
        return NONE
    if not language.keywords:
        return _in_prose(words, before, after, language, margin=margin)
    following = after.lstrip()
    if not words:
        return _first(following, after, language, margin=margin)
    if language is _PHP and (before.endswith(b"$") or words[0] in (b"define('", b'define("')):
        return _variable_of_php(before, following, margin=margin)
    if (strength := _introduced(words, before, following, language, margin=margin)) != NONE:
        return strength
    if language is _SQL and following[:2].lower() == b"as" and _is_query(words, following):
        return VALUE
    mark = following[:1]
    if mark in (b"(", b"<"):
        return _typed(words, before, following, language, margin=margin)
    if mark == b";" and "closing" in language.forms and (words[0] == b"typedef" or before.strip() == b"}"):
        return BODY if (before.strip() == b"}" and margin) or words[0] == b"typedef" else NONE
    if last == b"*" and before.endswith(b"(*") and "called" in language.forms:
        return _pointer(words, before, following, margin=margin)
    if mark in _ENDS_A_FIELD and "called" in language.forms:
        return _field(words, before, following, language, margin=margin)
    if "equation" in language.forms and words in ([b","], [b"{"]) and following.startswith(b":: "):
        return WEAK  # a field of a record
    if "member" in language.forms and not margin and language.modifiers.issuperset(words):
        return _member(following)
    if "assigned" in language.forms and last == b"." and len(words) == 1 and _assigns(following):
        return VALUE if b"function" in following or b"=>" in following else WEAK
    return NONE


def _in_prose(words: list[bytes], before: bytes, after: bytes, language: Language, *, margin: bool) -> int:
    """A heading, or a key; nothing else defines where there are no keywords."""
    if "heading" in language.forms:
        return FORM if words and not words[0].strip(b"#") else NONE
    return _key(before.strip(), after.lstrip(), margin=margin) if "key" in language.forms else NONE


def _is_query(words: list[bytes], following: bytes) -> bool:
    """`name as (…)`, and behind `with` also where the bracket is on the next line: a common table expression."""
    return following[2:].lstrip()[:1] == b"(" or (words[0].lower() == b"with" and len(words) < 3)


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
        at = 0 if language is _RUBY and words[0].startswith(b"attr_") else at - 1  # attr_reader :other, :name
    if language is _GO and before.startswith(b"func (") and before.rstrip()[-1:] == b")":
        return BODY if before.count(b"(") == 1 else NONE
    if at >= 1 and language is _SHELL and words[at][:1] == b"-":
        at -= 1  # declare -a name
    if at < 0:
        return NONE
    lower = language is _SQL
    said = [word.lower() for word in words] if lower else words
    keyword = said[at]
    if keyword not in language.keywords and keyword not in language.binders:
        is_macro = keyword.isupper() and "called" in language.forms and following.endswith(b"{")
        if not is_macro or not at or said[at - 1] not in language.keywords:
            return _promoted(keyword, before, language) if following[:1] == b":" else NONE
        keyword = said[at - 1]  # class EXPORT name {
    if not all(word in language.modifiers or word in language.keywords or word == b"#" for word in said[:at]):
        return _promoted(keyword, before, language) if following[:1] == b":" else NONE
    if keyword in language.keywords:
        if (lower and said[0] != b"create") or (language is _HASKELL and keyword == b"class" and b" => " in following):
            return NONE
        if keyword in (b"struct", b"union", b"enum", b"class") and "called" in language.forms:
            return _type_of_c(said, following)
        if keyword == b"typedef" or (said[0] == b"using" and following[:1] != b"="):
            return NONE
        return WEAK if following[:1] == b";" and keyword not in (b"struct", b"def", b"mod") else BODY
    if keyword == b"case" and following[:1] == b":":
        return NONE
    if language is _SHELL and following[:1] != b"=":
        return WEAK
    if b"=>" in following or b"function" in following:
        return FORM if margin else VALUE
    return VALUE if margin else WEAK


def _promoted(keyword: bytes, before: bytes, language: Language) -> int:
    """A parameter of a constructor that is a member as well, which its modifier says; behind it stands its type."""
    if b"(" not in before or "promoted" not in language.forms:
        return NONE
    word = keyword.rpartition(b"(")[2]
    return WEAK if word in language.modifiers or word in language.binders else NONE


def _type_of_c(words: list[bytes], following: bytes) -> int:
    """`struct name` begins a definition, declares, or is only the type of something."""
    if following[:1] == b"<" and following.rstrip().endswith(b";"):
        return NONE  # friend class name<T>;
    if following[:1] in (b"", b"{", b":", b"/", b"<") or following.startswith(b"final"):
        return BODY
    if words[-1] == b"class" and following.endswith(b"{"):
        return BODY
    return WEAK if following[:1] == b";" and words[0] != b"typedef" else NONE


def _first(following: bytes, after: bytes, language: Language, *, margin: bool) -> int:
    """The name begins its line."""
    forms = language.forms
    ends = following.rstrip()
    if "equation" in forms:
        if following.startswith(b":: "):
            return FORM if margin else WEAK
        is_equation = _assigns(following) or b" = " in following or ends.endswith(b" =")
        return VALUE if is_equation and margin and after[:1].isspace() else NONE
    if following[:1] == b"(":
        if "receiver" in forms:
            return WEAK if not margin and _has_result(following) else NONE
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
    if "method" in forms and not margin and ends.endswith(b";") and (after[:1] == b":" or after[:2] in _MAYBE):
        return WEAK  # of an object an entry ends in a comma, and so does a parameter
    if "query" in forms and following[:2].lower() == b"as" and following[2:].lstrip()[:1] == b"(":
        return VALUE
    if language is _PYTHON and after[:1] == b":" and _is_type_of_python(after[1:]):
        return WEAK
    if "assigned" in forms and (_assigns(following) or _annotated(following)):
        if not margin and after[:1] == b"=":
            return NONE  # an argument by its name
        return VALUE if margin else WEAK
    return NONE


def _is_type_of_python(text: bytes) -> bool:
    """Whether this is a type, and no value; an entry of a dictionary ends in a comma."""
    said = text.partition(b"#")[0]
    outside, bracket, inside = said.partition(b"[")
    if bracket:
        outside += inside.rpartition(b"]")[2]
    types = [kind.split() for kind in outside.split(b"|")]
    return text[:1].isspace() and all(
        len(words) == 1 and words[0].translate(None, b"._\"'").isalnum() for words in types
    )


def _has_result(text: bytes) -> bool:
    """Whether a result follows the parameters in Go, as it does a method's in an interface; a call has none."""
    depth = 0
    for at in range(len(text)):
        depth += (text[at : at + 1] == b"(") - (text[at : at + 1] == b")")
        if not depth:
            return text[at + 1 : at + 2] == b" " and (
                text[at + 2 : at + 3] in IN_A_WORD or text[at + 2 : at + 3] in _RESULT
            )
    return False


def _first_of_go(following: bytes, ends: bytes) -> int:
    """A type or a constant in a block, a field, a variable."""
    if following.startswith((b"struct", b"interface")):
        return BODY if ends.endswith((b"{", b"}")) else NONE
    if following.startswith(b":=") or b"=" not in following:
        kind = following.partition(b"`")[0].rstrip()
        is_field = kind.startswith(_FIELDS_OF_GO) or (
            kind.translate(None, b"*[]._").isalnum() and kind[:1] not in b"._"
        )
        return WEAK if is_field or following.startswith(b":=") else NONE
    return VALUE if ends.endswith(b"= iota") or b"= iota " in ends else NONE


def _is_callable(value: bytes) -> bool:
    return value.startswith((b"function", b"async ")) or (value[:1] == b"(" and b"=>" in value)


def _variable_of_php(before: bytes, following: bytes, *, margin: bool) -> int:
    """`define('name', …)`, `$name = …`, or `$name` behind modifiers and its type."""
    *words, last = before.rpartition(b"(")[2].split()  # the bracket of a constructor whose parameters are members
    if not last.endswith(b"$"):
        return VALUE
    if last == b"$" and not words and b"(" not in before:
        return (VALUE if margin else WEAK) if _assigns(following) else NONE
    is_property = last == b"$" and words and words[0] in _PHP.modifiers | {b"var"} and following[:1] in _ENDS_A_PROPERTY
    return VALUE if is_property else NONE


def _member(following: bytes) -> int:
    """What follows a member's name: its value, or its type, which a sign may stand before."""
    if _assigns(following):
        return VALUE
    if following[:1] != b":":
        return WEAK if following[:2] in _MAYBE or following == b";" else NONE
    if following[1:2] == b":":
        return NONE
    return VALUE if b"=>" in following or following.rstrip().endswith((b"(", b">(")) else WEAK


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
    if "method" in language.forms:
        return _with_body(ends) if all(word in language.modifiers or word == b"*" for word in words) else NONE
    if "called" not in language.forms or not _are_a_type(words, before):
        return NONE
    if following[:1] == b"<":
        following = following[following.find(b">(") + 1 :]  # name<T>(…)
    if following[:1] != b"(" or words[-1][-1:] == b",":
        return NONE
    if ends.endswith(b";") or (not ends.endswith(b"{") and (words[0] == b"extern" or b"(" in words[0])):
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
    if not before.translate(None, b" \t*&:<>,~_[]().?").isalnum() or before.count(b"(") != before.count(b")"):
        return False
    said = before.replace(b", ", b",")  # what stands between the types of a type
    return not (b": " in said or b":\t" in said or any(said.find(operator) > 0 for operator in _OPERATORS))


def _pointer(words: list[bytes], before: bytes, following: bytes, *, margin: bool) -> int:
    """`type (*name)(…)`: a function's pointer, or its type."""
    if words[0] == b"typedef":
        return BODY
    if following[:2] != b")(" or not _are_a_type(before[:-2].split(), before[:-2]) or before.lstrip()[:1] == b"(":
        return NONE
    return VALUE if margin else WEAK


def _field(words: list[bytes], before: bytes, following: bytes, language: Language, *, margin: bool) -> int:
    """A type stands before a name, and behind that a value, the end, or a property's accessors."""
    if not _are_a_type(words, before):
        return NONE
    ends = following[:1] == b";"
    is_modified = words[0] in language.modifiers and len(words) > 1
    if language is _CSHARP and is_modified and (following[:1] in (b"", b"{") or following.startswith(b"=>")):
        return VALUE  # a property
    holds = _assigns(following)
    if margin:
        if ends and "split" in language.forms:
            return WEAK if words[0] == b"extern" else VALUE
        return VALUE if holds or following[:1] == b"[" else NONE
    if not (ends or holds or following[:1] == b"[") or before[-1:] == b":":
        return NONE  # other::name = 1;
    if not is_modified or b"class" not in language.keywords:
        return WEAK if b"(" not in before else NONE  # if(a) name = 1;
    if language in (_CPP, _HEADER) and b"static" not in words and b"constexpr" not in words:
        return WEAK  # it may be a variable of a function
    return VALUE


def _assigns(following: bytes) -> bool:
    return following[:1] == b"=" and following[1:2] not in (b"=", b">", b"~")


def _annotated(following: bytes) -> bool:
    return following[:1] == b":" and following[1:2] != b":" and b"=" in following


def _key(before: bytes, following: bytes, *, margin: bool) -> int:
    """`name: …`, `"name": …`, `- name: …`, `name = …`, `tool.name = …`, `[tool.name]`."""
    if before[:1] == b"[" and (following[:1] == b"]" or (margin and following.rstrip() in (b'"]', b"']"))):
        return VALUE
    is_path = before[-1:] == b"." and before.translate(None, b"._-").isalnum()
    if (is_path or before in _BEFORE_A_KEY) and following.lstrip(b"\"' ")[:1] in (b":", b"="):
        return VALUE if margin else WEAK
    return NONE
