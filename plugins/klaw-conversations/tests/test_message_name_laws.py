"""Messages that have one id: each different message has a name of its own, in every reader and in the rows."""

from __future__ import annotations

import json
import re
import tempfile
from datetime import date, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_conversations.journal import Journal, JournalEntry
from klaw_conversations.row_sync import RowSync
from klaw_conversations.source import ConversationSource
from klaw_conversations.summaries import SummaryFiles
from klaw_core.values.config import ConversationSettings
from klaw_core.values.documents import Entry
from klaw_journals.chats import Chat
from klaw_journals.messages import SESSION_BREAK
from klaw_testing.laws import scaled
from klaw_testing.memory_store import MemoryStore
from klaw_testing.messages import message_dump

CHAT = Chat("telegram", "123456")
START = date(2026, 2, 24)
DAYS = [START + timedelta(days=number) for number in range(3)]
FULL = re.compile(r".+~[0-9a-f]{32}", re.DOTALL)
#: Ids as writers give them; the last two look like the names that Klaw gives.
ids = st.sampled_from(["msg_001", "msg_002", "", f"msg_001~{'0' * 32}", f"msg_001~{'0' * 32}~{'1' * 32}"])
lines = st.fixed_dictionaries(
    {
        "id": ids,
        "role": st.sampled_from(["user", "assistant", "robot"]),  # the last is invalid
        "content": st.sampled_from(["kiln", "ferry", "lantern", ["a"]]),
        "ts": st.sampled_from(["2026-02-24T10:00:00Z", "2026-02-24T13:00:00+03:00", "2026-02-24T11:00:00Z"]),
        "type": st.sampled_from([None, None, None, SESSION_BREAK]),
        "meta": st.sampled_from([{}, {"n": 1}, {"n": 1.0}, {"n": 1, "m": 2}, {"m": 2, "n": 1}]),
    },
    optional={"extra": st.sampled_from([1, 2])},
)
#: The lines of each day.
chats = st.lists(st.lists(lines, max_size=5), min_size=3, max_size=3)
law = settings(deadline=None, max_examples=scaled(60))


def path_of(root: Path, day: date) -> Path:
    return root / CHAT.name / f"{day.isoformat()}.jsonl"


def write(root: Path, day: date, written: list[dict[str, object]]) -> None:
    path = path_of(root, day)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in written)


def entries(found) -> list[JournalEntry]:
    return [line for line in found if isinstance(line, JournalEntry)]


def whole(message) -> str:
    """Return all of a message but its id, as one text."""
    return json.dumps({name: value for name, value in message.record().items() if name != "id"}, sort_keys=True)


def sync_over(root: Path) -> RowSync:
    journal, summaries = Journal(root / "conversations"), SummaryFiles(root / "summaries")
    return RowSync.over(MemoryStore(), journal, summaries, ConversationSettings())


def rows_of(sync: RowSync) -> object:
    with sync.store.read() as snapshot:
        return message_dump(snapshot.messages)


def check(journal: Journal) -> list[JournalEntry]:
    """Check the names of the messages of a chat; return the messages, each once."""
    said = entries(journal.read(CHAT))
    distinct = [entry for entry in said if not entry.duplicate]
    different = dict.fromkeys((entry.id, whole(entry.written)) for entry in said)
    assert [(entry.id, whole(entry.written)) for entry in distinct] == list(different), "each once, in order"
    names = [entry.message.id for entry in distinct]
    assert len(set(names)) == len(names)
    first: set[str] = set()
    for entry in distinct:
        is_first = entry.id not in first and not FULL.fullmatch(entry.id)
        assert (entry.message.id == entry.id) == is_first
        assert is_first or FULL.fullmatch(entry.message.id)
        assert is_first or entry.message.id.startswith(f"{entry.id}~")
        first.add(entry.id)
    return distinct


@law
@given(chat=chats, count=st.integers(0, 8))
def test_every_reader_gives_each_message_the_same_name(chat, count):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for day, written in zip(DAYS, chat, strict=True):
            write(root / "conversations", day, written)
        sync = sync_over(root)
        journal = sync.journal
        check(journal)
        said = entries(journal.read(CHAT))
        messages = [entry.message for entry in said]
        by_place = {entry.place: entry.message for entry in said}
        for _ in range(2):
            for find_first in (None, sync.names.find_first):
                assert [line.message for line in entries(journal.tail(CHAT, count, find_first))] == messages[-count:][
                    : count or 0
                ]
                assert journal.window(CHAT, count, find_first) == expected_window(said, count)
                for file in journal.files(CHAT).files:
                    for line in entries(journal.with_names(CHAT, tuple(journal.read_file(file)), find_first)):
                        assert line.message == by_place[line.place]
            sync.sync()  # and once more, with rows
        since = [entry.message for entry in entries(journal.read(CHAT, messages[0].ts if messages else None))]
        assert since == [message for message in messages if message.ts >= messages[0].ts]


