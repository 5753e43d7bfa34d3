"""`llm-do-mcp PROJECT`: serve a project over MCP, on standard input and output or over HTTP; and what belongs to it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import os
import sys
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, FAILED, INTERRUPTED, USAGE, guarded
from llm_do_mcp.cli.options import MODEL, PROJECT, add_loading, add_state_dir, add_version, filled, seconds
from llm_do_mcp.cli.parser import ENVIRONMENT, Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.approvals import HELP as HELP_APPROVALS
from llm_do_mcp.runtime.approvals import MODES, of_project
from llm_do_mcp.serving.wire import guard_stdout

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.serving.hardened import HardenedServer
    from llm_do_mcp.serving.http.app import Authentication

GARBAGE_EVERY = 1000
"""New objects after which garbage is looked for: a call of ours leaves none in cycles, one of a session's of the SDK a
hundred. Rarer, it would take as long in all, and the calls that meet it twice as long."""
COMMANDS = {
    "install": "install",
    "bundle": "bundle",
    "doctor": "doctor",
    "token": "token",
    "rotate-key": "rotate_key",
}
"""What else there is, and the module of each; a project of that name is given as a path (`./token`)."""

HELP = {
    "install": "enter a project into the configuration of an MCP host",
    "doctor": "start a server as a host would, and say what is wrong",
    "bundle": "make an .mcpb for Claude Desktop",
    "token": "make a bearer token, for --tokens",
    "rotate-key": "replace the key that seals request states",
}
"""What is said of each command."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do-mcp",
        "Serve projects to MCP clients: each published worker is a tool.",
        usage=("[PROJECT]… [OPTION]…", "COMMAND …"),
        commands={"Commands": HELP},
        examples={
            "llm-do-mcp install claude-desktop my-notes": "have a host start it",
            "llm-do-mcp my-notes": "over stdio, as hosts start it",
            "llm-do-mcp my-notes --http 127.0.0.1:8000": "at http://127.0.0.1:8000/mcp",
        },
        environment=ENVIRONMENT,
        exits=(DONE, FAILED, USAGE, INTERRUPTED),
        more="Connect a client",
        notes=["`llm-do-mcp COMMAND --help` tells more of a command, `llm-do list PROJECT` what would be published."],
    )
    made.add_argument(
        "projects",
        type=filled,
        nargs="*",
        metavar="PROJECT",
        help=f"{PROJECT}; of several, the names of tools begin with the project's",
    )
    made.add_argument("--model", type=filled, metavar="M", help=MODEL)
    add_state_dir(made)
    made.add_argument(
        "--call-within",
        metavar="SECONDS",
        type=seconds,
        help="hand a call over to run_wait after this time (default: what the client is known to wait, else 48)",
    )
    add_version(made)
    group = made.add_argument_group("Approvals")
    group.add_argument("--approvals", choices=MODES, default="ask", help=HELP_APPROVALS)
    group.add_argument(
        "--when-nobody-can-answer",
        choices=("pause", "deny"),
        help="leave a question open, to be answered on the approval page or with llm-do approve, or refuse it "
        "(default: deny where CI is set, else pause)",
    )
    group.add_argument(
        "--answer-within",
        metavar="SECONDS",
        type=seconds,
        help="take a question as one that nobody answers after this time (default: 45; for several at once, shown one "
        "after the other, at most four times this)",
    )
    group.add_argument(
        "--approve-tool", action="store_true", help="publish run_approve, for hosts that ask before every tool call"
    )
    _add_http(made)
    add_loading(made)
    return made


def _add_http(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("Over HTTP")
    group.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve there instead of over stdio; an address that others can reach needs --tokens or --oauth-…",
    )
    group.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name, with or without a port, that clients reach the server by, besides its address; may be repeated",
    )
    for option, metavar, help in (
        ("--tokens", "FILE", "callers need one of the bearer tokens in this file"),
        ("--oauth-issuer", "URL", "callers need a signed token (JWT) of this issuer"),
        ("--oauth-audience", "AUD", "whom it must be for, such as the server's address"),
        ("--oauth-jwks", "URL", "the keys of the issuer"),
    ):
        group.add_argument(option, type=filled, metavar=metavar, help=help)


