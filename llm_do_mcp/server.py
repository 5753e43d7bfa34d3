"""The module-level server that `mcp dev` and `mcp run` load: `LLM_DO_PROJECT`, else the working directory."""

from __future__ import annotations

import sys

from llm_do_mcp.cli.projects import load
from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.serving.page.server import browser
from llm_do_mcp.serving.server import ProjectServer

try:
    mcp = ProjectServer(load(None), browse=browser())
except LlmDoError as error:
    print(f"llm-do-mcp: {error}", file=sys.stderr)
    raise SystemExit(2) from None
