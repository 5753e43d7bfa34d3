"""Files into a project: manifest and workers as checked, plain data, and their templates as text.

Read in this order: `load.py` (what a project is and how it comes about), `effective.py` (what a worker amounts to),
`build.py` (how a file becomes that), `render.py` (how its templates become text). `manifest.py`, `worker.py` and
`settings.py` are the keys of the files; `strictyaml.py` and `checked.py` read them and point at what is wrong;
`references.py`, `resolve.py` and `scan.py` find workers. Then one question a module: `schema.py`, `roots.py`,
`toolmodules.py` and `template.py` (what a worker's schemas, folders, tools and templates are), `schema_files.py`
(schemas that refer to other files), `classes.py` and `hosting.py` (classes as schemas, and how the Python is run that
has them), `linear.py` (patterns that cannot hang), `protected.py` (what it can never write), `names.py` (how it is
published), `paths.py` and `files.py` (how the project's files are named and read), `seen.py` (whether they have changed
since), `bounds.py` (what a worker has that another worker made).

Libraries: `library.py` (where they lie, and which a project needs), `dependencies.py` (what they are given),
`exports.py` (what others can call), `libslock.py` (`libs.lock`, and that they still are what it has), `contents.py`
(what one consists of), and how they come: `installing.py`, with `gitsource.py`, `place.py` and `swap.py`.

Nothing of a project's Python is imported here.
"""
