"""The messages of a session as the text of a document, one message a line."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Self

from attrs import define, field

from klaw_core import Document, KlawError
from klaw_journals import parse_ts
from klaw_journals.trust import lowest, of_role
from klaw_sessions.agent import Message, WorkingDirectory

_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


@define
class Content:
    """The content of a session, or of a part of one, as far as it was read.

    ``is_known``: something was read that the agent writes, though perhaps no message.
    """

    messages: list[Message] = field(factory=list)
    seen: set[str] = field(factory=set)
    directory: str = ""
    is_known: bool = False

    @classmethod
    def of(cls, items: Iterable[Message | WorkingDirectory]) -> Self:
        """Return the content of a whole session."""
        content = cls()
        for item in items:
            content.take(item)
        return content

    def take(self, item: Message | WorkingDirectory) -> None:
        """Add what was read."""
        self.is_known = True
        if isinstance(item, Message):
            self._add(item)
        elif not self.directory:
            self.directory = item.directory

    def _add(self, message: Message) -> None:
        """Add a message, unless one with the same id was added."""
        if message.id and message.id in self.seen:
            return
        self.seen.add(message.id)
        self.messages.append(message)

    def leave_out(self, ids: Container[str]) -> None:
        """Leave out the messages with these ids."""
        self.messages = [message for message in self.messages if message.id not in ids]

    def until(self, moment: datetime | None) -> bool:
        """Return whether a message with an id is not newer than a moment; any with an id if there is no moment."""
        times = (_moment(message.moment) for message in self.messages if message.id)
        return any(moment is None or time is None or time <= moment for time in times)

    @property
    def lines(self) -> list[str]:
        """The messages, each as one line."""
        return [f"{_SPEAKERS[message.role]}: {' '.join(message.text.split())}" for message in self.messages]

    @property
    def times(self) -> list[tuple[int, datetime]]:
        """The numbers of the lines, from 1, with the moments of their messages."""
        dated = ((number, _moment(message.moment)) for number, message in enumerate(self.messages, start=1))
        return [(number, moment) for number, moment in dated if moment is not None]

    def why_empty(self, agent: str) -> str:
        """Return why a session without a line is skipped."""
        if self.is_known:
            return "contains no messages to index"
        return why_unknown(agent)

    def document(self, path: str, agent: str, session: str, file: Path, project: str = "") -> Document:
        """Return the document of this content. ``project`` is used if no working directory is known."""
        project = PurePosixPath(self.directory.replace("\\", "/")).name or project
        metadata = {"agent": agent, "project": project, "directory": self.directory, "session": session}
        times = tuple(self.times)
        begun = times[0][1] if times else datetime.fromtimestamp(file.stat().st_mtime, UTC)
        return Document(
            path=path,
            text="\n".join(self.lines),
            source=agent,
            origin=agent,
            created_at=begun,
            chat_id=session,
            format="transcript",
            heading=(project,) if project else (),
            metadata={name: value for name, value in metadata.items() if value},
            times=times,
            trust=lowest(of_role(message.role) for message in self.messages),
        )


def why_unknown(agent: str) -> str:
    """Return why a file of an agent, or a part of one, is skipped that has another form."""
    return f"contains nothing that Klaw knows; if {agent} is newer than this version of Klaw, update Klaw"


def _moment(text: str) -> datetime | None:
    try:
        return parse_ts(text)
    except KlawError:
        return None
