"""The journal of saved memories: what was saved survives, what was forgotten is gone to the last byte."""

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klaw_core import StoreReadOnlyError
from klaw_core.errors import RecordError
from klaw_journals import record_journal
from klaw_journals.contents import BrokenRecord
from klaw_journals.record_journal import FileJournal
from klaw_memories.saved import Saved, is_same
from klaw_testing.crash import cut_power_everywhere, kill_everywhere

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)


#: Ids that are, or look like, the paths of something else.
FOREIGN_IDS = (
    *("x", "notes/", "notes/a.md", "../../etc/passwd", "conversations/t_c/2026-02-24.jsonl", "saved/", "saved/x"),
    *("saved/2026-02-24/", "saved/2026-02-24/0123", "saved/2026-02-24/0123456789AB", "saved/2026-13-24/0123456789ab"),
    *("saved/2026-02-24/../0123456789ab", "saved/2026-02-24/0123456789ab\n", "saved/2026-02-24/0123456789ab/"),
    *("saved/٢٠٢٦-02-24/0123456789ab", "documents/a"),
)


def saved(text, day="2026-02-24", **more):
    name = f"saved/{day}/{sha256(text.encode()).hexdigest()[:12]}"
    return Saved(**{"id": name, "text": text, "source": "manual", "created_at": NOON, **more})


@attrs.frozen
class SavedMemories:
    """The content of the journal."""

    memories: tuple[Saved, ...]
    broken: tuple[BrokenRecord, ...]
    unfinished: tuple[str, ...]


@attrs.frozen
class SavedJournal:
    """The journal of saved memories, with values instead of records."""

    records: FileJournal

    @classmethod
    def at(cls, path):
        return cls(FileJournal(path, Saved.parse))

    def append(self, *memories):
        self.records.append([memory.record() for memory in memories])

    def add(self, *memories):
        return self.records.add([memory.record() for memory in memories], is_same)

    def read(self):
        found = self.records.replay()
        memories = tuple(Saved.parse(record) for record in found.records.values())
        return SavedMemories(memories, found.broken, found.unfinished)

    def forget(self, *ids):
        return self.records.forget(ids)

    def finish(self):
        self.records.finish()


@pytest.fixture
def journal(tmp_path):
    return SavedJournal.at(tmp_path / "data" / "saved.jsonl")


def texts(journal):
    return [memory.text for memory in journal.read().memories]


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_saved_texts_are_read_in_order(journal):
    memories = [saved("Привет, мир\n\0😀"), saved("two", chat_id="telegram_1"), saved("three", source="MEMORY.md")]
    for memory in memories:
        journal.append(memory)
    assert journal.read().memories == tuple(memories)
    assert journal.read().broken == journal.read().unfinished == ()
    assert journal.records.path.stat().st_mode & 0o777 == 0o600
    assert journal.records.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_new_journal_is_empty(journal):
    assert journal.read().memories == ()
    journal.finish()
    assert journal.forget("saved/2026-02-24/000000000000") == 0
    assert not journal.records.path.exists()


def test_a_record_with_a_known_id_replaces_the_old_one_in_its_position(journal):
    for memory in (saved("one"), saved("two"), saved("one", source="chat")):
        journal.append(memory)
    assert journal.read().memories == (saved("one", source="chat"), saved("two"))


def test_a_different_text_with_a_known_id_is_not_added(journal):
    one, other = saved("one"), saved("other", id=saved("one").id)
    assert journal.add(one) == frozenset()
    assert journal.add(other) == {one.id}
    assert journal.add(saved("two"), other, saved("three")) == {one.id}
    assert journal.add(saved("new", id="saved/2026-02-24/0000000000ff"), saved("x", id="saved/2026-02-24/0000000000ff"))
    assert texts(journal) == ["one", "two", "three", "new"]


def test_the_same_text_is_added_again_in_its_position(journal):
    later = attrs.evolve(saved("one"), created_at=NOON + timedelta(hours=1))
    assert journal.add(saved("one"), saved("two")) == journal.add(later) == frozenset()
    assert journal.read().memories == (later, saved("two"))


