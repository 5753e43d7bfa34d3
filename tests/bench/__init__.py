"""What serving and running cost, beside a bare MCP server and another loop: `make bench`."""
