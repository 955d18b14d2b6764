"""Names of chats, which are also the names of their directories: ``telegram_123456``, ``scheduler_daily-report``."""

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, unquote

from attrs import field, frozen

from klaw_core import RecordError

#: The channel of the logs of scheduled tasks; the chat id is the task's name.
SCHEDULER = "scheduler"

_MAX_NAME_BYTES = 255  # the limit of common file systems
_HINT = "a chat name has the form CHANNEL_ID, e.g. telegram_123456"


@frozen(order=True)
class Chat:
    """A chat: a channel, and the chat's id in it.

    ``name`` is a reversible encoding of both that is a valid directory name. Letters, digits and ``-._~@+`` are kept;
    other characters are percent-encoded, as in a URL. An underscore in the channel and a leading dot are encoded too,
    because the first underscore ends the channel. Raise RecordError for an empty part or a name over 255 bytes.
    """

    channel: str
    chat_id: str
    name: str = field(init=False, eq=False, repr=False)

    @name.default
    def _quoted(self) -> str:
        if not self.channel or not self.chat_id:
            raise RecordError(
                f"a chat needs a channel and an id, got {self.channel!r} and {self.chat_id!r}", hint=_HINT
            )
        try:
            name = f"{quote(self.channel, safe='@+').replace('_', '%5F')}_{quote(self.chat_id, safe='@+')}"
        except UnicodeEncodeError as error:
            raise RecordError("a chat name contains an unpaired surrogate, which is not valid Unicode") from error
        if name.startswith("."):
            name = "%2E" + name[1:]
        if len(name) > _MAX_NAME_BYTES:
            raise RecordError(f"the chat name {name[:40]}… has {len(name)} bytes; the limit is {_MAX_NAME_BYTES}")
        return name

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the chat with this name. Raise RecordError if the name is invalid."""
        channel, separator, chat_id = name.partition("_")
        if not separator:
            raise RecordError(f"{name!r} is not a chat name", hint=_HINT)
        try:
            return cls(unquote(channel, errors="strict"), unquote(chat_id, errors="strict"))
        except UnicodeDecodeError as error:
            raise RecordError(f"{name!r} is not a chat name: it does not decode to UTF-8", hint=_HINT) from error

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Self:
        """Return the chat that a message's ``meta`` names. Raise RecordError if it names none.

        The keys are ``channel`` and ``chat_id``, or else ``source = "scheduler"`` and ``task_name``.
        """
        channel, chat_id = meta.get("channel"), meta.get("chat_id")
        if channel is None and chat_id is None and meta.get("source") == SCHEDULER:
            channel, chat_id = SCHEDULER, meta.get("task_name")
        if isinstance(chat_id, int) and not isinstance(chat_id, bool):
            chat_id = str(chat_id)
        if not isinstance(channel, str) or not isinstance(chat_id, str):
            raise RecordError(
                "the message's meta does not say which chat it belongs to", hint="set channel and chat_id to strings"
            )
        return cls(channel, chat_id)

    @property
    def meta(self) -> dict[str, str]:
        """The keys and values that identify this chat in the ``meta`` of a message."""
        return {"channel": self.channel, "chat_id": self.chat_id}
