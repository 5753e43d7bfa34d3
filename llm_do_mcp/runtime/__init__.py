"""Runs: functions behind one gate, bodies over three verbs, a journal that survives the process.

Read `function.py` and `run.py` first.
"""
