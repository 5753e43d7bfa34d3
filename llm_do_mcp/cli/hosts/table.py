"""The hosts that are known: where each keeps its servers for this person, and the form of an entry."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_do_mcp.errors import UsageError

MAC, WINDOWS = "darwin", "win32"


@dataclass(frozen=True)
class Host:
    """An MCP host.

    Args:
        name: As the command line has it.
        section: The key under which it has its servers.
        places: Platform → its configuration file, "" for every other platform; `~`, `$CONFIG` and `$APPDATA` in it
            are replaced.
        extra: What an entry has besides command, arguments and environment.
        then: What a person has to do for the change to count.
    """

    name: str
    section: str
    places: Mapping[str, str]
    then: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def file(self) -> Path:
        """Its configuration file on this machine, whether or not it is there."""
        place = self.places.get(sys.platform, self.places[""])
        if self.name == "claude-code" and (folder := os.environ.get("CLAUDE_CONFIG_DIR")):
            return Path(folder) / ".claude.json"
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
        roaming = os.environ.get("APPDATA") or os.path.join("~", "AppData", "Roaming")
        return Path(os.path.expanduser(place.replace("$CONFIG", config).replace("$APPDATA", roaming)))

    def entry(self, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
        """What stands in its file for one server."""
        first, *rest = command
        return {**self.extra, "command": first, "args": rest, **({"env": dict(env)} if env else {})}


def _application(folder: str, file: str) -> dict[str, str]:
    """Where a desktop application keeps a file."""
    return {
        MAC: f"~/Library/Application Support/{folder}/{file}",
        WINDOWS: f"$APPDATA/{folder}/{file}",
        "": f"$CONFIG/{folder}/{file}",
    }


_STDIO = {"type": "stdio"}
_HOSTS = (
    Host("claude-desktop", "mcpServers", _application("Claude", "claude_desktop_config.json"),
         "quit Claude Desktop and start it again"),
    Host("claude-code", "mcpServers", {"": "~/.claude.json"}, "start a new session", _STDIO),
    Host("vscode", "servers", _application("Code/User", "mcp.json"),
         "start the server from the command palette (MCP: List Servers)", _STDIO),
    Host("cursor", "mcpServers", {"": "~/.cursor/mcp.json"}, "switch the server on in Cursor's settings"),
    Host("windsurf", "mcpServers", {"": "~/.codeium/windsurf/mcp_config.json"},
         "refresh the servers in Windsurf's settings"),
    Host("zed", "context_servers", {WINDOWS: "$APPDATA/Zed/settings.json", "": "~/.config/zed/settings.json"},
         "Zed starts it by itself", {"source": "custom"}),
    Host("gemini-cli", "mcpServers", {"": "~/.gemini/settings.json"}, "start a new session"),
)  # fmt: skip
HOSTS: Mapping[str, Host] = {host.name: host for host in _HOSTS}


def named(name: str) -> Host:
    """A host by its name.

    Raises:
        UsageError: There is none; names those there are.
    """
    if name not in HOSTS:
        raise UsageError(f"{name!r} is no host that is known; there are: {', '.join(HOSTS)} (others: --print)")
    return HOSTS[name]
