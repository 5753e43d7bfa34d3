"""Confined files: roots with a mode and caps, and the only code that opens a project's files.

Read in this order: `root.py` (what a root is), `files.py` (what workers and clients can do with roots),
`opener.py` (how a file below a directory is opened so that nothing can lead outside). The two back ends of the
opener are `descriptors.py` (POSIX) and `finalpath.py` (Windows); `backend.py` says what they must offer, and chooses.
`names.py`, `patterns.py` and `text.py` open nothing: spellings of names, patterns over paths, bytes as text.
"""
