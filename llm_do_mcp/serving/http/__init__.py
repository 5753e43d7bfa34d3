"""A server of projects over Streamable HTTP, for a team or for clients that start nothing themselves.

`address.py` says where it listens and under which names it may be asked for, `tokens.py` and `oauth.py` who calls,
`app.py` puts the SDK's own application behind that, `serve.py` listens, and ends in order.
"""
