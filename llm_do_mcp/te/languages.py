"""How each language introduces a name: the table by which a definition is told from a use.

A definition is a line on which a keyword introduces the very name (`def name`, `type name struct`), or one that has a
form which only definitions have (`int name(…)` at the margin, `name = …`, `## name`, `name:`). The table says which
keywords and forms a language has; `symbol.py` reads lines by it. A line is judged by words, never by one pattern for
all languages: what defines in one is a use in another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

FORMS = (
    "assigned",  # name = …, name: type = …        (at the margin it counts more than inside)
    "called",  # type name(…)  at the margin, or type name(…) {  inside: C and its family
    "split",  # name(…)  at the margin, its type on the line above: GNU's C
    "method",  # name(…) {  inside a body
    "receiver",  # func (r *T) name(…)
    "closing",  # } name;  the end of a typedef
    "key",  # name: …, "name": …, [name]
    "heading",  # # name
    "label",  # name() {
    "member",  # private name: type, pub name: type
    "promoted",  # class A(val name: T), constructor(private name: T): a parameter that is a member as well
    "query",  # name as (…
    "equation",  # name :: type, name x y = …
)


class Noise:
    """What may stand among words and says nothing.

    Args:
        pattern: What it is like.
        marks: Characters of which it has one at least. Most lines have none, and most commands can do without `re`.
    """

    __slots__ = ("_made", "_marks", "_pattern")

    def __init__(self, pattern: str, marks: str) -> None:
        self._pattern = pattern.encode()
        self._marks = marks.encode()
        self._made: re.Pattern[bytes] | None = None

    def out_of(self, text: bytes) -> bytes:
        """The text without it."""
        if len(text.translate(None, self._marks)) == len(text):
            return text
        if self._made is None:
            import re

            self._made = re.compile(self._pattern)
        return self._made.sub(b"", text)


class Language:
    """What introduces a name in one language.

    Args:
        keywords: Words before the name of something with a body: a function, a class, a type, a macro.
        binders: Words before the name of a value: a variable, a constant, a field.
        modifiers: Words that may stand before a keyword, or before the type of a function.
        forms: Of `FORMS`.
        noise: What may stand among the words before a name and says nothing: annotations, type parameters, quotes,
            and what belongs to it: the `@` of a variable.
        imports: How a line starts that only makes a name known here; a `_` stands for a space.
        comments: How a line starts that only speaks of it.
    """

    __slots__ = ("binders", "comments", "forms", "keywords", "mentions", "modifiers", "noise")

    def __init__(
        self,
        keywords: str,
        *,
        binders: str = "",
        modifiers: str = "",
        forms: str = "",
        noise: Noise | None = None,
        imports: str = "",
        comments: str = "// /* *_",
    ) -> None:
        self.keywords = frozenset(keywords.encode().split())
        self.binders = frozenset(binders.encode().split())
        self.modifiers = frozenset(modifiers.encode().split())
        self.forms = frozenset(forms.split())
        self.noise = noise
        self.comments = _starts(comments)
        self.mentions = _starts(imports) + self.comments


def _starts(words: str) -> tuple[bytes, ...]:
    return tuple(word.replace("_", " ").encode() for word in words.split())


_ANNOTATION = r"@(?!interface\b)[\w.:]+(?:\([^()]*\))?\s+"
_ANNOTATIONS = Noise(_ANNOTATION, "@")
_IN_ANGLES = r"<(?:[^<>]++|<[^<>]*+>)*+>\s*"
_JAVASCRIPT = Language(
    "function function* class interface type enum namespace module",
    binders="const let var get set",
    modifiers="export default declare abstract async public private protected static readonly override const #",
    forms="assigned method member promoted",
    noise=_ANNOTATIONS,
    imports="import_ import{ export_*_from export_{ require(",
)
_C = Language(
    "struct union enum #define define typedef",
    modifiers="static extern inline const volatile unsigned signed struct union enum register",
    forms="called split closing",
    imports="#include",
)
_CPP_KEYWORDS = "class struct union enum namespace #define define concept using typedef"
_CPP_MODIFIERS = (
    "static extern inline const constexpr virtual explicit friend template unsigned struct class enum union"
)
_CPP_NOISE = Noise(rf'template\s*{_IN_ANGLES}|\[\[[^\]]*\]\]\s*|extern "C"\s+|__attribute__\s*\(\(.*?\)\)\s*', '<["(')
_CPP = Language(
    _CPP_KEYWORDS,
    modifiers=_CPP_MODIFIERS,
    forms="called split closing",
    noise=_CPP_NOISE,
    imports="#include using_namespace",
)
_HEADER = Language(
    _CPP_KEYWORDS,
    modifiers=f"{_CPP_MODIFIERS} volatile signed register",
    forms="called split closing",
    noise=_CPP_NOISE,
    imports="#include using_namespace",
)
_JAVA = Language(
    "class interface enum record @interface",
    modifiers="public private protected static final abstract synchronized native default sealed non-sealed strictfp "
    "volatile transient",
    forms="called",
    noise=_ANNOTATIONS,
    imports="import_ package_",
)

LANGUAGES = {
    "python": Language(
        "def class", binders="type", modifiers="async", forms="assigned", imports="import_ from_", comments="#"
    ),
    "javascript": _JAVASCRIPT,
    "go": Language(
        "func type", binders="var const", forms="receiver", imports='import_ package_ "', comments="// /* *_"
    ),
    "rust": Language(
        "fn struct enum union trait type mod macro_rules! macro",
        binders="const static let mut",
        modifiers='pub pub(crate) pub(super) pub(self) async unsafe auto extern "C" "system" const static let default',
        forms="member",
        imports="use_ pub_use_ extern_crate_ pub(crate)_use_",
        comments="// /* *_ #[",
    ),
    "java": _JAVA,
    "c": _C,
    "header": _HEADER,
    "cpp": _CPP,
    "csharp": Language(
        "class struct interface enum record delegate namespace event",
        modifiers="public private protected internal static sealed abstract partial async override virtual readonly "
        "new required volatile unsafe extern",
        forms="called",
        noise=Noise(r"\[(?<!\S\[)[^\[\]]+\]\s+", "["),
        imports="using_",
    ),
    "ruby": Language(
        "def class module alias attr_accessor attr_reader attr_writer",
        modifiers="private protected public private_class_method module_function",
        forms="assigned",
        noise=Noise(r"[@$]+\Z", "@$"),
        imports="require",
        comments="#",
    ),
    "php": Language(
        "function class interface trait enum namespace",
        binders="const case",
        modifiers="public private protected static final abstract readonly",
        forms="assigned",
        imports="use_ require include",
        comments="// /* *_ #",
    ),
    "kotlin": Language(
        "fun class interface object typealias",
        binders="val var const",
        modifiers="public private protected internal open abstract final override suspend inline data sealed enum "
        "annotation companion operator infix tailrec lateinit const inner value external expect actual",
        forms="promoted",
        noise=Noise(f"{_IN_ANGLES}|{_ANNOTATION}", "<@"),
        imports="import_ package_",
    ),
    "scala": Language(
        "class object trait def type enum",
        binders="val var given",
        modifiers="private protected final abstract sealed implicit override lazy case inline opaque",
        forms="promoted",
        noise=_ANNOTATIONS,
        imports="import_ package_",
    ),
    "swift": Language(
        "func class struct enum protocol extension actor typealias associatedtype precedencegroup macro",
        binders="let var case",
        modifiers="public private internal open package fileprivate static final override mutating nonmutating lazy "
        "weak unowned indirect dynamic required optional nonisolated",
        noise=Noise(rf"{_ANNOTATION}|\(set\)", "@("),
        imports="import_",
    ),
    "haskell": Language(
        "data newtype type class module pattern family",
        binders="let",
        forms="equation",
        noise=Noise(r"(?<=class) .*=>", "="),
        imports="import_",
        comments="-- {-",
    ),
    "elixir": Language(
        "def defp defmacro defmacrop defmodule defprotocol defguard defguardp defdelegate @type @typep @opaque "
        "@callback @macrocallback",
        forms="assigned",
        imports="alias_ import_ require_ use_",
        comments="#",
    ),
    "zig": Language(
        "fn", binders="const var", modifiers="pub export extern inline noinline threadlocal comptime", comments="//"
    ),
    "sql": Language(
        "table view function procedure trigger index type schema sequence exists concurrently",
        modifiers="create or replace alter temporary temp unlogged external unique materialized if not",
        forms="query",
        noise=Noise(r"[\[\]\"]", '[]"'),
        comments="--",
    ),
    "shell": Language(
        "function alias", binders="export local declare readonly typeset", forms="assigned label", comments="#"
    ),
    "markdown": Language("", forms="heading", comments="<!--"),
    "text": Language(""),
    "keys": Language("", forms="key", comments="# ;"),
    "other": Language(
        "def class fn fun func function struct enum union interface trait type typedef module namespace protocol "
        "record macro sub procedure package defmodule defp defmacro object actor #define define let val local mixin "
        "message service rpc",
        modifiers="export public private protected internal static async final abstract inline extern override",
        forms="assigned",
        imports="import_ include_ require use_ using_",
        comments="#_ // /* *_ --",
    ),
}
"""By name; `other` is for files that no suffix tells."""

_SUFFIXES = {
    "python": "py pyi pyx pxd",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "rust": "rs",
    "java": "java groovy",
    "c": "c",
    "header": "h",
    "cpp": "cc cpp cxx hh hpp hxx inl m mm cu",
    "csharp": "cs",
    "ruby": "rb rake gemspec",
    "php": "php",
    "kotlin": "kt kts",
    "scala": "scala sbt",
    "swift": "swift",
    "haskell": "hs",
    "elixir": "ex exs",
    "zig": "zig",
    "sql": "sql",
    "shell": "sh bash zsh fish",
    "markdown": "md markdown mdx rst",
    "text": "txt log csv tsv out",
    "keys": "yaml yml toml ini cfg conf properties env json",
}
_BY_SUFFIX = {suffix.encode(): LANGUAGES[name] for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def language_of(path: bytes) -> Language:
    """The language of a file, by its suffix."""
    return _BY_SUFFIX.get(path[path.rfind(b".") + 1 :].lower(), LANGUAGES["other"])
