"""`make clients`: install the programs. Where that is not possible, say so and go on: what needs them is skipped."""

from __future__ import annotations

from tests.javascript import FOLDER, install

if __name__ == "__main__":
    print(install() or f"installed in {FOLDER}")
