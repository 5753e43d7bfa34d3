"""What a worker can be given: file operations, other workers, search, commands, the project's own Python.

A toolset turns settings into declarations, and declarations into functions again (`workbench.py` puts them
together). Nothing here decides whether a call may be made: that is the gate's.
"""
