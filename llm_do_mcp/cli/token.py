"""`llm-do-mcp token NAME --tokens FILE`: make a bearer token for a server with `--http` and `--tokens`."""

from __future__ import annotations

from pathlib import Path

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.caller import LETS_IN, SCOPES


def parser() -> Parser:
    """The command line."""
    made = Parser(
        "llm-do-mcp token",
        "Make a bearer token, print it once, and keep its hash in a file.",
        usage="NAME --tokens FILE [--scopes SCOPES]",
        notes=("To take one back, delete its line in the file.",),
        examples={"llm-do-mcp token ann --tokens tokens": "", "llm-do-mcp token bo --tokens tokens --scopes call": ""},
        more="Over HTTP",
    )
    made.add_argument("name", metavar="NAME", help="whose it is: who has it can use the runs of that name")
    made.add_argument("--tokens", metavar="FILE", required=True, help="the file; made where it is not there")
    made.add_argument(
        "--scopes",
        metavar="SCOPES",
        default=",".join(SCOPES),
        help="what it allows, separated by commas: call (what only reads; always needed), write (also what can change "
        "something), approve (to answer what its runs ask); default: all",
    )
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp token`."""
    made = parser()
    options = made.parse_args(argv)

    def make() -> int:
        from llm_do_mcp.serving.http.tokens import add, checked_scopes

        scopes = checked_scopes(options.scopes, "--scopes")
        if LETS_IN not in scopes:
            asked = f"--scopes {options.scopes}"
            raise UsageError(f"{asked}: without {LETS_IN} it lets nobody in; write {LETS_IN},{options.scopes}")
        print(add(Path(options.tokens), options.name, scopes))
        return DONE

    return guarded(make, made.prog)
