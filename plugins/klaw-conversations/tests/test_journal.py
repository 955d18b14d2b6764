"""The journal of conversations: files by chat and day."""

import json
import os
import threading
from datetime import UTC, date, datetime, timedelta, timezone
from hashlib import sha256

import pytest

from klaw_conversations.journal import Journal, JournalEntry
from klaw_core.errors import RecordError
from klaw_journals.chats import Chat
from klaw_journals.contents import BadLine
from klaw_journals.jsonl import MAX_LINE_BYTES
from klaw_journals.messages import SESSION_BREAK, Message
from klaw_testing.crash import cut_power_everywhere, kill_everywhere

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
ANNA = Chat("telegram", "123456")


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "conversations")


def said(content, minutes=0, *, role="user", chat=ANNA, **more):
    return Message(role, content, NOON + timedelta(minutes=minutes), meta=chat.meta, **more)


def contents(found):
    return [line.message.content for line in found if isinstance(line, JournalEntry)]


def put(journal, name, *lines):
    """Write a file as another program would: each line an object, or bytes as they are."""
    path = journal.logs.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
    return path


def line(number, **changes):
    record = {"id": f"msg_{number:03}", "ts": "2026-02-24T12:00:00Z", "role": "user", "content": f"text {number}"}
    return {name: value for name, value in {**record, **changes}.items() if value is not ...}


# -- writing


def test_each_chat_and_day_has_its_file(journal):
    journal.append(said("one"))
    journal.append(said("two", 60 * 12))
    journal.append(Message("system", "done", NOON, meta={"source": "scheduler", "task_name": "daily report"}))
    elsewhere = timezone(timedelta(hours=-5))
    journal.append(Message("user", "three", datetime(2026, 2, 24, 20, tzinfo=elsewhere), meta=ANNA.meta))
    files = sorted(str(path.relative_to(journal.logs.root)) for path in journal.logs.root.rglob("*.jsonl"))
    assert files == [
        "scheduler_daily%20report/2026-02-24.jsonl",
        "telegram_123456/2026-02-24.jsonl",
        "telegram_123456/2026-02-25.jsonl",
    ]
    assert contents(journal.read(ANNA)) == ["one", "two", "three"]
    assert journal.chats() == (Chat("scheduler", "daily report"), ANNA)
    assert [file.day for file in journal.files(ANNA).files] == [date(2026, 2, 24), date(2026, 2, 25)]
    assert (journal.logs.root / files[1]).stat().st_mode & 0o777 == 0o600
    assert (journal.logs.root / files[1]).parent.stat().st_mode & 0o777 == 0o700


def test_appending_changes_no_line_that_is_there(journal):
    journal.append(said("one"))
    (path,) = journal.logs.root.rglob("*.jsonl")
    before = path.read_bytes()
    journal.append(said("two"))
    assert path.read_bytes().startswith(before)


def test_an_existing_id_is_kept_and_a_new_id_is_derived_from_the_place(journal):
    given_id = journal.append(said("one", id="msg_001"))
    made = journal.append_many([said("two"), said("two"), said("two", chat=Chat("telegram", "7"))])
    assert given_id.id == "msg_001"
    assert len({message.id for message in made}) == 3
    place, _, digest = made[0].id.rpartition("-")
    assert place == f"telegram_123456-20260224T120000000Z-{len(given_line(journal))}"
    assert digest == sha256(b"two").hexdigest()[:16]
    assert [entry.message for entry in journal.read(ANNA)] == [given_id, *made[:2]]


def test_a_message_that_is_moved_does_not_give_its_id_to_another_message(journal):
    """Two messages of one moment: the first goes, the second moves up, and a third comes to where the second was."""
    _, one, two = journal.append_many([said("begin"), said("first"), said("other")])
    journal.remove(ANNA, [one.id])
    three = journal.append(said("third"))
    assert three.id.rpartition("-")[0] == two.id.rpartition("-")[0], "the case that this is about"
    assert three.id != two.id
    assert not any(entry.duplicate for entry in journal.read(ANNA))


