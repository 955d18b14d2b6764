"""A plugin of pytest: the frameworks' own tests of their stores meet Klaw's adapters in these stores' places.

``pytest -p klaw_in_place PATH`` with ``KLAW_IN_PLACE_OF=openai``, ``anthropic`` or ``strands``. What is expected to
fail, and why, stands in ``EXPECTED``; a test that fails or passes against it makes the run fail.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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
    "langgraph": {
        "the tables and the configuration of their index": (
            "test_vector_store_initialization",
            "test_nonnull_migrations",
        ),
        "a vector for each field of a value, not for its text": ("test_embed_with_path",),
        "any string is a filter's key here; it is never SQL": ("test_sql_injection_vulnerability",),
        "synchronous methods may be called in an event loop": ("test_no_running_loop",),
        "no thread deletes what has expired; nothing returns it": ("test_ttl_sweeper", "test_async_ttl_sweeper"),
        "a read renews by default, as LangGraph documents it": ("test_ttl_override_default",),
    },
}

#: And what passes all the same.
PASSES = {"test_embed_with_path_operation_config[cosine]"}

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
            if item.name.startswith(names) and item.name not in PASSES:
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


def langgraph() -> None:
    """Take the place of ``SqliteStore``, ``AsyncSqliteStore`` and ``InMemoryStore``; vectors search, as in them."""
    import langgraph.store.memory
    import langgraph.store.sqlite
    import langgraph.store.sqlite.aio
    from langgraph.store.base import ensure_embeddings

    from langchain_klaw import KlawStore
    from langchain_klaw.embeddings import open_memory

    opened = []

    class Store(KlawStore):
        def __init__(self, *, index: Any = None, ttl: Any = None, place: object = None) -> None:
            directory = Path(_HOME.name) / f"langgraph-{len(opened)}"
            if index is None:
                memory = memory_at(place or id(self))
            else:
                memory = open_memory(directory, ensure_embeddings(index["embed"]), 512)
                opened.append(memory)
            fields = (index or {}).get("fields") or (index or {}).get("text_fields") or ["$"]
            super().__init__(memory, fields=fields, mode="vector" if index else "hybrid", ttl=ttl)

        @classmethod
        @contextmanager
        def from_conn_string(cls, place: str, *, index: Any = None, ttl: Any = None) -> Iterator[KlawStore]:
            yield cls(index=index, ttl=ttl, place=None if place == ":memory:" else place)

        def setup(self) -> None:
            """Nothing: a memory makes its tables when it is opened."""

    class AsyncStore(Store):
        @classmethod
        @asynccontextmanager
        async def from_conn_string(cls, place: str, **options: Any) -> AsyncIterator[KlawStore]:  # type: ignore[override]
            with Store.from_conn_string.__func__(cls, place, **options) as store:  # type: ignore[attr-defined]
                yield store

        async def setup(self) -> None:  # type: ignore[override]
            """Nothing, as well."""

        async def sweep_ttl(self) -> int:  # type: ignore[override]
            return super().sweep_ttl()

    langgraph.store.memory.InMemoryStore = Store  # type: ignore[assignment,misc]
    langgraph.store.sqlite.SqliteStore = Store  # type: ignore[assignment,misc]
    langgraph.store.sqlite.AsyncSqliteStore = AsyncStore  # type: ignore[assignment,misc]
    langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncStore  # type: ignore[assignment,misc]


_SWAPS = {"openai": openai, "anthropic": anthropic, "strands": strands, "langgraph": langgraph}
_SWAPS[os.environ["KLAW_IN_PLACE_OF"]]()
