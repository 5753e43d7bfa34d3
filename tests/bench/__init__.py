"""What serving a project costs, beside a bare MCP server: `make bench`."""
