"""What an extension can ask of the memory that it is part of."""

from datetime import UTC, datetime

from attrs import define, field

from klaw_core import (
    AttachedExtension,
    LiveComponent,
    Memory,
    Message,
)

META = {"channel": "telegram", "chat_id": "1"}
SECRET = "sk-" + "a1B2" * 8


@define
class Reader(AttachedExtension):
    """An extension that reads what was said."""

    host: object = field(default=None, init=False)
    name = "reader"

    def attach(self, host, /):
        self.host = host


def test_an_extension_reads_messages_and_redacts_secrets(home):
    reader = Reader()
    live = [LiveComponent("extension", "reader", reader)]
    with Memory.open(home.config(), registry=home.registry(), components=live) as memory:
        written = memory.conversations.append(Message("user", f"the key is {SECRET}", datetime.now(UTC), meta=META))
        assert memory.extension("reader") is reader
        (chat,) = reader.host.extension("conversations").archive.journal.chats()
        (line,) = reader.host.extension("conversations").archive.read(chat)
        assert line.message == written
        assert reader.host.extension("conversations").archive.redactor.text(written.content) == "the key is [redacted]"
