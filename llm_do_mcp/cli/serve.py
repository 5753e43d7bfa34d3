"""`llm-do-mcp PROJECT`: serve a project over MCP, on standard input and output."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import Parser, add_loading, add_state_dir, add_version, seconds
from llm_do_mcp.runtime.approvals import HELP, MODES, of_project
from llm_do_mcp.serving.wire import guard_stdout

EPILOG = """\
PROJECT is a folder with main.worker, project.yaml or workers/; without it, LLM_DO_PROJECT or the working directory.
It is meant to be started by an MCP client; README.md shows the configuration for Claude Desktop, VS Code and Cursor.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="llm-do-mcp",
        description="Serve a folder of workers as MCP tools over stdio.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("project", nargs="?", metavar="PROJECT", help="the project's folder, or a single .worker file")
    add_loading(made)
    made.add_argument("--model", metavar="M", help="model of the entry worker, such as anthropic:claude-haiku-4-5")
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
        help="take a question as one that nobody answers after this time (default: 45)",
    )
    made.add_argument(
        "--approve-tool", action="store_true", help="publish run_approve, for hosts that ask before every tool call"
    )
    add_version(made)
    return made


def main(argv: list[str] | None = None) -> int:
    """Entry point of `llm-do-mcp`."""
    options = parser().parse_args(argv)
    guard_stdout()  # before anything of the project is looked at
    code = guarded(lambda: _serve(options), "llm-do-mcp")
    sys.stderr.flush()
    # Not a plain return: a thread that is stuck in the kernel must not keep the process after the end of input.
    os._exit(code)


def _serve(options: argparse.Namespace) -> int:
    # What starting makes stays: looking through it for garbage, again and again, is a sixth of the time it takes.
    gc.disable()
    from llm_do_mcp.cli.projects import opened
    from llm_do_mcp.serving.page.server import browser
    from llm_do_mcp.serving.server import ANSWER_WITHIN_S, ProjectServer

    project = opened(options.project, options)
    server = ProjectServer(
        project,
        state_dir=options.state_dir,
        model=options.model,
        approvals=of_project(options.approvals, project.root),
        call_within=options.call_within,
        answer_within=ANSWER_WITHIN_S if options.answer_within is None else options.answer_within,
        when_nobody_can_answer=options.when_nobody_can_answer,
        approve_tool=options.approve_tool,
        browse=browser(),
    )
    for error in project.broken:  # into the host's log, beside the server's instructions
        print(f"llm-do-mcp: not served: {error}", file=sys.stderr)
    gc.freeze()
    gc.enable()
    server.run("stdio")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
