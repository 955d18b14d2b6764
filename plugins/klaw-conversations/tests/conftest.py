"""The homes of the integration tests, and ``klaw`` run in a home of its own."""

import pytest
from click.testing import CliRunner
from homes import check, dump, home, make_home, memory, skip_on_postgres

from klaw_core.cli.program import cli

__all__ = ["check", "dump", "home", "make_home", "memory"]

#: What a test of files that people own does by hand, PostgreSQL keeps in tables.
_OF_FILES = {
    "test_conversations.py": (
        "TestRows::test_a_message_that_was_appended_twice_has_one_row",
        "TestRows::test_invalid_lines_are_counted_and_the_others_read",
        "TestRows::test_an_index_run_names_the_invalid_lines",
        "TestRows::test_rows_of_files_that_were_edited_by_hand_are_made_again",
        "TestRows::test_a_chat_whose_directory_was_removed_loses_its_rows",
        "TestChunks::test_a_result_has_the_lines_of_the_file",
        "TestChunks::test_an_edited_message_leaves_no_old_word_in_later_contexts",
        "TestChunks::test_documents_of_a_removed_file_leave_the_index",
        "test_rows_of_a_file_that_was_edited_to_the_same_length_are_made_again",
    ),
}


def pytest_collection_modifyitems(items):
    skip_on_postgres(items, _OF_FILES)


@pytest.fixture
def user_home(tmp_path, monkeypatch):
    """Make an empty home and work in it; nothing of the real user's is read."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place / name.lower()))
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def klaw(user_home, monkeypatch):
    """Run ``klaw`` in this process, without a model."""
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    assert user_home.is_dir()

    def run(*arguments):
        return CliRunner().invoke(cli, list(arguments), prog_name="klaw")

    return run