@pytest.mark.promise("D44")
def test_a_forgotten_text_is_in_no_byte_of_any_file(journal):
    for text in ("keep one", "my password is hunter2", "keep two", "my password is hunter2"):
        journal.append(saved(text))
    assert journal.forget(saved("my password is hunter2").id) == 1
    assert texts(journal) == ["keep one", "keep two"]
    for data in files(journal.records.path.parent).values():
        assert b"hunter2" not in data
        assert saved("my password is hunter2").id[-12:].encode() not in data, "its hash would let one guess"
    assert list(files(journal.records.path.parent)) == ["saved.jsonl"]
    assert journal.records.path.stat().st_mode & 0o777 == 0o600


def test_other_lines_are_kept_byte_for_byte(journal):
    journal.append(saved("one"))
    other = b'{"id": "saved/2026-02-24/00000000000f", "text": "by hand", "created_at":"2026-02-24T12:00:00Z", '
    other += b'"source":"manual", "more": 1}\r\n\n'
    with journal.records.path.open("ab") as file:
        file.write(other + b"broken by hand\n" + b"z" * (9 << 20) + b"\n")
    before = journal.records.path.read_bytes()
    journal.append(saved("secret"))
    journal.append(saved("last"))
    after = journal.records.path.read_bytes()[len(before) :]
    journal.forget(saved("secret").id)
    assert journal.records.path.read_bytes() == before + after[after.index(b"\n") + 1 :]
    assert texts(journal) == ["one", "by hand", "last"]
    assert len(journal.read().broken) == 2


def test_forgetting_removes_torn_lines_with_the_text(journal):
    """A save that a crash tore was never acknowledged; the text in it goes with the memory all the same."""
    secret = saved("a secret that is long enough to be torn", day="2026-02-23")
    line = json.dumps(secret.record(), separators=(",", ":")).encode()
    journal.records.path.parent.mkdir()
    journal.records.path.write_bytes(line[: line.index(b"long")])
    again = saved(secret.text)
    journal.append(again)
    journal.append(saved("keep"))
    assert journal.forget(again.id) == 1
    assert b"a secret" not in journal.records.path.read_bytes()
    assert texts(journal) == ["keep"]


def test_a_text_of_only_a_torn_line_can_be_forgotten(journal):
    secret = saved("a secret that is long enough to be torn")
    journal.append(saved("keep"))
    with journal.records.path.open("ab") as file:
        file.write(json.dumps(secret.record(), separators=(",", ":")).encode()[:-10])
    assert journal.forget(secret.id) == 0
    assert b"a secret" not in journal.records.path.read_bytes()
    assert texts(journal) == ["keep"]


def test_an_unrelated_invalid_line_stays(journal):
    journal.append(saved("short", id="saved/2026-02-24/00000000000a"))
    with journal.records.path.open("ab") as file:
        file.write(b'{"id":"saved/2026-02-24/00000000000b", "text": broken}\n')
    assert journal.forget("saved/2026-02-24/00000000000a") == 1
    assert b"broken" in journal.records.path.read_bytes()


def test_a_forgotten_text_can_be_saved_again(journal):
    journal.append(saved("one"))
    journal.append(saved("two"))
    journal.forget(saved("one").id)
    journal.append(saved("one"))
    assert texts(journal) == ["two", "one"]


def test_several_texts_are_forgotten_at_once_and_unknown_ids_are_not_counted(journal):
    for n in range(5):
        journal.append(saved(str(n)))
    assert journal.forget(saved("1").id, saved("3").id, saved("9").id, saved("1").id) == 2
    assert texts(journal) == ["0", "2", "4"]
    data = journal.records.path.read_bytes()
    assert [n for n in range(5) if saved(str(n)).id.encode() in data] == [0, 2, 4]


@pytest.mark.promise("D10")
def test_an_interrupted_forgetting_is_completed(journal):
    for text in ("one", "secret", "two"):
        journal.append(saved(text))
    journal.records._lines.append({"forget": saved("secret").id})
    journal.append(saved("three"))
    assert texts(journal) == ["one", "two", "three"]
    assert journal.read().unfinished == (saved("secret").id,)
    journal.finish()
    assert texts(journal) == ["one", "two", "three"]
    assert journal.read().unfinished == ()
    assert b"secret" not in journal.records.path.read_bytes()


