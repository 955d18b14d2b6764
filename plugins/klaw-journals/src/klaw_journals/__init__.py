"""Journals: the data that people own, in files or in a store.

A library for extensions and stores; it registers nothing.
"""

from klaw_journals.background import App, RunningExtension, lifespan_app
from klaw_journals.chats import Chat
from klaw_journals.checks import check_lines, check_private, make_private
from klaw_journals.contents import BadLine, BrokenRecord, JournalName, LogRecord, Replay
from klaw_journals.file_journals import FileJournals
from klaw_journals.interfaces import JournalingStore, Journals, Log, LogFolder, OwnedText, RecordJournal
from klaw_journals.jsonl import parse_json
from klaw_journals.message_rows import (
    JournalFileState,
    MessageReader,
    MessageWriter,
    Session,
    StoredMessage,
    Summary,
    changed_rows,
)
from klaw_journals.messages import Message
from klaw_journals.new_documents import NewDocument
from klaw_journals.opening import journals_of
from klaw_journals.records import (
    CondensingExtension,
    ConsentExtension,
    ExportReport,
    ImportCounts,
    ImportReport,
    Record,
    RecordedExtension,
)
from klaw_journals.timestamps import format_ts, parse_ts
from klaw_journals.traces import Traces

__all__ = [
    "App",
    "BadLine",
    "BrokenRecord",
    "Chat",
    "CondensingExtension",
    "ConsentExtension",
    "ExportReport",
    "FileJournals",
    "ImportCounts",
    "ImportReport",
    "JournalFileState",
    "JournalName",
    "JournalingStore",
    "Journals",
    "Log",
    "LogFolder",
    "LogRecord",
    "Message",
    "MessageReader",
    "MessageWriter",
    "NewDocument",
    "OwnedText",
    "Record",
    "RecordJournal",
    "RecordedExtension",
    "Replay",
    "RunningExtension",
    "Session",
    "StoredMessage",
    "Summary",
    "Traces",
    "changed_rows",
    "check_lines",
    "check_private",
    "format_ts",
    "journals_of",
    "lifespan_app",
    "make_private",
    "parse_json",
    "parse_ts",
]
