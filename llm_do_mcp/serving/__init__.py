"""A project as an MCP server, in both protocol eras.

`surface.py` says what is published, `present.py` what that has become after an edit, `server.py` answers calls,
`asking.py` carries questions to the client and answers back, `results.py` turns how a run ended into a tool result,
`stdio.py` keeps the transport alive.
"""