def test_a_forgotten_record_becomes_blank_and_the_others_keep_their_place(journal):
    for text in ("one", "secret", "two", "secret"):
        journal.append(saved(text))
    before = journal.records.path.read_bytes()
    journal.forget(saved("secret").id)
    after = journal.records.path.read_bytes()
    assert [(line if line.strip() else b"") for line in after.split(b"\n")[:4]] == [
        (b"" if b"secret" in line else line) for line in before.split(b"\n")[:4]
    ]
    assert len(after) > len(before)
    assert journal.read().broken == ()


def test_a_mostly_blank_file_is_rewritten(journal):
    journal.append(*(saved(f"{n} {'long ' * 200}") for n in range(200)))
    for n in range(199):
        journal.forget(saved(f"{n} {'long ' * 200}").id)
    assert texts(journal) == [f"199 {'long ' * 200}"]
    assert journal.records.path.stat().st_size < 1 << 17
    journal.forget(saved(f"199 {'long ' * 200}").id)
    assert texts(journal) == []


@pytest.mark.parametrize("share", [0, 1, 17, 60])
def test_a_half_blank_line_after_a_power_cut_is_void_and_completed(journal, share):
    for text in ("one", "secret and more", "two"):
        journal.append(saved(text))
    whole = journal.records.path.read_bytes()
    start = whole.index(b"\n") + 1
    end = whole.index(b"\n", start) + 1
    journal.forget(saved("secret and more").id)
    with journal.records.path.open("r+b") as file:
        line = file.read().rindex(b"1}\n")
        file.seek(line)
        file.write(b"0")
        file.seek(start)
        file.write(b" " * share + whole[start + share : end])
    journal.append(saved("three"))
    assert texts(journal) == ["one", "two", "three"]
    assert journal.read().broken == ()
    assert len(journal.read().unfinished) == 1
    journal.finish()
    assert texts(journal) == ["one", "two", "three"]
    assert b"more" not in journal.records.path.read_bytes()
    assert journal.read().unfinished == ()


def test_a_line_that_was_moved_by_hand_is_not_void(journal):
    for text in ("one", "two", "three"):
        journal.append(saved(text))
    journal.forget(saved("one").id)
    lines = journal.records.path.read_bytes().split(b"\n")
    journal.records.path.write_bytes(b"\n".join(lines[1:]).replace(b'"done":1', b'"done":0'))
    assert texts(journal) == ["two", "three"]
    journal.finish()
    assert texts(journal) == ["two", "three"]


@pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "日本", "x", "—", "line\u2028end", "\ud800"])
def test_a_record_with_any_id_can_be_forgotten(tmp_path, name):
    journal = FileJournal(tmp_path / "data" / "any.jsonl")
    with suppress(RecordError):
        journal.append([{"id": name, "text": "secret"}])
    journal.append([{"id": "another", "text": f"about {name!r}"}])
    journal.path.write_bytes(journal.path.read_bytes() + b'{ "text": "secret", "id": "another" }\n')
    assert journal.forget([name, "none"]) == (name != "\ud800")
    assert set(journal.ids()) == {"another"}
    assert journal.forget(["another"]) == 1
    assert b"secret" not in journal.path.read_bytes()


@given(
    st.lists(st.tuples(st.sampled_from(["append", "forget", "anew", "look", "other"]), st.integers(0, 5)), max_size=30)
)
def test_law_two_journal_objects_of_one_file_agree(steps):
    """What one forgets or appends, another who has looked before finds as one does who looks for the first time."""
    with TemporaryDirectory() as place:
        journals = [FileJournal(Path(place, "any.jsonl")) for _ in range(2)]
        own = 0
        for number, (step, which) in enumerate(steps):
            if step == "append":
                journals[own].append([{"id": f"id {which}", "text": f"text {number}"}])
            elif step == "forget":
                journals[own].forget([f"id {which}", f"id {which + 1}"])
            elif step == "anew":
                journals[own]._lines.append({"forget": f"id {which}"})
                journals[own].finish()
            elif step == "other":
                own = 1 - own
            else:
                records = FileJournal(Path(place, "any.jsonl")).replay().records
                assert sorted(journals[own].ids()) == sorted(records)
                assert dict(journals[own].get(list(records))) == dict(records)


