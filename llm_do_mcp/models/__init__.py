"""One turn of a model, whoever answers it: Anthropic's API, a local server that speaks it, or a script.

Read `turn.py` first: a `Model` is whatever turns a `Request` into a `Reply`. It knows nothing of runs, tools or
files; the worker loop owns those. Nothing here imports the model SDK before the first turn that needs it.
"""
