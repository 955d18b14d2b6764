"""What differs between a life in SQLite and in PostgreSQL is what differs, and no hash of a message's place."""

import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_COMPARED = """
import sys
sys.path[:0] = sys.argv[1:3]
from twins import plain
from klaw_conversations.names import full_name
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from datetime import UTC, datetime
for place in (120, 3):
    at = datetime(2026, 2, 22, 6, 47, 20, tzinfo=UTC)
    id_ = f"20260222T064720000Z-{place}-13503a3867c419fc"
    message = Message("user", "Anna", at, id=id_, meta=Chat("cli", "1").meta)
    print(plain(full_name(message)))
"""


def test_full_names_of_one_message_in_both_stores_are_one():
    """A full name has a digest of the id, which has the message's place in its journal."""
    command = [sys.executable, "-c", _COMPARED, str(_HERE), str(_HERE.parent / "crash")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(told) == 2
    assert told[0] == told[1]
