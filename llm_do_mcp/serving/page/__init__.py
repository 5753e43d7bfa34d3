"""The approval page: a loopback web page on which a person answers what the client in front cannot ask.

It is started when the first question has nobody to answer it, and lists every question of the project that waits,
whichever process drives its run. `app.py` answers requests, `html.py` writes the page, `server.py` starts it.

It answers to a click, never to a visit: a decision is a POST with the token of the session's form, from the page's own
origin. The address that leads in holds a token that works once; it is shown to people (in the browser that is opened,
and to clients that open addresses), never in text that a model reads.
"""
