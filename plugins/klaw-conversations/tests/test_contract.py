"""The contract of the extension `conversations`."""

from datetime import UTC, datetime

from klaw_journals import Chat, Message
from klaw_testing.extension import KeepingExtensionContract

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)


class TestConversations(KeepingExtensionContract):
    name = "conversations"

    def fill(self, memory, directory):  # noqa: ARG002  # it needs no files
        chat = Chat.parse("telegram_1")
        memory.conversations.append(Message("user", "Where is the key?", MOMENT, meta=chat.meta))
        memory.conversations.add_summary(chat, "Somebody looks for a key.")