def expected_window(said: list[JournalEntry], count: int) -> tuple[object, ...]:
    """Return the last messages after the last break, each at its first place there."""
    breaks = [number for number, entry in enumerate(said) if entry.message.type == SESSION_BREAK]
    segment = said[breaks[-1] + 1 :] if breaks else said
    kept: list[JournalEntry] = []
    for entry in reversed(segment):
        if len(kept) == count:
            break
        kept = [other for other in kept if other.message.id != entry.message.id]
        kept.append(entry)
    return tuple(entry.message for entry in reversed(kept))


@law
@given(chat=chats, order=st.permutations([0, 1, 2]), parts=st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_rows_are_the_same_in_whatever_order_files_and_lines_arrive(chat, order, parts):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        sync = sync_over(root)
        for number in order:
            first = chat[number][: parts[number]]
            write(root / "conversations", DAYS[number], first)
            sync.sync_file(CHAT, DAYS[number])
        for number in reversed(order):
            write(root / "conversations", DAYS[number], chat[number][parts[number] :])
            sync.sync_file(CHAT, DAYS[number])
        again = sync_over(root)
        again.sync()
        assert rows_of(sync) == rows_of(again)
        expected = [(entry.message.id, entry.message.content) for entry in check(sync.journal)]
        with sync.store.read() as snapshot:
            assert [(row.id, row.content) for row in snapshot.messages.all(CHAT.name)] == expected
            for name, content in expected:
                assert [row.content for row in snapshot.messages.get(CHAT.name, [name])] == [content]
        assert sync.sync() == type(sync.sync())(), "nothing is left to do"


@law
@given(chat=chats)
def test_a_transcript_shows_every_message_of_its_day_once(chat):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "conversations"
        for day, written in zip(DAYS, chat, strict=True):
            write(root, day, written)
        journal = Journal(root)
        files = journal.files(CHAT).files
        assert [file.day for file in files] == list(DAYS)
        for file in files:
            said = entries(journal.read_file(file))
            shown = dict.fromkeys(
                (entry.id, whole(entry.message)) for entry in said if entry.message.type != SESSION_BREAK
            )
            expected = [json.loads(text)["content"] for _, text in shown]
            document = ConversationSource(journal).read(Entry(f"conversations/{CHAT.name}/{file.name}"))
            text = getattr(document, "text", "")
            assert [line.partition(": ")[2] for line in text.split("\n") if line.strip()] == expected
            assert not text or text.count("\n") + 1 == file.log.path.read_bytes().count(b"\n"), "the file's lines"


@law
@given(chat=chats, data=st.data())
def test_a_message_is_removed_alone_and_the_others_keep_their_full_names(chat, data):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for day, written in zip(DAYS, chat, strict=True):
            write(root / "conversations", day, written)
        sync = sync_over(root)
        sync.sync()
        journal = sync.journal
        before = check(journal)
        if not before:
            return
        goes = data.draw(st.sampled_from(before))
        name = data.draw(st.sampled_from([goes.message.id, *full_names(goes)]))
        kept_lines = [
            line
            for file in journal.files(CHAT).files
            for line in file.log.path.read_bytes().splitlines()
            if line not in lines_of(journal, goes)
        ]
        journal.remove(CHAT, [name])
        left = [line for file in journal.files(CHAT).files for line in file.log.path.read_bytes().splitlines()]
        assert [line for line in left if is_valid(line)] == [line for line in kept_lines if is_valid(line)]
        after = check(journal)
        stays = [entry for entry in before if entry is not goes]
        assert [(entry.id, whole(entry.written)) for entry in after] == [
            (entry.id, whole(entry.written)) for entry in stays
        ]
        told: list[str] = []
        removed = RowSync(sync.store, journal, sync.summaries, sync.redactor, on_removed=told.extend)
        removed.mirror_again(CHAT, frozenset([goes.message.id]))
        same_row = [line for line in stays if shown(line) == shown(goes)]  # the rest of the line is not in a row
        expected = [] if same_row else [f"{CHAT.name}/{goes.message.id}"]
        assert told == expected, "only this one, although others have other names now"
        for entry in stays:
            if FULL.fullmatch(entry.message.id):
                (found,) = [line for line in after if line.is_called(entry.message.id)]
                assert whole(found.written) == whole(entry.written)


def shown(entry: JournalEntry) -> object:
    """Return what a row has of a message, but its name and place in the day."""
    message = entry.written
    return entry.file.day, message.id, message.role, message.content, message.ts, message.type, dict(message.meta)


def full_names(entry: JournalEntry) -> list[str]:
    """Return the full name of an entry, as another message of the chat would have it."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        other = {**entry.written.record(), "content": "something else"}
        write(root, START, [other, entry.written.record()])
        return [line.message.id for line in entries(Journal(root).read(CHAT))][1:]


def lines_of(journal: Journal, entry: JournalEntry) -> set[bytes]:
    """Return the lines of a message."""
    same = [
        line
        for line in entries(journal.read(CHAT))
        if (line.id, whole(line.written)) == (entry.id, whole(entry.written))
    ]
    return {line.file.log.path.read_bytes()[line.offset : line.end].rstrip(b"\n") for line in same}


def is_valid(line: bytes) -> bool:
    return json.loads(line)["role"] != "robot" and json.loads(line)["id"] != ""
