"""The homes of these tests (``tests/plugins/homes.py``)."""

import sys
from pathlib import Path

from homes import bomb, check, dump, home, liars, make_home, memory, skip_on_postgres

__all__ = ["bomb", "check", "dump", "home", "liars", "make_home", "memory"]

sys.path.append(str(Path(__file__).parent))  # for what several files share: worlds.py

#: What a test of files that people own does by hand, PostgreSQL keeps in tables.
_OF_FILES = {
    "test_tools.py": ("TestCore::test_a_broken_core_memory_is_an_error_in_the_answer",),
    "test_memory.py": ("TestForget::test_forgetting_another_document_removes_no_journal_line",),
    "test_programs.py": ("TestSingleFiles::test_a_journal_can_be_updated_by_name",),
    "test_ids.py": ("test_a_journal_line_with_a_foreign_path_is_invalid",),
    "test_reindexing.py": ("test_an_unreadable_conversation_keeps_its_chunks_and_messages",),
    "test_broken_journal.py": ("test_a_memory_with_an_invalid_line_is_still_found",),
}


def pytest_collection_modifyitems(items):
    skip_on_postgres(items, _OF_FILES)
