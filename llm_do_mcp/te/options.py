"""What `te grep` may be asked: the everyday flags of grep and ripgrep, in any order, clustered, with `--`.

Where the two differ, grep's meaning holds (`-r` recurses, `-L` lists files without a match, `-E` is extended
syntax, `-h` hides the name). A flag that is not known is an error that names it: it is never taken for a pattern.
What would run a program (`--pre`) or unpack archives (`-z`) is refused.
"""

from __future__ import annotations

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.text import is_text, one_line, passable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from llm_do_mcp.te.selection import Selection

MAX_PATTERN_CHARACTERS = 64_000
MAX_GLOBS = 64
MAX_GLOB_CHARACTERS = 1_000
MAX_PATHS = 500


class Query:
    """One parsed `te grep` command. `output` is `lines`, `files`, `without` (a match) or `counts`."""

    def __init__(self) -> None:
        self.patterns: list[str] | None = None
        self.pattern_files: list[str] = []
        self.paths: list[str] = []
        self.syntax = "basic"
        self.output = "lines"
        self.case = ""
        self.word = self.whole_line = self.invert = self.only_matching = False
        self.before = self.after = 0
        self.max_count: int | None = None
        self.no_filename = self.follow = self.hidden = self.no_ignore = False
        self.globs: list[str] = []
        """For ripgrep, those of grep's options among them."""
        self.rules: list[tuple[bool, str, int]] = []
        """Of each `--include` (True) and `--exclude` (False) the glob, and its place among `globs`."""
        self.excluded_folders: list[str] = []
        self.selection: Selection | None = None
        """What grep's options choose; None where there are none."""
        self.caseless_globs: list[str] = []
        self.types: list[str] = []

    @property
    def context(self) -> bool:
        """Whether lines around the hits are asked for, and can be shown."""
        return bool(self.before or self.after) and self.output == "lines" and not self.only_matching

    @property
    def shows_nothing(self) -> bool:
        """Whether lines are selected, and nothing of them is to be shown: with `-o`, of those that do not match."""
        return self.output == "lines" and self.only_matching and self.invert


_SWITCHES: dict[str, tuple[str, object] | None] = {
    # None: how `te grep` behaves anyway
    "-r --recursive -n --line-number -s --no-messages -H --with-filename -I --no-heading --heading": None,
    "--color --colour --no-config -N --no-line-number": None,
    "-R --dereference-recursive --follow": ("follow", True),
    "-i --ignore-case -y": ("case", "--ignore-case"),
    "-S --smart-case": ("case", "--smart-case"),
    "--case-sensitive --no-ignore-case": ("case", ""),
    "-w --word-regexp": ("word", True),
    "-x --line-regexp": ("whole_line", True),
    "-v --invert-match": ("invert", True),
    "-o --only-matching": ("only_matching", True),
    "-l --files-with-matches": ("output", "files"),
    "-L --files-without-match": ("output", "without"),
    "-c --count": ("output", "counts"),
    "-h --no-filename": ("no_filename", True),
    "-G --basic-regexp": ("syntax", "basic"),
    "-E --extended-regexp": ("syntax", "extended"),
    "-F --fixed-strings": ("syntax", "fixed"),
    "-P --perl-regexp --pcre2": ("syntax", "perl"),
    "-. --hidden": ("hidden", True),
    "--no-ignore": ("no_ignore", True),
    "-u --unrestricted": ("unrestricted", True),
}
_VALUES = {
    "-e --regexp": "pattern",
    "-f --file": "pattern_file",
    "-A --after-context": "after",
    "-B --before-context": "before",
    "-C --context": "context",
    "-m --max-count": "max_count",
    "-g --glob": "glob",
    "--iglob": "iglob",
    "--include": "include",
    "--exclude": "exclude",
    "--exclude-dir": "exclude_dir",
    "-t --type": "type",
    "-T --type-not": "type_not",
}
SWITCHES = {name: effect for names, effect in _SWITCHES.items() for name in names.split()}
VALUES = {name: meaning for names, meaning in _VALUES.items() for name in names.split()}
REFUSED = {
    "--pre": "it would run a program",
    "--pre-glob": "it would run a program",
    "--hostname-bin": "it would run a program",
    "-z": "archives are not unpacked and lines end in a newline",
    "--search-zip": "archives are not unpacked",
    "-a": "binary files are counted, not printed",
    "--text": "binary files are counted, not printed",
    "-q": "the answer's header has the totals",
}


