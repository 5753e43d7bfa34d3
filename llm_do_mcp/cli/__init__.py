"""The command lines `llm-do` and `llm-do-mcp`. Standard output carries results only; the rest is standard error."""
