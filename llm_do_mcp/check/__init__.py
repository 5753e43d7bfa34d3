"""`llm-do check`: what a project amounts to, and all that is wrong with it.

Read `examine.py` first: it loads a project as far as that goes and puts the report together. `finding.py` is one thing
that was found, `places.py` says where in which file it stands. Then one question a module: who can be reached
(`reach.py`), what runs and what asks (`policy.py`), the project's Python (`python.py`), and what is merely odd
(`odd.py`). `worker.py` is what there is to say about one worker, `shapes.py` schemas in one line.

Nothing of a project's Python is imported unless that is asked for, and then in the tool host.
"""
