"""`llm-do-mcp token NAME --tokens FILE`: make a bearer token for a server with `--http` and `--tokens`."""

from __future__ import annotations

from pathlib import Path

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import Parser


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp token`."""
    from llm_do_mcp.serving.caller import SCOPES
    from llm_do_mcp.serving.http.tokens import add, checked_scopes

    parser = Parser(
        prog="llm-do-mcp token",
        description="Make a bearer token and add it to a file. It is printed once; the file keeps its hash. "
        "To take it back, delete its line.",
    )
    parser.add_argument("name", metavar="NAME", help="whose it is: who has it can use the runs of that name")
    parser.add_argument("--tokens", metavar="FILE", required=True, help="the file; made where it is not there")
    parser.add_argument(
        "--scopes",
        metavar="SCOPES",
        default=",".join(SCOPES),
        help="what it allows, separated by commas: call (what only reads), write (also what can change something), "
        "approve (to answer what its runs ask); default: all",
    )
    options = parser.parse_args(argv)

    def make() -> int:
        print(add(Path(options.tokens), options.name, checked_scopes(options.scopes, "--scopes")))
        return DONE

    return guarded(make, parser.prog)