def given_line(journal):
    return (journal.logs.root / "telegram_123456" / "2026-02-24.jsonl").read_bytes().split(b"\n")[0] + b"\n"


def test_two_runs_give_the_same_bytes(tmp_path):
    written = []
    for name in "ab":
        Journal(tmp_path / name).append_many(said(f"text {n}", n * 300) for n in range(10))
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.jsonl")})
    assert written[0] == written[1]
    assert len(written[0]) == 3


def test_a_batch_is_returned_in_its_order_across_files(journal):
    batch = [said("a", 0), said("b", 60 * 13), said("c", 1), said("d", 2, chat=Chat("t", "2"))]
    assert [message.content for message in journal.append_many(batch)] == ["a", "b", "c", "d"]
    assert contents(journal.read(ANNA)) == ["a", "c", "b"]
    assert journal.append_many([]) == ()


@pytest.mark.parametrize("bad", [{"meta": {}}, {"content": "x" * MAX_LINE_BYTES}, {"content": "\ud83d"}])
def test_a_batch_with_a_message_that_cannot_be_written_writes_nothing(journal, bad):
    wrong = Message(**{"role": "user", "content": "", "ts": NOON, "meta": ANNA.meta, **bad})
    with pytest.raises(RecordError):
        journal.append_many([said("one"), wrong])
    assert list(journal.read(ANNA)) == []


# -- reading


def test_a_torn_last_line_is_tolerated_and_ended_by_the_next_append(journal):
    path = put(journal, "telegram_123456/2026-02-24.jsonl", line(1), b'{"id":"msg_002","ts":"2026-')
    *_, torn = journal.read(ANNA)
    assert torn.torn
    journal.append(said("after"))
    found = list(journal.read(ANNA))
    assert contents(found) == ["text 1", "after"]
    assert [(bad.location, bad.offset) for bad in found if isinstance(bad, BadLine)] == [(str(path), torn.offset)]


def test_every_good_message_is_kept_in_order_and_every_bad_one_counted(journal):
    hostile = [
        line(1),
        b"garbage \xff\n",
        line(2, ts="2026-02-24T11:00:00Z"),  # the clock went back
        line(3, role="robot"),
        line(4, content="a\0b"),
        b'{"id":"x","ts":"2026-02-24T12:00:00Z","role":"user","content":"\\ud83d"}\n',
        b'{"id":"x","ts":"2026-02-24T12:00:00Z","role":"user","content":"","meta":{"n":NaN}}\n',
        b'{"id":"x","content":' + b"[" * 5000 + b"\n",
        b'{"id":"x","content":"' + b"y" * (2 * MAX_LINE_BYTES) + b'"}\n',
        line(1, content="again"),
        b"[]\n",
        line(5),
        b'{"id":"torn',
    ]
    path = put(journal, "telegram_123456/2026-02-24.jsonl", *hostile)
    found = list(journal.read(ANNA))
    assert contents(found) == ["text 1", "text 2", "a\0b", "again", "text 5"]
    assert [entry.duplicate for entry in found if isinstance(entry, JournalEntry)] == [False] * 5
    assert [entry.is_renamed for entry in found if isinstance(entry, JournalEntry)] == [
        False,
        False,
        False,
        True,
        False,
    ]
    bad = [item for item in found if isinstance(item, BadLine)]
    assert len(bad) == 8
    assert len({item.offset for item in bad}) == 8
    data = path.read_bytes()
    assert all(
        item.location == str(path) and (item.offset == 0 or data[item.offset - 1 : item.offset] == b"\n")
        for item in bad
    )
    assert [item.torn for item in bad] == [False] * 7 + [True]
    assert bad[1].reason == "unknown role 'robot'; known: user, assistant, system, tool"


