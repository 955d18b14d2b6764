"""A message of a conversation, and its conversion to and from a line of the journal."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Self

from attrs import Attribute, field, frozen

from klaw_core import RecordError
from klaw_core.values.metadata import TRUST_CLASSES
from klaw_journals.timestamps import as_utc, format_ts, parse_ts, shown
from klaw_journals.trust import AGENT, OWNER, Trust, lowest, of_role

#: The allowed roles.
ROLES = ("user", "assistant", "system", "tool")
#: The type of a marker that starts a new session and a new segment.
SESSION_BREAK = "session_break"
#: The type of a subagent's result.
SUBAGENT_RESULT = "subagent_result"
#: The allowed types; None is an ordinary message.
TYPES = (None, SESSION_BREAK, SUBAGENT_RESULT)

_FIELDS = ("id", "ts", "role", "content", "type", "meta", "trust")

_MAX_NAME_CHARACTERS = 80


def _one_of(allowed: tuple[str | None, ...]) -> Callable[[Any, "Attribute[Any]", Any], None]:
    def check(_: Any, attribute: "Attribute[Any]", value: Any) -> None:
        if not (value is None or isinstance(value, str)) or value not in allowed:
            known = ", ".join("null" if name is None else name for name in allowed if name != "")
            raise RecordError(f"unknown {attribute.name} {shown(value)}; known: {known}")

    return check


def _a(kind: type[Any]) -> Callable[[Any, "Attribute[Any]", Any], None]:
    def check(_: Any, attribute: "Attribute[Any]", value: Any) -> None:
        if not isinstance(value, kind):
            expected = "a string" if kind is str else "an object"
            raise RecordError(f"{attribute.name}: expected {expected}, got {shown(value)}")

    return check


def speaker_of(role: str, meta: Mapping[str, Any]) -> str:
    """Return the speaker of a message: the name in its ``meta``, or else the role."""
    name = meta.get("name")
    known = isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARACTERS and not name.isspace()
    return " ".join(str(name).split()) if known else role


@frozen
class Message:
    """A message: role, text and time.

    ``ts`` must be timezone-aware; it is stored in UTC with milliseconds. ``content`` is text, or JSON as text. ``type``
    is None, ``"session_break"`` or ``"subagent_result"``. ``meta`` names the chat by ``channel`` and ``chat_id``, or by
    ``source = "scheduler"`` and ``task_name``; optional keys are ``model``, ``tokens_in``, ``tokens_out`` and ``tool``.
    The journal replaces an empty ``id``. ``extra`` has the unknown fields of a line. ``trust`` is the class of its
    writer, if it is lower than that of its role.

    Raise RecordError for an unknown role or type, a time without a timezone, or a field of the wrong type.
    """

    role: str = field(validator=_one_of(ROLES))
    content: str = field(validator=_a(str))
    ts: datetime = field(converter=as_utc)
    id: str = field(default="", validator=_a(str))
    type: str | None = field(default=None, validator=_one_of(TYPES))
    meta: Mapping[str, Any] = field(factory=dict, validator=_a(Mapping))
    extra: Mapping[str, Any] = field(factory=dict, validator=_a(Mapping), repr=False)
    trust: str = field(default="", validator=_one_of(("", *TRUST_CLASSES)))

    @property
    def trust_class(self) -> Trust:
        """The class of its writer: the lowest of its own and that of its role. A subagent is an agent."""
        kind = AGENT if self.type == SUBAGENT_RESULT else OWNER
        return lowest((self.trust or OWNER, of_role(self.role), kind))

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return the message of a line's JSON object. Raise RecordError if it is not a valid message.

        A ``content`` that is an object or an array becomes JSON text; a session break needs no content.
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
            trust=record.get("trust", ""),
        )

    def record(self) -> dict[str, Any]:
        """Return the JSON object for the journal; :meth:`parse` is the inverse."""
        known = {
            "id": self.id,
            "ts": format_ts(self.ts),
            "role": self.role,
            "content": self.content,
            "type": self.type,
            "meta": dict(self.meta),
        }
        if self.trust:
            known["trust"] = self.trust
        return {**known, **{name: value for name, value in self.extra.items() if name not in _FIELDS}}
