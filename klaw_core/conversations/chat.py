"""The name of a chat, and of its directory: ``telegram_123456``, ``scheduler_daily-report``."""

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, unquote

from attrs import field, frozen

from klaw_core.errors import RecordError

#: The channel of what a scheduled task logs; the task's name is the chat's id.
SCHEDULER = "scheduler"

_LONGEST_NAME = 255  # bytes that a file system takes for one name
_HINT = "a chat name has the form CHANNEL_ID, e.g. telegram_123456"


@frozen(order=True)
class Chat:
    """A place where messages come from: a channel and the chat's id in it.

    ``name`` encodes both, reversibly, as a valid directory name: letters, digits and ``-._~@+`` are kept; other
    characters are percent-encoded as in a URL, and so are an underscore in the channel (the first underscore ends the
    channel) and a leading dot. Raise RecordError for an empty part or a name
    over 255 bytes.
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
        if len(name) > _LONGEST_NAME:
            raise RecordError(f"the chat name {name[:40]}… has {len(name)} bytes; at most {_LONGEST_NAME} are allowed")
        return name

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the chat with a name, as in ``klaw logs --chat`` or the name of its directory. Raise RecordError."""
        channel, separator, chat_id = name.partition("_")
        if not separator:
            raise RecordError(f"{name!r} is not a chat name", hint=_HINT)
        try:
            return cls(unquote(channel, errors="strict"), unquote(chat_id, errors="strict"))
        except UnicodeDecodeError as error:
            raise RecordError(f"{name!r} is not a chat name: it does not decode to UTF-8", hint=_HINT) from error

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Self:
        """Return the chat that a message's ``meta`` names. Raise RecordError if there is none.

        ``channel`` and ``chat_id`` take precedence; without them,
        ``source = "scheduler"`` and ``task_name`` name a task's log.
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
        """The keys that identify this chat in the ``meta`` of a message."""
        return {"channel": self.channel, "chat_id": self.chat_id}
