"""What was said, kept as JSON lines: a file for each chat and day, append-only, the truth that klaw.db mirrors."""

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import ChatFile, Journal, JournalEntry, Listing
from klaw_core.conversations.message import ROLES, SESSION_BREAK, SUBAGENT_RESULT, TYPES, Message

__all__ = [
    "ROLES",
    "SESSION_BREAK",
    "SUBAGENT_RESULT",
    "TYPES",
    "Chat",
    "ChatFile",
    "Journal",
    "JournalEntry",
    "Listing",
    "Message",
]
