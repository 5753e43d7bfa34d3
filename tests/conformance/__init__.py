"""The suite of the protocol's own project, run against our server class; see `__main__.py`."""
