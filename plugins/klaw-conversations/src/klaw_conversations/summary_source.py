"""Summaries of chats as documents, so that search finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

from klaw_conversations.source import CONVERSATIONS, TRANSCRIPT
from klaw_conversations.summaries import SUMMARIES, SummaryFiles, summaries_path
from klaw_core import Document, Entry, RecordError, SkippedEntry, Source
from klaw_journals import BadLine, Chat, Summary
from klaw_redaction import Redactor

#: The source label in results.
LABEL = "summary"
_FILE = f"{SUMMARIES}.jsonl"


@frozen
class SummarySource(Source):
    """The summaries of each chat as one document, with one line per summary; replaced summaries are left out.

    A summary replaces earlier ones with the same ``from_message_id``, which may be None.
    """

    files: SummaryFiles
    redactor: Redactor = field(factory=Redactor)

    origin = CONVERSATIONS

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the chats that have summaries."""
        for item in self.files.listing():
            if isinstance(item, SkippedEntry):
                name = item.path.rpartition("/")[2]
                yield SkippedEntry(f"{CONVERSATIONS}/{name}", item.reason, keep=True)
                continue
            log = self.files.log(item)
            try:
                if log.exists and log.size != 0:
                    yield Entry(summaries_path(item), log.size or 0)
            except OSError as error:
                yield SkippedEntry(summaries_path(item), f"cannot be read: {error.strerror}", keep=True)

    def holds(self, path: str) -> bool:
        """Return whether a path is the document of a chat's summaries."""
        return path.endswith(f"/{_FILE}")

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Render the summaries of one chat. Return a SkippedEntry if there are none or they cannot be read."""
        try:
            chat = Chat.parse(entry.path.split("/")[1])
        except (IndexError, RecordError):
            return SkippedEntry(entry.path, "is not named like a chat", keep=False)
        lines = list(self.files.lines(chat))
        unread = next((line for line in lines if isinstance(line, BadLine) and line.ends_reading), None)
        if unread is not None:
            return SkippedEntry(entry.path, unread.reason, keep=True)
        current = {line.from_message_id: line for line in lines if isinstance(line, Summary)}
        shown = [
            (number, line, self._line(line))
            for number, line in enumerate(lines, start=1)
            if isinstance(line, Summary) and current[line.from_message_id] is line
        ]
        shown = [(number, line, text) for number, line, text in shown if text]
        if not shown:
            return SkippedEntry(entry.path, "contains no text to show", keep=False)
        return Document(
            path=entry.path,
            text=_text([(number, text) for number, _, text in shown]),
            source=LABEL,
            origin=CONVERSATIONS,
            created_at=shown[-1][1].created_at,
            chat_id=chat.name,
            format=TRANSCRIPT,
            heading=(chat.name, "summary"),
            times=tuple((number, line.created_at) for number, line, _ in shown),
            is_redacted=True,
        )

    def _line(self, summary: Summary) -> str:
        return " ".join(self.redactor.text(summary.content).split())


def _text(lines: Sequence[tuple[int, str]]) -> str:
    """Return a text with each line at its number; the other lines are empty."""
    by_number = dict(lines)
    return "\n".join(by_number.get(number, "") for number in range(1, lines[-1][0] + 1))
