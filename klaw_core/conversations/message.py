"""One message of a conversation, as a value and as a line of the journal."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Self

from attrs import Attribute, field, frozen

from klaw_core.errors import RecordError
from klaw_core.files.timestamps import as_utc, format_ts, parse_ts, shown

#: Who may speak.
ROLES = ("user", "assistant", "system", "tool")
#: A marker that a new session begins; what follows is the current segment.
SESSION_BREAK = "session_break"
#: What a subagent handed back.
SUBAGENT_RESULT = "subagent_result"
#: What a message may be besides something said (None).
TYPES = (None, SESSION_BREAK, SUBAGENT_RESULT)

_FIELDS = ("id", "ts", "role", "content", "type", "meta")


def _one_of(allowed: tuple[str | None, ...]) -> Callable[[Any, "Attribute[Any]", Any], None]:
    def check(_: Any, attribute: "Attribute[Any]", value: Any) -> None:
        if not (value is None or isinstance(value, str)) or value not in allowed:
            known = ", ".join("null" if name is None else name for name in allowed)
            raise RecordError(f"unknown {attribute.name} {shown(value)}; known: {known}")

    return check


def _a(kind: type[Any]) -> Callable[[Any, "Attribute[Any]", Any], None]:
    def check(_: Any, attribute: "Attribute[Any]", value: Any) -> None:
        if not isinstance(value, kind):
            expected = "a string" if kind is str else "an object"
            raise RecordError(f"{attribute.name}: expected {expected}, got {shown(value)}")

    return check


@frozen
class Message:
    """A message: what was said, by whom and when.

    ``ts`` is aware; it is stored in UTC with milliseconds. ``content`` is text, or JSON as text. ``type`` is None,
    ``"session_break"`` or ``"subagent_result"``. ``meta`` says where: ``channel`` and ``chat_id``, or
    ``source = "scheduler"`` and ``task_name``; then ``model``, ``tokens_in``, ``tokens_out``, ``tool``, as they
    apply. The journal replaces an empty ``id``. ``extra`` has the fields of a line that Klaw does not know.

    Raise RecordError for an unknown role or type, a time without a zone, or a field of the wrong kind.
    """

    role: str = field(validator=_one_of(ROLES))
    content: str = field(validator=_a(str))
    ts: datetime = field(converter=as_utc)
    id: str = field(default="", validator=_a(str))
    type: str | None = field(default=None, validator=_one_of(TYPES))
    meta: Mapping[str, Any] = field(factory=dict, validator=_a(Mapping))
    extra: Mapping[str, Any] = field(factory=dict, validator=_a(Mapping), repr=False)

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return the message of a line's object. Raise RecordError with the reason if it is not a message.

        Content that is an object or an array is kept as its JSON; a session break needs no content.
        """
        kind = record.get("type")
        for name in ("id", "ts", "role", "content"):
            if record.get(name) is None and not (name == "content" and kind == SESSION_BREAK):
                raise RecordError(f"{name} is {'null' if name in record else 'missing'}")
        if record["id"] == "":
            raise RecordError("id is empty")
        content = record.get("content")
        if isinstance(content, dict | list):
            content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return cls(
            role=record["role"],
            content="" if content is None else content,
            ts=parse_ts(record["ts"]),
            id=record["id"],
            type=kind,
            meta={} if record.get("meta") is None else record["meta"],
            extra={name: value for name, value in record.items() if name not in _FIELDS},
        )

    def record(self) -> dict[str, Any]:
        """Return the object that the journal writes; :meth:`parse` returns the same message for it."""
        known = {
            "id": self.id,
            "ts": format_ts(self.ts),
            "role": self.role,
            "content": self.content,
            "type": self.type,
            "meta": dict(self.meta),
        }
        return {**known, **{name: value for name, value in self.extra.items() if name not in known}}
