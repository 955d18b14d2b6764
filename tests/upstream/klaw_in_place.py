"""A plugin of pytest: the frameworks' own tests of their stores meet Klaw's adapters in these stores' places.

``pytest -p klaw_in_place PATH`` with ``KLAW_IN_PLACE_OF=openai``, ``anthropic`` or ``strands``. What is expected to
fail, and why, stands in ``EXPECTED``; a test that fails or passes against it makes the run fail.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from klaw_core import Memory, load_config

#: Beginnings of the names of tests that ask for what only the replaced store has, by the reason.
EXPECTED = {
    "openai": {
        "the connections, locks and transactions of SQLiteSession": (
            "test_sqlite_session_close_closes_worker",
            "test_sqlite_session_reaps_connections",
            "test_sqlite_session_closes_retired_connections",
            "test_sqlite_session_keeps_connections",
            "test_sqlite_session_file_lock_is_shared",
            "test_sqlite_session_failed_add_items_releases",
            "test_sqlite_session_failed_clear_session_rolls_back",
            "test_sqlite_session_failed_pop_item_releases",
            "test_sqlite_session_rollback_failure_evicts",
            "test_sqlite_session_close_retries",
            "test_sqlite_session_post_commit_cancellation",
        ),
        "rows of SQLiteSession's table that the test breaks with SQL": (
            "test_sqlite_session_pop_item_skips_corrupt",
            "test_sqlite_session_pop_item_returns_none_after",
            "test_sqlite_session_get_items_limit_skips",
            "test_sqlite_session_get_items_session_settings_limit_skips",
        ),
        "the memory is the caller's to close, not the session's": ("test_sqlite_session_closed_rejects",),
    },
    "anthropic": {},
    "strands": {
        "the file in which TestMemoryStore keeps its entries": (
            "test_raises_when_explicit_path_is_empty",
            "test_defaults_to_a_sanitized_path",
            "test_persists_human_readable_json",
            "test_raises_clear_error",
            "test_accepts_null_metadata",
            "test_keeps_all_entries_under_concurrent",
            "test_reused_across_separate_event_loops",
            "test_loads_a_file_written",
            "test_manager_add_writes_to_store",
            "test_ingests_extracted_facts",
        ),
        "the class itself, and the object that its add returns": (
            "test_export_from_parent_package",
            "test_lazily_exported",
            "test_returns_an_id",
            "test_uses_the_monkeypatchable_id_generator",
            "test_deduplicates_identical_content",
        ),
        "its score, and the newest first where scores are equal": (
            "test_ranks_higher_overlap_first",
            "test_breaks_ties_by_recency",
        ),
    },
}

_HOME = tempfile.TemporaryDirectory(prefix="klaw-in-place-")
_OPENED: dict[str, Memory] = {}


def memory_at(place: object) -> Memory:
    """Return the memory of a file or directory; words alone, as in the stores whose place it takes."""
    key = str(place)
    if key not in _OPENED:
        directory = Path(_HOME.name) / str(len(_OPENED))
        overrides = {"memory": {"embedding": {"type": "none"}}}
        _OPENED[key] = Memory.open(load_config(data_dir=directory, overrides=overrides))
    return _OPENED[key]


@atexit.register
def _close() -> None:
    for memory in _OPENED.values():
        memory.close()
    _HOME.cleanup()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is expected to fail."""
    for reason, names in EXPECTED[os.environ["KLAW_IN_PLACE_OF"]].items():
        for item in items:
            if item.name.startswith(names):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def openai() -> None:
    """Take the place of ``SQLiteSession``."""
    import agents
    import agents.memory

    from klaw_agents.openai import KlawSession

    class Session(KlawSession):
        def __init__(self, session_id: str, db_path: object = ":memory:", **options: Any) -> None:
            place = id(self) if db_path == ":memory:" else db_path
            settings = options.get("session_settings")
            super().__init__(session_id, memory_at(place), session_settings=settings)

        def close(self) -> None:
            """Nothing: the memory is closed at the end."""

    agents.SQLiteSession = agents.memory.SQLiteSession = Session  # type: ignore[assignment,misc]


def anthropic() -> None:
    """Take the place of ``BetaLocalFilesystemMemoryTool`` and of the asynchronous one."""
    from anthropic.lib.tools import _beta_builtin_memory_tool as theirs

    from klaw_agents.anthropic import KlawAsyncMemoryTool, KlawMemoryTool

    class Tool(KlawMemoryTool):
        def __init__(self, base_path: str = "./memory") -> None:
            super().__init__(memory_at(base_path), base_path)

    class AsyncTool(KlawAsyncMemoryTool):
        def __init__(self, base_path: str = "./memory") -> None:
            super().__init__(memory_at(base_path), base_path)

    theirs.BetaLocalFilesystemMemoryTool = Tool  # type: ignore[misc]
    theirs.BetaAsyncLocalFilesystemMemoryTool = AsyncTool  # type: ignore[assignment,misc]


def strands() -> None:
    """Take the place of ``TestMemoryStore``."""
    import strands.vended_memory_stores.test_memory_store as theirs

    from klaw_agents.strands import KlawMemoryStore

    class Store(KlawMemoryStore):
        __test__ = False

        def __init__(self, path: str = "", *, persist: bool = True, **options: Any) -> None:
            super().__init__(memory_at(path if persist else id(self)), **options)

    theirs.TestMemoryStore = Store  # type: ignore[assignment,misc]


{"openai": openai, "anthropic": anthropic, "strands": strands}[os.environ["KLAW_IN_PLACE_OF"]]()