def test_an_id_is_a_duplicate_within_its_chat_over_all_days(journal):
    put(journal, "telegram_123456/2026-02-24.jsonl", line(1))
    put(journal, "telegram_123456/2026-02-25.jsonl", line(1))
    put(journal, "telegram_7/2026-02-25.jsonl", line(1))
    assert [entry.duplicate for entry in journal.read(ANNA)] == [False, True]
    assert [entry.duplicate for entry in journal.read(Chat("telegram", "7"))] == [False]


def test_a_period_begins_with_since_and_ends_before_until(journal):
    journal.append_many(said(str(n), n * 60) for n in range(30))
    hours = [timedelta(hours=n) for n in range(31)]
    for since, until in [(0, 30), (3, 4), (11, 14), (12, 12), (12, 24), (29, 30), (30, 30)]:
        found = contents(journal.read(ANNA, NOON + hours[since], NOON + hours[until]))
        assert found == [str(n) for n in range(since, until)]
    assert contents(journal.read(ANNA, since=NOON + hours[28])) == ["28", "29"]
    assert contents(journal.read(ANNA, until=NOON + hours[1])) == ["0"]
    with pytest.raises(RecordError):
        list(journal.read(ANNA, since=datetime(2026, 2, 24)))  # noqa: DTZ001


def test_reading_a_file_continues_where_it_stopped(journal):
    journal.append_many([said("one"), said("two")])
    (file,) = journal.files(ANNA).files
    first, second = journal.read_file(file)
    assert first.end == second.offset
    assert list(journal.read_file(file, first.end)) == [second]
    journal.append(said("three"))
    assert contents(journal.read_file(file, second.end)) == ["three"]


def test_the_tail_crosses_days(journal):
    journal.append_many(said(str(n), n * 60) for n in range(30))
    put(journal, "telegram_123456/2026-02-26.jsonl", b"bad\n", line(30), b"torn")
    assert contents(journal.tail(ANNA, 20)) == [*map(str, range(11, 30)), "text 30"]
    assert [type(item).__name__ for item in journal.tail(ANNA, 2)] == [
        "JournalEntry",
        "BadLine",
        "JournalEntry",
        "BadLine",
    ]
    assert journal.tail(ANNA, 0) == journal.tail(Chat("no", "body"), 5) == ()


def test_the_window_is_the_end_of_the_current_segment(journal):
    journal.append_many(said(str(n), n) for n in range(5))
    assert [message.content for message in journal.window(ANNA, 3)] == ["2", "3", "4"]
    mark = journal.session_break(ANNA, NOON + timedelta(minutes=6))
    assert (mark.role, mark.type, mark.content) == ("system", SESSION_BREAK, "")
    assert journal.window(ANNA) == ()
    journal.append_many(said(str(n), n * 200) for n in range(7, 10))
    assert [message.content for message in journal.window(ANNA)] == ["7", "8", "9"]
    assert [message.content for message in journal.window(ANNA, 2)] == ["8", "9"]
    assert journal.window(ANNA, 0) == journal.window(Chat("no", "body")) == ()
    assert [entry.message.type for entry in journal.read(ANNA)].count(SESSION_BREAK) == 1


def test_a_session_break_is_now_by_default(journal):
    mark = journal.session_break(ANNA)
    assert abs(mark.ts - datetime.now(UTC)) < timedelta(minutes=5)


