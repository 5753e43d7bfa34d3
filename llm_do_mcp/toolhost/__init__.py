"""The child process that holds a project's Python, and the pipe to it.

A project's Python never runs in the server. It lives in the *tool host*: a child process under the project's own
interpreter, where prints, `chdir`, signals, endless loops, crashes and `os._exit` touch nobody else, and which can be
killed. Two sides share this folder:

- In the server: `client.py` (`ToolHost`, what the rest of the program uses), `exchange.py` (the calls that are under
  way in one child process) and `process.py` (that process).
- In the child: `host.py` (the script that is started by path), `dispatcher.py` (runs calls), `modules.py` (imports the
  project's files), `discovery.py` (which functions are tools), `signatures.py` (their schemas), `docstrings.py` (what
  describes them), `classes.py` (classes as schemas), `results.py` (what they may return), `context.py` (what a
  `ToolContext` does).
- Both: `frames.py` (the messages), `descriptions.py` (what is told of a module), `authoring.py` (what a tool author
  imports).

The child's side needs only the standard library of Python 3.11. This file stays empty of imports: it is loaded there.
"""
