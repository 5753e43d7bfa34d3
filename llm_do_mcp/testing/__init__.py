"""`llm-do test`: the tests that a project brings along, each run in a copy of it."""
