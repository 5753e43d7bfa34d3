"""`llm-do-mcp PROJECT`: serve a project over MCP, on standard input and output or over HTTP; and what belongs to it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import os
import sys
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import MODEL, Parser, add_loading, add_state_dir, add_version, seconds
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.approvals import HELP, MODES, of_project
from llm_do_mcp.serving.wire import guard_stdout

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.serving.hardened import HardenedServer
    from llm_do_mcp.serving.http.app import Authentication

COMMANDS = {
    "install": "install",
    "bundle": "bundle",
    "doctor": "doctor",
    "token": "token",
    "rotate-key": "rotate_key",
}
"""What else there is, and the module of each; a project of that name is given as a path (`./token`)."""

EPILOG = """\
PROJECT is a folder with main.worker, project.yaml or workers/; without it, LLM_DO_PROJECT or the working directory.
Of several, the names of tools begin with the project's; `llm-do list A B` shows them.
It is meant to be started by an MCP client: llm-do-mcp install HOST PROJECT has one do so, llm-do-mcp doctor PROJECT
says what is wrong, llm-do-mcp bundle PROJECT makes an .mcpb for Claude Desktop.

Over HTTP, for clients that start nothing: --http 127.0.0.1:8000 serves at http://127.0.0.1:8000/mcp. An address that
other machines can reach needs --tokens (llm-do-mcp token NAME --tokens FILE makes one), or --oauth-issuer,
--oauth-audience and --oauth-jwks. llm-do-mcp rotate-key PROJECT replaces the key that seals request states.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="llm-do-mcp",
        description="Serve a folder of workers as MCP tools, over stdio or HTTP.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="a project's folder, or a single .worker file; several at once"
    )
    add_loading(made)
    made.add_argument("--model", metavar="M", help=MODEL)
    add_state_dir(made)
    made.add_argument(
        "--call-within",
        metavar="SECONDS",
        type=seconds,
        help="hand a call over to run_wait after this time (default: what the client is known to wait, else 48)",
    )
    made.add_argument("--approvals", choices=MODES, default="ask", help=HELP)
    made.add_argument(
        "--when-nobody-can-answer",
        choices=("pause", "deny"),
        help="leave a question open, to be answered on the approval page or with llm-do approve, or refuse it "
        "(default: deny where CI is set, else pause)",
    )
    made.add_argument(
        "--answer-within",
        metavar="SECONDS",
        type=seconds,
        help="take a question as one that nobody answers after this time (default: 45; for several at once, shown one "
        "after the other, at most four times this)",
    )
    made.add_argument(
        "--approve-tool", action="store_true", help="publish run_approve, for hosts that ask before every tool call"
    )
    _add_http(made)
    add_version(made)
    return made


def _add_http(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("over HTTP")
    group.add_argument("--http", metavar="HOST:PORT", help="serve there instead of on standard input and output")
    group.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name, with or without a port, that clients reach the server by, besides its address; may be repeated",
    )
    group.add_argument("--tokens", metavar="FILE", help="callers need one of the bearer tokens in this file")
    group.add_argument("--oauth-issuer", metavar="URL", help="callers need a token of this authorization server")
    group.add_argument("--oauth-audience", metavar="AUD", help="and it must be for this, such as the server's address")
    group.add_argument("--oauth-jwks", metavar="URL", help="where the issuer has its keys")


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
    from llm_do_mcp.cli.projects import model_named, opened
    from llm_do_mcp.serving.page.server import browser
    from llm_do_mcp.serving.server import ANSWER_WITHIN_S, ProjectServer

    authentication = _authentication(options)
    if options.http is not None:
        from llm_do_mcp.serving.http.serve import Listening

        # Before the project is looked at: an address that must not be used is told of first.
        listening = Listening.at(options.http, authenticated=authentication is not None)
    projects = [opened(path, options) for path in options.projects or [None]]
    several = len(projects) > 1

    def serving(project: Project) -> ProjectServer:
        # In one folder, a project would take up the runs of another.
        apart = several and options.state_dir is not None
        state_dir = os.path.join(options.state_dir, project.name) if apart else options.state_dir
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
            beside=several,
        )

    server: HardenedServer
    servers = [serving(project) for project in projects]
    server = servers[0]
    if several:
        from llm_do_mcp.serving.several import SeveralProjects

        server = SeveralProjects(servers)
    # Into the host's log, beside the server's instructions.
    for error in (error for one in servers for error in (*one.project.broken, *one.bench.unusable.values())):
        print(f"llm-do-mcp: not served: {error}", file=sys.stderr)
    gc.freeze()
    gc.enable()
    if options.http is None:
        server.run("stdio")
        return DONE
    import anyio

    hosts = options.allowed_host
    anyio.run(lambda: server.run_http_async(listening, allowed_hosts=hosts, authentication=authentication))
    return DONE


def _authentication(options: argparse.Namespace) -> Authentication | None:
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
    from llm_do_mcp.serving.http.oauth import Issuer, Tokens

    resource = options.oauth_audience if "://" in options.oauth_audience else None
    return Authentication(Tokens(Issuer(*oauth)), issuer=options.oauth_issuer, resource=resource)


if __name__ == "__main__":
    sys.exit(main())