def main(argv: list[str] | None = None) -> int:
    """Entry point of `llm-do-mcp`."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in COMMANDS:
        command = importlib.import_module(f"llm_do_mcp.cli.{COMMANDS[words[0]]}")
        return int(command.main(words[1:]))
    options = parser().parse_args(words)
    guard_stdout()  # before anything of the project is looked at
    code = guarded(lambda: _serve(options), "llm-do-mcp")
    sys.stderr.flush()
    # Not a plain return: a thread that is stuck in the kernel must not keep the process after the end of input.
    os._exit(code)


def _serve(options: argparse.Namespace) -> int:
    # What starting makes stays: looking through it for garbage, again and again, is a sixth of the time it takes.
    gc.disable()
    from llm_do_mcp.cli.projects import kept_in, model_named, together
    from llm_do_mcp.serving.names import Names
    from llm_do_mcp.serving.page.server import browser
    from llm_do_mcp.serving.server import ANSWER_WITHIN_S, ProjectServer

    authentication = authentication_of(options)
    if options.http is not None:
        from llm_do_mcp.serving.http.serve import Listening

        # Before the project is looked at: an address that must not be used is told of first.
        listening = Listening.at(options.http, authenticated=authentication is not None)
    projects = together(options.projects, options)
    several = len(projects) > 1
    names = Names() if several else None

    def serving(project: Project) -> ProjectServer:
        state_dir = kept_in(options.state_dir, project, several=several)
        return ProjectServer(
            project,
            state_dir=state_dir,
            model=options.model and asyncio.run(model_named(options.model, project, state_dir)),
            approvals=of_project(options.approvals, project.root),
            call_within=options.call_within,
            answer_within=ANSWER_WITHIN_S if options.answer_within is None else options.answer_within,
            when_nobody_can_answer=options.when_nobody_can_answer,
            approve_tool=options.approve_tool,
            browse=browser() if authentication is None else None,
            remote=authentication is not None,
            beside=names,
        )

    server: HardenedServer
    servers = [serving(project) for project in projects]
    server = servers[0]
    if several:
        from llm_do_mcp.serving.several import SeveralProjects

        server = SeveralProjects(servers)
    # Into the host's log, beside the server's instructions.
    for one in servers:
        of_it = f"{one.project.name}: " if several else ""
        for error in (*one.project.broken, *one.bench.unusable.values()):
            print(f"llm-do-mcp: not served: {of_it}{error}", file=sys.stderr)
    gc.freeze()
    gc.set_threshold(GARBAGE_EVERY)
    gc.enable()
    if options.http is None:
        server.run("stdio")
        return DONE
    import anyio

    hosts = options.allowed_host
    anyio.run(lambda: server.run_http_async(listening, allowed_hosts=hosts, authentication=authentication))
    return DONE


def authentication_of(options: argparse.Namespace) -> Authentication | None:
    """How callers are asked who they are, as the options say.

    Raises:
        UsageError: They do not go together, or cannot be used.
    """
    oauth = (options.oauth_issuer, options.oauth_audience, options.oauth_jwks)
    if options.http is None:
        if options.tokens or options.allowed_host or any(oauth):
            raise UsageError("--allowed-host, --tokens and --oauth-… belong to --http")
        return None
    if options.tokens and any(oauth):
        raise UsageError("--tokens and --oauth-…: use one of them")
    if options.tokens:
        from pathlib import Path

        from llm_do_mcp.serving.http.app import Authentication
        from llm_do_mcp.serving.http.tokens import TokenFile

        return Authentication(TokenFile(Path(options.tokens)))
    if not any(oauth):
        return None
    if not all(oauth):
        raise UsageError("--oauth-issuer, --oauth-audience and --oauth-jwks are needed together")
    from llm_do_mcp.serving.http.app import Authentication
    from llm_do_mcp.serving.http.oauth import Issuer, Tokens, web_address

    issuer = Issuer(*oauth)
    return Authentication(Tokens(issuer), issuer=web_address(issuer.issuer), resource=web_address(issuer.audience))


if __name__ == "__main__":
    sys.exit(main())
