"""Appending without waiting, summaries that come by themselves, and the prompt that consists of both."""

import logging
import os

import pytest

from klaw_conversations.history import HistoryStore
from klaw_core import Memory, RecordError, load_config

KEY = "telegram:1"


@pytest.fixture
def opened(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as memory:
        yield memory


def summarise(memory, calls):
    """Return a compactor that notes its calls and writes a summary of what it does not keep."""

    def compact(chat, keep):
        history = HistoryStore(memory.conversations, max_recent=10_000)
        said = history.recent(chat.replace("_", ":", 1))
        older = said[: len(said) - keep] if keep else said
        calls.append((chat, len(older)))
        text = " ".join(message.content for message in older)
        memory.conversations.add_summary(
            history_chat(chat), text, from_message_id=older[0].id, to_message_id=older[-1].id
        )

    return compact


def history_chat(name):
    from klaw_journals import Chat

    return Chat.parse(name)


def contents(messages):
    return [message.content for message in messages]


class TestAppendNowait:
    def test_messages_are_written_in_their_order(self, opened):
        history = HistoryStore(opened.conversations)
        for number in range(50):
            history.append_nowait(KEY, "user", f"m{number}", metadata={"n": number})
        assert history.flush(60)
        assert contents(history.all(KEY)) == [f"m{number}" for number in range(50)]
        assert [message.meta["n"] for message in history.all(KEY)] == list(range(50))
        dates = [message.ts for message in history.all(KEY)]
        assert dates == sorted(dates)

    def test_closing_the_memory_waits_for_them(self, tmp_path):
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
        with Memory.open(config) as memory:
            for number in range(20):
                HistoryStore(memory.conversations).append_nowait(KEY, "user", f"m{number}")
        with Memory.open(config) as memory:
            assert HistoryStore(memory.conversations).length(KEY) == 20

    def test_an_error_is_logged_and_the_next_message_is_written(self, opened, caplog):
        history = HistoryStore(opened.conversations)
        with caplog.at_level(logging.WARNING, "klaw"):
            history.append_nowait(KEY, "nobody", "refused")
            history.append_nowait(KEY, "user", "kept")
            assert history.flush(60)
        assert contents(history.all(KEY)) == ["kept"]
        assert "a message of telegram_1 is lost" in caplog.text

    def test_an_invalid_key_is_refused_at_once(self, opened):
        with pytest.raises(RecordError):
            HistoryStore(opened.conversations).append_nowait("telegram", "user", "x")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_a_forked_child_does_not_wait_for_the_parent(self, opened):
        behind = opened.conversations.behind
        behind.submit("x", lambda: None)
        assert behind.flush(60)
        child = os.fork()
        if child == 0:
            os._exit(0 if behind.flush(5) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestSummaries:
    def test_a_prompt_is_the_summary_and_what_came_after_it(self, opened):
        history = HistoryStore(opened.conversations, compactor=summarise(opened, []))
        for number in range(8):
            history.append(KEY, "user", f"m{number}")
        assert contents(history.prompt(KEY)) == [f"m{number}" for number in range(8)]
        history.compact(KEY, 3)
        summary, *rest = history.prompt(KEY)
        assert (summary.role, contents(rest)) == ("system", ["m5", "m6", "m7"])
        assert summary.content.endswith("m0 m1 m2 m3 m4")
        history.append(KEY, "user", "m8")
        assert contents(history.prompt(KEY, 2)[1:]) == ["m7", "m8"]
        assert history.length(KEY) == 9, "nothing is removed"

    def test_no_message_is_both_in_the_prompt_and_in_its_summary(self, opened):
        history = HistoryStore(opened.conversations, compactor=summarise(opened, []), compact_above=5, keep=2)
        for number in range(40):
            history.append(KEY, "user", f"m{number:02}")
            assert history.flush(60)
            shown = history.prompt(KEY)
            words = " ".join(contents(shown)).replace("Summary of the conversation so far:", "").split()
            assert words == [f"m{each:02}" for each in range(number + 1)], "each message once, in order"

    def test_a_summary_is_made_when_the_threshold_is_passed_and_only_then(self, opened):
        calls = []
        history = HistoryStore(opened.conversations, compactor=summarise(opened, calls), compact_above=5, keep=2)
        for number in range(9):
            history.append(KEY, "user", f"m{number}")
            assert history.flush(60)
        assert calls == [("telegram_1", 4)], "after the sixth message: 2 stay, and 3 have come since then"

    def test_a_compactor_that_fails_stops_no_message(self, opened, caplog):
        def fail(_chat, _keep):
            raise OSError("no model")

        history = HistoryStore(opened.conversations, compactor=fail, compact_above=1)
        for number in range(3):
            history.append(KEY, "user", f"m{number}")
        assert history.flush(60)
        assert history.length(KEY) == 3
        assert "no model" in caplog.text

    def test_without_a_compactor_the_error_says_how_to_give_one(self, opened):
        with pytest.raises(RecordError) as error:
            HistoryStore(opened.conversations).compact(KEY)
        assert "compactor=" in error.value.hint
