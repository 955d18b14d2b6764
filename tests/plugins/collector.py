"""Let Python's garbage collector be: what the collection of tests makes is never garbage.

Python looks for cycles at every 700 new objects, and now and then among all: half a million for these tests, which
takes half a second each time. Klaw itself starts with the same threshold (``klaw_core/cli/startup.py``).
"""

from __future__ import annotations

import gc

_COLLECT_AFTER = 50_000


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
