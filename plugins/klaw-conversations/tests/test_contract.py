"""The contract of the extension `conversations`."""

import os
from datetime import UTC, datetime

import pytest

from klaw_core import Chat, Memory, Message, Record, load_config
from klaw_testing.extension import ExtensionContract

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)


class KeepingContract(ExtensionContract):
    """A memory in which the extension has data."""

    @pytest.fixture
    def memory(self, tmp_path):
        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        with Memory.open(config) as memory:
            chat = Chat.parse("telegram_1")
            memory.conversations.append(Message("user", "Where is the key?", MOMENT, meta=chat.meta))
            memory.conversations.add_summary(chat, "Somebody looks for a key.")
            memory.index()
            yield memory

    def test_the_extension_has_data_to_check(self, extension):
        assert any(isinstance(item, Record) for item in extension.records())


class TestConversations(KeepingContract):
    name = "conversations"