def test_a_rewrite_that_was_interrupted_by_a_crash_is_removed(journal):
    journal.append(saved("secret"))
    journal.append(saved("keep"))
    leftover = journal.records.path.with_name(".klaw-saved.jsonl-rewrite")
    leftover.write_bytes(journal.records.path.read_bytes())
    journal.forget(saved("secret").id)
    assert list(files(journal.records.path.parent)) == ["saved.jsonl"]


def test_a_link_stays_one(journal, tmp_path):
    real = tmp_path / "elsewhere" / "memories.jsonl"
    real.parent.mkdir()
    journal.records.path.parent.mkdir()
    journal.records.path.symlink_to(real)
    journal.append(saved("one"))
    journal.append(saved("two"))
    journal.forget(saved("one").id)
    assert journal.records.path.is_symlink()
    assert texts(journal) == ["two"]
    assert list(files(real.parent)) == ["memories.jsonl"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "id is missing"),
        ({"id": 5}, "id is not a string"),
        ({"id": "saved/2026-02-24/00000000000a", "text": ""}, "text is empty"),
        ({"id": "saved/2026-02-24/00000000000a", "text": "b"}, "source is missing"),
        ({"id": "saved/2026-02-24/00000000000a", "text": "b", "source": "c"}, "expected an ISO 8601 string, got null"),
        (
            {"id": "saved/2026-02-24/00000000000a", "text": "b", "source": "c", "created_at": "now"},
            "the time 'now' is not ISO 8601",
        ),
        ({"id": "saved/2026-02-24/00000000000a", "text": "b", "source": "c", "chat_id": 1}, "chat_id is not a string"),
        ({"forget": 5}, "id is missing"),
        *(
            ({"id": name, "text": "b", "source": "c"}, f"{name!r} is not the id of a saved memory")
            for name in FOREIGN_IDS
            if name
        ),
    ],
)
def test_an_invalid_record_is_counted_with_its_place(journal, record, reason):
    journal.append(saved("one"))
    start = journal.records.path.stat().st_size
    (_line,) = journal.records._lines.append(record)
    journal.append(saved("two"))
    assert texts(journal) == ["one", "two"]
    assert journal.read().broken == (BrokenRecord(str(journal.records.path), start, reason),)


@given(
    text=st.text(min_size=1),
    source=st.text(),
    chat_id=st.none() | st.text(),
    created_at=st.none() | st.datetimes(timezones=st.timezones()) | st.datetimes(),
)
def test_any_valid_text_is_read_back(text, source, chat_id, created_at):
    try:
        made = Saved.make(text, source, chat_id, created_at)
    except RecordError:
        assume(False)
    assert Saved.parse(json.loads(json.dumps(made.record()))) == made


def test_a_memory_of_an_older_version_without_a_source_is_read():
    made = attrs.evolve(saved("one"), source="")
    assert Saved.parse(made.record()) == made


def test_an_invalid_text_is_rejected(journal):
    for wrong in ({"text": "\ud83d"}, {"created_at": datetime(2026, 2, 24)}):  # noqa: DTZ001
        with pytest.raises(RecordError):
            journal.append(saved("one") if not wrong else Saved(**{**as_fields(saved("one")), **wrong}))
    assert texts(journal) == []


def as_fields(memory):
    return {name: getattr(memory, name) for name in ("id", "text", "source", "created_at", "chat_id")}


@pytest.mark.parametrize("letter", ["я", "\0", "😀", '"'])
def test_the_longest_allowed_text_is_read_back(journal, letter):
    journal.append(saved(letter * 1_000_000))
    assert [len(text) for text in texts(journal)] == [1_000_000]


def test_a_directory_in_the_place_of_the_file_is_named(journal):
    journal.records.path.mkdir(parents=True)
    assert len(journal.read().broken) == 1
    for write in (lambda: journal.append(saved("one")), lambda: journal.forget("x")):
        with pytest.raises(StoreReadOnlyError):
            write()


def test_concurrent_saves_and_forgets_lose_nothing(journal):
    def work(name):
        for n in range(12):
            journal.append(saved(f"{name} {n}"))
            if n % 3 == 2:
                assert journal.forget(saved(f"{name} {n - 1}").id) == 1

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(f"{name} {n}" for name in "abcd" for n in range(12) if n % 3 != 1)
    assert sorted(texts(journal)) == expected
    assert journal.read().broken == ()