def test_other_files_are_skipped_and_named(journal):
    journal.append(said("one"))
    chat = journal.logs.root / "telegram_123456"
    (chat / "2026-02-25.jsonl").mkdir()
    os.mkfifo(chat / "2026-02-26.jsonl")
    (chat / "2026-02-27.jsonl").symlink_to("2026-02-27.jsonl")
    (chat / "2026-02-30.jsonl").write_text("{}\n")
    (chat / "20260228.jsonl").write_text("{}\n")
    (chat / "notes.txt").write_text("not a log")
    (chat / ".hidden.jsonl").write_text("{}\n")
    (journal.logs.root / "stray.jsonl").write_text("{}\n")
    (journal.logs.root / "README.md").write_text("not a log")
    (journal.logs.root / "nochat").mkdir()
    (journal.logs.root / "telegram_a b").mkdir()
    os.mkfifo(journal.logs.root / "pipe_1")
    (journal.logs.root / os.fsdecode(b"t_\xff")).mkdir()
    listing = journal.files()
    assert [(file.chat, file.day) for file in listing.files] == [(ANNA, date(2026, 2, 24))]
    skipped = {item.path.rpartition("/")[2]: item.reason for item in listing.skipped}
    assert skipped == {
        "2026-02-25.jsonl": "is not a regular file",
        "2026-02-26.jsonl": "is not a regular file",
        "2026-02-27.jsonl": "is not a regular file",
        "2026-02-30.jsonl": "is not named YYYY-MM-DD.jsonl",
        "20260228.jsonl": "is not named YYYY-MM-DD.jsonl",
        "stray.jsonl": "is not a chat directory",
        "nochat": "is not named like a chat: 'nochat' is not a chat name",
        "telegram_a b": "should be named telegram_a%20b",
        "pipe_1": "is not a chat directory",
        r"t_\xff": skipped[r"t_\xff"],
    }
    assert journal.chats() == (ANNA,)
    assert contents(journal.read(ANNA)) == contents(journal.tail(ANNA, 9)) == ["one"]


def test_a_journal_without_a_directory_is_empty(journal):
    assert journal.chats() == ()
    assert journal.files() == journal.files(ANNA)
    assert list(journal.read(ANNA)) == []


def test_a_root_that_is_a_file_is_named(journal):
    journal.logs.root.write_text("")
    assert [item.path for item in journal.files().skipped] == [str(journal.logs.root)]
    with pytest.raises(Exception, match="cannot be"):
        journal.append(said("one"))


def test_threads_write_to_one_chat_and_lose_nothing(journal):
    def talk(name):
        for n in range(40):
            journal.append(said(f"{name} {n}"))

    threads = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(journal.read(ANNA))
    assert sorted(contents(found)) == sorted(f"{name} {n}" for name in "abcd" for n in range(40))
    assert not any(entry.duplicate for entry in found), "the ids that were given are distinct"


# -- crashes


def talk(directory, acknowledge):
    journal = Journal(directory / "data" / "conversations")
    journal.append(said("0"))
    acknowledge("0")
    journal.append_many([said("1", 1), said("2", 2)])
    acknowledge("1")
    acknowledge("2")
    journal.append(said("3", 60 * 13))
    acknowledge("3")


def check_crash(crash):
    journal = Journal(crash.directory / "data" / "conversations")
    found = list(journal.read(ANNA))
    assert contents(found)[: len(crash.acknowledged)] == list(crash.acknowledged), crash.point
    assert contents(found) == [str(n) for n in range(len(contents(found)))], crash.point
    assert all(item.torn for item in found if isinstance(item, BadLine)), crash.point
    journal.append(said("next", 60 * 14))
    assert contents(journal.read(ANNA))[-1] == "next", crash.point
    assert journal.files().skipped == ()


def test_killed_at_every_point_while_talking(tmp_path, cases):
    every = cases.every(7)
    crashes = list(kill_everywhere(talk, tmp_path, every=every))
    cases.add(len(crashes))
    for crash in crashes:
        check_crash(crash)
    assert len(crashes) > 40 // every


def test_the_power_cut_at_every_point_while_talking(tmp_path):
    (tmp_path / "live").mkdir()
    crashes = list(cut_power_everywhere(talk, tmp_path / "live", tmp_path / "copies"))
    for crash in crashes:
        check_crash(crash)
    assert crashes[-1].acknowledged == ("0", "1", "2", "3")