def parse(arguments: list[str]) -> Query:
    """Read a command's arguments, without the command's name.

    Raises:
        TeError: `unsupported_option`, `usage` or `too_long`, each naming the argument.
    """
    query = Query()
    positional: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--":
            positional.extend(reversed(rest))
            break
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            _option(query, name, value if equals else None, rest)
        elif argument.startswith("-") and argument[1:].isdecimal():
            _value(query, "-C", argument[1:])
        elif argument.startswith("-") and len(argument) > 1:
            _cluster(query, argument[1:], rest)
        else:
            positional.append(argument)
    if query.patterns is None and not query.pattern_files:
        if not positional:
            raise TeError("usage", "te grep needs a pattern: te grep [flags] PATTERN [PATH...]")
        _value(query, "-e", positional.pop(0))
    query.paths = positional
    _check_sizes(query)
    if query.rules or query.excluded_folders:
        _select(query)
    return query


def _select(query: Query) -> None:
    from llm_do_mcp.te.selection import Selection

    query.selection = Selection([(includes, glob) for includes, glob, _ in query.rules], query.excluded_folders)
    if query.selection.is_beyond_globs:
        for _, _, place in reversed(query.rules):
            del query.globs[place]
    # Last, since for ripgrep the last one holds: `--include='*'` is said of files, and takes no folder in.
    query.globs += [f"!{glob.removeprefix('./').rstrip('/')}/" for glob in query.excluded_folders]


def _cluster(query: Query, letters: str, rest: list[str]) -> None:
    """`-rni`, `-A3`, `-rne PATTERN`: switches in one word; one that takes a value takes what follows it."""
    for at, letter in enumerate(letters):
        name = "-" + letter
        if name in VALUES:
            attached = letters[at + 1 :]
            _option(query, name, attached or None, rest)
            return
        _option(query, name, None, rest)


def _option(query: Query, name: str, value: str | None, rest: list[str]) -> None:
    if name in REFUSED:
        raise TeError("unsupported_option", f"te grep does not take {name}: {REFUSED[name]}")
    if name in VALUES:
        if value is None:
            if not rest:
                raise TeError("usage", f"{name} needs a value")
            value = rest.pop()
        _value(query, name, value)
    elif name in SWITCHES and (value is None or name in ("--color", "--colour")):
        effect = SWITCHES[name]
        if name in ("-u", "--unrestricted"):
            query.hidden = query.hidden or query.no_ignore  # the second -u
            query.no_ignore = True
        elif effect and not (effect[1] == "counts" and query.output in ("files", "without")):
            setattr(query, *effect)
    else:
        known = " ".join(flag for flag in sorted({*SWITCHES, *VALUES}) if len(flag) == 2)
        raise TeError(
            "unsupported_option", f"te grep does not take {one_line(name, 40)}; it takes {known} and their long forms"
        )


def _value(query: Query, name: str, value: str) -> None:
    meaning = VALUES[name]
    if not (passable(value) and is_text(value)) and not meaning.startswith("pattern"):
        raise TeError("usage", f"the value of {name} holds a NUL, or what is not UTF-8")
    if meaning == "pattern":
        query.patterns = [*(query.patterns or []), *value.split("\n")]
    elif meaning == "pattern_file":
        query.pattern_files.append(value)
    elif meaning == "max_count":
        query.max_count = _number(name, value)
    elif meaning in ("before", "after", "context"):
        lines = _number(name, value)
        if meaning != "after":
            query.before = lines
        if meaning != "before":
            query.after = lines
    elif meaning == "iglob":
        query.caseless_globs.append(value)
    elif meaning == "glob":
        query.globs.append(value)
    elif meaning in ("include", "exclude"):
        query.rules.append((meaning == "include", value, len(query.globs)))
        query.globs.append(value if meaning == "include" else "!" + value)
    elif meaning == "exclude_dir":
        query.excluded_folders.append(value)
    else:
        query.types.append(f"--{meaning.replace('_', '-')}={value}")


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 9:
        raise TeError("usage", f"{name} takes a number of lines")
    return int(value)


def _check_sizes(query: Query) -> None:
    globs = [*query.globs, *query.caseless_globs, *query.excluded_folders, *query.types]
    for what, size, limit in (
        ("patterns of more characters", sum(map(len, query.patterns or [])), MAX_PATTERN_CHARACTERS),
        ("more globs and types", len(globs), MAX_GLOBS),
        ("a glob or type of more characters", max(map(len, globs), default=0), MAX_GLOB_CHARACTERS),
        ("more paths", len(query.paths), MAX_PATHS),
    ):
        if size > limit:
            raise TeError("too_long", f"te grep takes no {what} than {limit:,}")