@given(
    st.lists(
        st.tuples(st.sampled_from(["save", "forget", "tombstone", "tear", "finish"]), st.integers(0, 4)), max_size=25
    )
)
def test_law_reading_the_journal_agrees_with_the_operations(tmp_path_factory, steps):
    journal = SavedJournal.at(tmp_path_factory.mktemp("saved") / "saved.jsonl")
    expected: dict[str, Saved] = {}
    for number, (step, which) in enumerate(steps):
        memory = saved(f"text {which}", source=f"step {number}")
        if step == "save":
            journal.append(memory)
            expected[memory.id] = memory
        elif step == "finish":
            journal.finish()
        elif step == "tear":
            with journal.records.path.open("ab") as file:
                file.write(b'{"torn":')
        else:
            known = expected.pop(memory.id, None) is not None
            if step == "forget":
                assert journal.forget(memory.id) == known
            else:
                journal.records._lines.append({"forget": memory.id})
    assert journal.read().memories == tuple(expected.values())
    journal.finish()
    assert journal.read().memories == tuple(expected.values())


# -- crashes


def save_and_forget(directory, acknowledge):
    journal = SavedJournal.at(directory / "data" / "saved.jsonl")
    for text in ("keep", "secret", "stay"):
        journal.append(saved(text))
        acknowledge(f"save {text}")
    journal.forget(saved("secret").id)
    acknowledge("forget secret")
    journal.append(saved("more"))
    acknowledge("save more")


def check_crash(crash):
    journal = SavedJournal.at(crash.directory / "data" / "saved.jsonl")
    kept = [word.split()[1] for word in crash.acknowledged if word.startswith("save")]
    forgotten = "forget secret" in crash.acknowledged
    if forgotten:  # the bytes are gone as soon as it was acknowledged, not only after the next opening
        assert all(b"secret" not in data for data in files(journal.records.path.parent).values()), crash.point
    found = texts(journal)
    assert found in histories(kept, forgotten=forgotten), (crash.point, found)
    assert all(bad.torn for bad in journal.read().broken), crash.point
    journal.finish()
    assert texts(journal) == found, crash.point
    if "secret" not in found and len(kept) >= 3:
        assert all(b"secret" not in data for data in files(journal.records.path.parent).values()), crash.point
    journal.append(saved("next"))
    journal.forget(saved("keep").id)
    assert [text for text in texts(journal) if text != "more"][-1] == "next"
    assert list(files(journal.records.path.parent)) == ["saved.jsonl"], crash.point


def histories(kept, *, forgotten):
    """Return what may be found: all that was acknowledged, and perhaps what was under way."""
    order = ["keep", "secret", "stay", "more"]
    under_way = [kept, order[: len(kept) + 1]] if forgotten or len(kept) < 3 else [kept]
    gone = [[text for text in texts if text != "secret"] for texts in under_way]
    if forgotten:
        return gone
    return [*under_way, *gone] if len(kept) == 3 else under_way


@pytest.fixture(params=["in place", "anew"])
def forgetting(request, monkeypatch):
    """How the journal is written as something is forgotten; return a call that only this way makes."""
    if request.param == "anew":
        monkeypatch.setattr(record_journal, "find_lines", lambda *_: None)
        return "(replace)"
    return "(write)"


def test_killed_at_every_point_of_saving_and_forgetting(tmp_path, cases, forgetting):
    every = cases.every(7)
    crashes = list(kill_everywhere(save_and_forget, tmp_path, every=every))
    cases.add(len(crashes))
    for crash in crashes:
        check_crash(crash)
    assert len(crashes) > 60 // every
    kinds = {crash.point.rpartition(" ")[2] for crash in crashes}
    assert kinds >= ({forgetting, "(write)"} if cases.whole else {"(write)"})


@pytest.mark.usefixtures("forgetting")
def test_the_power_cut_at_every_point_of_saving_and_forgetting(tmp_path):
    (tmp_path / "live").mkdir()
    crashes = list(cut_power_everywhere(save_and_forget, tmp_path / "live", tmp_path / "copies"))
    for crash in crashes:
        check_crash(crash)
    assert crashes[-1].acknowledged[-1] == "save more"
