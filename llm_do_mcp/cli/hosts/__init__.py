"""MCP hosts on this machine: where each keeps its servers, how one is written there, and how a host would start it."""
