"""Files into a project: manifest and workers as checked, plain data, and their templates as text.

Read in this order: `load.py` (what a project is and how it comes about), `effective.py` (what a worker amounts to),
`build.py` (how a file becomes that), `render.py` (how its templates become text). `manifest.py`, `worker.py` and
`settings.py` are the keys of the files; `strictyaml.py` and `checked.py` read them and point at what is wrong;
`references.py`, `resolve.py` and `scan.py` find workers. Then one question a module: `schema.py`, `roots.py`,
`toolmodules.py` and `template.py` (what a worker's schemas, folders, tools and templates are), `protected.py` (what
it can never write), `names.py` (how it is published), `paths.py` and `files.py` (how the project's files are named and
read).
Nothing of a project's Python is imported here.
"""
