"""What differs between a life in SQLite and in PostgreSQL is what differs; of a fault is said what may be said."""

import subprocess
import sys
from pathlib import Path

import pytest

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


_MAY_SAY = """
import sys
sys.path[:0] = sys.argv[1:3]
from severed import Severing
place = "postgresql://here/klaw (life1)"
lost = f"{place}: the connection was lost: ended; nothing was changed check that the server runs, then try again"
unknown = f"{place}: the connection was lost during COMMIT; unknown whether the changes were stored"
indexed = f"{unknown} check that the server runs, then run `klaw index`"
checked = "check memory.store.dsn, and that the server runs: docs/how-to/postgres.md"
away = f"cannot connect to postgresql://here: refused {checked}"
for at_commit, has_stopped, kind, text in (
    (True, False, "save", indexed),
    (False, False, "save", lost),
    (False, True, "save", away),
    (True, False, "save", lost),
    (False, False, "save", indexed),
    (True, True, "search", indexed),
    (False, False, "save", away),
    (True, True, "save", unknown),
    (True, True, "save", f"{place}: the connection was lost"),
):
    severing = Severing(None, has_cut=True, at_commit=at_commit, has_stopped=has_stopped)
    print(severing.may_say(kind, text) is not None)
print(Severing(None).may_say("save", lost) is not None)
"""


def test_what_is_said_of_a_fault_is_about_it_and_has_a_hint():
    pytest.importorskip("psycopg", reason="the faults of PostgreSQL need psycopg")
    command = [sys.executable, "-c", _MAY_SAY, str(_HERE), str(_HERE.parent / "crash")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert told == ["True"] * 3 + ["False"] * 7
