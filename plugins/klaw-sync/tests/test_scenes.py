"""Exact sequences of steps that a random search rarely finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import StoreError
from klaw_journals import FileJournals, Traces
from klaw_memories import CoreMemory
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.desks import Desk
from klaw_sync.segments import read
from klaw_sync.values import KINDS

KEY = MemoryKey("00112233445566aa", bytes(range(32)))
TEXT = {"id": "memory/d", "text": "the text"}
MESSAGE = {"id": "m1", "ts": "2026-01-01T10:00:00.000Z", "content": "said"}
FACT = {"id": "f-1", "op": "assert", "text": "said", "ts": "2026-01-01T10:00:01.000Z"}
QUOTED = {**FACT, "quotes": [{"chat": "telegram_1", "message": "m1", "start": 0, "end": 4}]}


@pytest.fixture
def world(tmp_path):
    """Two machines and their folder."""
    both = [Sync(tmp_path / name, host=name) for name in ("one", "other")]
    for each in both:
        (each.root / "sync").mkdir(parents=True)
        KEY.save(each.root / "sync" / "key")
    return *both, Folder(tmp_path / "folder")


def documents(sync):
    return FileJournals(sync.root).records("documents")


def facts(sync):
    return FileJournals(sync.root).records("facts")


def core(sync):
    return CoreMemory(FileJournals(sync.root).text("core_memory"))


def log(sync):
    return FileJournals(sync.root).logs("conversations").log("telegram_1", "2026-01-01")


def texts(sync):
    return [record["text"] for record in documents(sync).replay().records.values()]


def holding(root, text):
    return [path for path in sorted(root.rglob("*")) if path.is_file() and text.encode() in path.read_bytes()]


def meet(one, other, folder):
    for each in (one, other, one, other):
        each.run([folder])


@pytest.mark.promise("Y18")
def test_what_is_saved_again_after_a_forgetting_stays(world):
    one, other, folder = world
    documents(one).append([TEXT])
    meet(*world)
    documents(one).forget(["memory/d"])
    documents(one).append([TEXT])
    meet(*world)
    assert texts(one) == texts(other) == ["the text"]
    assert one.run([folder]).sent == 0


@pytest.mark.promise("Y17")
def test_an_edit_that_had_not_seen_a_forgetting_goes(world):
    one, other, _ = world
    documents(one).append([TEXT])
    meet(*world)
    documents(one).forget(["memory/d"])
    documents(other).append([{**TEXT, "text": "the edited text"}])
    meet(*world)
    assert texts(one) == texts(other) == []


@pytest.mark.promise("Y14")
def test_a_clock_that_is_behind_does_not_lose_an_edit(world):
    one, other, _ = world
    documents(one).append([TEXT])
    meet(*world)
    documents(other).append([{**TEXT, "text": "the edited text"}])
    behind = Sync(other.root, host="other", now=lambda: one.now().replace(year=2001))
    meet(one, behind, world[2])
    assert texts(one) == texts(other) == ["the edited text"]


@pytest.mark.promise("Y14")
def test_a_change_by_a_clock_that_is_behind_comes_after_what_it_changes(world):
    one, other, _ = world
    facts(one).append([FACT])
    meet(*world)
    facts(other).append([{"id": "f-2", "op": "retract", "fact": "f-1", "ts": "2001-01-01T10:00:00.000Z"}])
    meet(*world)
    assert list(facts(one).ids()) == list(facts(other).ids()) == ["f-1", "f-2"]


@pytest.mark.promise("Y4")
@pytest.mark.parametrize("winner", ["one", "other"])
def test_of_two_writes_unseen_by_each_other_the_last_one_counts(tmp_path, winner):
    machines = []
    for name in ("one", "other"):
        moment = datetime(2026, 1, 1, 12 if name == winner else 11, tzinfo=UTC)
        machines.append(Sync(tmp_path / name, host=name, now=lambda moment=moment: moment))
        (machines[-1].root / "sync").mkdir(parents=True)
        KEY.save(machines[-1].root / "sync" / "key")
    folder = Folder(tmp_path / "folder")
    documents(machines[0]).append([TEXT])
    meet(*machines, folder)
    for each in machines:
        documents(each).append([{**TEXT, "text": f"written on {each.host}"}])
    meet(*machines, folder)
    loser = {"one": "other", "other": "one"}[winner]
    for each in machines:
        assert texts(each) == [f"written on {winner}"]
        assert [conflict.text for conflict in each.conflicts()] == [f"written on {loser}"]


@pytest.mark.promise("Y26")
def test_messages_are_in_no_readable_file(world):
    """Neither those of a machine that writes such files, nor, packed again by it, those of another one."""
    one, other, folder = world
    readable = Sync(other.root, host="other", plain=True)
    log(one).append(said(1, 10, "a"))
    log(other).append(said(2, 20, "b"))
    for each in (one, other):
        documents(each).append([{"id": f"memory/{each.host}", "text": f"by {each.host}"}])
    meet(one, readable, folder)
    documents(other).forget(["memory/one"])
    readable.run([folder])
    segments = [read(KEY, folder.get(name)) for name in folder.names()]
    found = {(one.kind, segment.is_plain) for segment in segments for one in segment.versions if one.body}
    assert found == {("documents", True), ("conversations", False)}
    assert {one.body["id"] for segment in segments for one in segment.versions if one.kind == "conversations"} == {"a1"}


def test_a_machine_that_writes_readable_files_tells_what_an_agent_deleted(world):
    one, other, folder = world
    readable = Sync(other.root, host="other", plain=True)
    core(one).update("user", "drink", "oolong")
    meet(one, readable, folder)
    core(other).delete("user", "drink", trust="agent")
    meet(one, readable, folder)
    assert core(one).get().user == core(other).get().user == {}


@pytest.mark.promise("Y16")
def test_a_folder_has_no_text_that_was_forgotten(world):
    one, other, folder = world
    documents(one).append([TEXT])
    documents(one).append([{"id": "memory/kept", "text": "kept"}])
    meet(*world)
    before = set(folder.names())
    documents(other).forget(["memory/d"])
    other.run([folder])
    segments = [read(KEY, folder.get(name)) for name in folder.names()]
    told = [version.body["text"] for segment in segments for version in segment.versions if version.body]
    assert told == ["kept"]
    assert before & set(folder.names()) == set()


def test_a_fact_goes_with_its_message_that_was_purged_before_both_were_sent(world):
    one, other, folder = world
    log(one).append({**MESSAGE, "id": "m0"})
    meet(*world)
    log(one).delete()
    one.run([folder])
    log(other).append(MESSAGE)
    facts(other).append([QUOTED])
    (other.root / "sync" / "state.db").unlink()
    meet(*world)
    assert not log(other).exists
    assert list(facts(other).ids()) == list(facts(one).ids()) == []


@pytest.mark.promise("Y7")
def test_a_summary_goes_with_a_message_that_it_covers(world):
    one, other, _ = world
    log(one).append(MESSAGE)
    meet(*world)
    summaries = [FileJournals(each.root).logs("summaries").log("telegram_1", "summaries") for each in world[:2]]
    summary = {"ts": "2026-01-02T10:00:00.000Z", "content": "said", "from_message_id": "m1", "to_message_id": "m1"}
    summaries[1].append(summary)
    log(one).remove(lambda _line: True)
    meet(*world)
    assert [one.exists for one in summaries] == [False, False]
    assert not log(other).exists


@pytest.mark.parametrize("covered", [{"to_message_id": "m2999"}, {"from_message_id": "m0"}])
def test_a_summary_of_thousands_of_messages_goes_with_each_of_them(world, tmp_path, covered):
    """The other machine knows nothing of the summary when it forgets."""
    one, other, folder = world
    log(one).append(*({**MESSAGE, "id": f"m{n}", "content": f"said {n} there"} for n in range(3_000)))
    meet(*world)
    summaries = [FileJournals(each.root).logs("summaries").log("telegram_1", "summaries") for each in world[:2]]
    summary = {"ts": "2026-01-02T10:00:00.000Z", "content": "it was said 2900 times", **covered}
    summaries[1].append(summary)
    log(one).remove(lambda line: line.value["id"] == "m2900")
    meet(*world)
    assert [one.exists for one in summaries] == [False, False]
    assert holding(tmp_path, "said 2900") == []
    assert other.run([folder]).problems == ()


def test_a_fact_goes_with_the_message_that_it_quotes_though_others_have_the_same_id(world, tmp_path):
    one, other, _ = world
    named = {word: {**MESSAGE, "content": f"{word} said"} for word in ("first", "second", "third")}
    log(one).append(*named.values())
    meet(*world)
    quote = {"chat": "telegram_1", "message": "m1", "start": 0, "end": len("second said")}
    facts(other).append([{**FACT, "text": "second said", "quotes": [quote]}])
    facts(other).append([{**FACT, "id": "f-2", "text": "in other words", "quotes": [quote]}])
    third = {**quote, "message": f"m1~{'0' * 32}", "end": len("third said")}
    facts(other).append([{**FACT, "id": "f-3", "text": "third said", "quotes": [third]}])
    log(one).remove(lambda line: line.value == named["second"])
    meet(*world)
    assert [[*facts(each).ids()] for each in (one, other)] == [["f-3"]] * 2
    assert holding(tmp_path, "second said") == holding(tmp_path, "in other words") == []


def test_a_summary_goes_with_the_last_message_of_an_id(world):
    one, other, _ = world
    log(one).append(MESSAGE, {**MESSAGE, "content": "said again"})
    meet(*world)
    summaries = [FileJournals(each.root).logs("summaries").log("telegram_1", "summaries") for each in (one, other)]
    summary = {"ts": "2026-01-02T10:00:00.000Z", "content": "said", "from_message_id": "m1", "to_message_id": "m1"}
    summaries[1].append(summary)
    log(one).remove(lambda line: line.value["content"] == "said again")
    meet(*world)
    assert [one.exists for one in summaries] == [False, False]


def test_a_summary_of_what_was_said_before_and_after_a_purge_that_is_late(world, tmp_path):
    """The later message had seen the purge, the earlier one had not: together they had not."""
    one, other, folder = world
    third = Sync(tmp_path / "third", host="third")
    (third.root / "sync").mkdir(parents=True)
    KEY.save(third.root / "sync" / "key")
    log(one).append(MESSAGE)
    for each in (one, other, third):
        each.run([folder])
    log(one).delete()
    before = set(folder.names())
    one.run([folder])
    purge = set(folder.names()) - before  # the files that are late on the other machine
    third.run([folder])
    log(third).append({**MESSAGE, "id": "m2", "ts": "2026-01-01T11:00:00.000Z", "content": "later"})
    third.run([folder])
    late = Folder(tmp_path / "late")
    for name in folder.names():
        if name not in purge:
            late.put(name, folder.get(name))
    late.put("klaw-memory.json", folder.get("klaw-memory.json"))
    other.run([late])
    assert [line.value["id"] for line in log(other).read()] == ["m1", "m2"]
    summary = {"ts": "2026-01-02T10:00:00.000Z", "content": "told", "from_message_id": "m1", "to_message_id": "m2"}
    FileJournals(other.root).logs("summaries").log("telegram_1", "summaries").append(summary)
    other.run([late])
    for name in purge:
        late.put(name, folder.get(name))
    other.run([late])
    assert [line.value["id"] for line in log(other).read()] == ["m2"]
    assert holding(other.root, "told") == []


@pytest.mark.parametrize("event", ["", "lost state", "other text forgotten"])
def test_a_text_that_got_another_id_is_forgotten_with_its_first_one(world, tmp_path, event):
    """The third machine only has the first text, under the id that both texts were saved under."""
    one, other, folder = world
    third, second = Sync(tmp_path / "third", host="third"), Folder(tmp_path / "second")
    (third.root / "sync").mkdir(parents=True)
    KEY.save(third.root / "sync" / "key")
    saved = [FileJournals(each.root).records("saved") for each in (one, other, third)]
    record = {"id": "saved/2026-01-01/0123456789ab", "created_at": "2026-01-01T10:00:00.000Z", "source": "t"}
    for journal, text in zip(saved, ("alpha", "beta"), strict=False):
        journal.append([{**record, "text": f"{text} text"}])
    one.run([folder, second])
    third.run([second])
    meet(*world)
    assert {body["text"] for body in saved[0].replay().records.values() if body["id"] == record["id"]} == {"beta text"}
    if event == "lost state":
        (one.root / "sync" / "state.db").unlink()
    elif event == "other text forgotten":
        saved[0].forget([record["id"]])
    meet(*world)
    assert holding(other.root, "alpha text") != []
    saved[2].forget([record["id"]])
    for each in (third, one, other, third, one):
        each.run([folder, second])
    assert holding(tmp_path, "alpha text") == []


def test_a_text_that_got_another_id_stays_when_the_other_one_is_forgotten(world, tmp_path):
    one, other, _ = world
    saved = [FileJournals(each.root).records("saved") for each in (one, other)]
    record = {"id": "saved/2026-01-01/0123456789ab", "created_at": "2026-01-01T10:00:00.000Z", "source": "t"}
    for journal, text in zip(saved, ("alpha", "beta"), strict=True):
        journal.append([{**record, "text": f"{text} text"}])
    meet(*world)
    saved[1].forget([record["id"]])
    meet(*world)
    assert [[body["text"] for body in each.replay().records.values()] for each in saved] == [["alpha text"]] * 2
    assert holding(tmp_path, "beta text") == []


def test_a_deletion_and_a_concurrent_change_are_a_conflict(world):
    one, other, _ = world
    core = KINDS["core_memory"]
    Desk(one.root, core).settle(lambda _held: [{"section": "user", "key": "k", "value": "first"}])
    meet(*world)
    Desk(one.root, core).settle(lambda _held: [])
    Desk(other.root, core).settle(lambda _held: [{"section": "user", "key": "k", "value": "second"}])
    meet(*world)
    assert [(each.kind, each.id) for each in one.conflicts()] == [("core_memory", "user.k")]
    assert [each.text for each in one.conflicts()] == [each.text for each in other.conflicts()]


@pytest.mark.promise("Y34")
def test_a_clone_gets_an_id_of_its_own(world, tmp_path):
    import shutil

    one, other, folder = world
    documents(one).append([TEXT])
    one.run([folder])
    shutil.copytree(one.root, tmp_path / "clone")
    clone = Sync(tmp_path / "clone", host="clone")
    documents(one).append([{"id": "memory/one", "text": "of one"}])
    documents(clone).append([{"id": "memory/clone", "text": "of the clone"}])
    for each in (one, clone, other, one, clone):
        each.run([folder])
    assert sorted(texts(one)) == sorted(texts(clone)) == sorted(texts(other)) == ["of one", "of the clone", "the text"]
    assert len({machine.id for machine in (*one.machines(), *clone.machines())}) == 2


def test_a_second_folder_gets_what_the_first_one_told(world, tmp_path):
    one, other, folder = world
    third, second = Sync(tmp_path / "third", host="third"), Folder(tmp_path / "second")
    (third.root / "sync").mkdir(parents=True)
    KEY.save(third.root / "sync" / "key")
    documents(third).append([TEXT])
    third.run([second])
    one.run([folder, second])
    other.run([folder])
    assert texts(other) == ["the text"]


@pytest.mark.parametrize("step", ["stamped", "pushed", "looked"])
def test_what_is_forgotten_in_the_middle_of_a_run_stays_forgotten(world, tmp_path, step):
    one, other, _ = world
    core = CoreMemory(FileJournals(one.root).text("core_memory"))
    documents(one).append([TEXT, {"id": "memory/e", "text": "another"}])
    log(one).append(MESSAGE, {**MESSAGE, "id": "m2", "content": "later"})
    core.update("user", "drink", "oolong")
    meet(*world)
    documents(other).append([{"id": "memory/f", "text": "a third"}])
    log(other).append({**MESSAGE, "id": "m3", "ts": "2026-01-01T11:00:00.000Z", "content": "at last"})
    other.run([world[2]])

    def forget(name):
        if name == step:
            one.step = lambda _name: None
            documents(one).forget(["memory/d"])
            log(one).remove(lambda line: line.value["id"] == "m1")
            core.delete("user", "drink")

    one.step = forget
    one.run([world[2]])
    assert texts(one) == ["another", "a third"]
    meet(*world)
    assert texts(one) == texts(other) == ["another", "a third"]
    assert [line.value["id"] for line in log(other).read()] == ["m2", "m3"]
    assert [holding(tmp_path, text) for text in ("the text", '"said"', "oolong")] == [[], [], []]


def said(number, minute, writer):
    return {"id": f"{writer}{number}", "ts": f"2026-01-01T10:{minute:02}:00.000Z", "content": f"{writer} says {number}"}


@pytest.mark.promise("Y6")
def test_two_machines_write_into_one_chat(world):
    """Each keeps its own order, whatever its clock does; what comes between what is decided by the times."""
    one, other, folder = world
    log(one).append(said(1, 10, "a"), said(2, 5, "a"), said(3, 30, "a"))  # the clock of the first went back
    log(other).append(said(1, 8, "b"), said(2, 20, "b"))
    meet(*world)
    log(one).append(said(4, 40, "a"))
    log(other).append(said(3, 35, "b"))
    meet(*world)
    shown = [line.value["id"] for line in log(one).read()]
    assert shown == ["b1", "a1", "a2", "b2", "a3", "b3", "a4"]
    assert log(one).path.read_bytes() == log(other).path.read_bytes()
    names = folder.names()
    meet(*world)
    assert folder.names() == names


@pytest.mark.promise("Y3")
def test_a_text_that_two_machines_have_saved_is_one(world):
    one, other, _ = world
    text = {"text": "the kiln", "source": "", "chat_id": ""}
    for each, moment in ((one, "2026-01-01T10:00:00.000Z"), (other, "2026-01-02T10:00:00.000Z")):
        FileJournals(each.root).records("saved").append([{"id": "saved/kiln", "created_at": moment, **text}])
    meet(*world)
    saved = [list(FileJournals(each.root).records("saved").replay().records.values()) for each in (one, other)]
    assert saved == [[{"id": "saved/kiln", "created_at": "2026-01-01T10:00:00.000Z", **text}]] * 2


@pytest.mark.promise("Y8")
def test_a_machine_knows_which_messages_another_one_reads_for_facts(world):
    one, other, _ = world
    log(one).append(said(1, 10, "a"))
    log(other).append(said(2, 20, "b"))
    meet(*world)
    for each, foreign in ((one, ["b2"]), (other, ["a1"])):
        is_foreign = each.traces.arrived()
        values = [line.value for line in log(each).read()]
        assert [value["id"] for value in values if is_foreign("conversations", "telegram_1", value)] == foreign


def test_core_memory_has_one_order_on_all_machines(world):
    one, other, _folder = world
    for sync, keys in ((one, ("name", "city", "zoo")), (other, ("drink", "zebra"))):
        for key in keys:
            core(sync).update("user", key, key)
            core(sync).update("agent", key, key)
    meet(*world)
    core(other).update("user", "apples", "red")
    meet(*world)
    meet(*world)
    files = [(sync.root / "core_memory.json").read_text() for sync in (one, other)]
    assert files[0] == files[1]
    assert list(core(one).get().user) == ["apples", "city", "drink", "name", "zebra", "zoo"]


@pytest.mark.promise("Y30")
@pytest.mark.parametrize("how", ["deleted", "damaged"])
def test_the_state_is_made_again_after_it_was_lost(world, how):
    one, other, folder = world
    documents(one).append([TEXT])
    core(one).update("user", "name", "Ada")
    documents(other).append([{"id": "memory/gone", "text": "gone"}])
    meet(*world)
    documents(other).forget(["memory/gone"])
    state = one.root / "sync" / "state.db"
    if how == "damaged":
        state.write_bytes(b"not a database")
        with pytest.raises(StoreError, match="delete it: the next `klaw sync` makes it again"):
            one.run([folder])
    state.unlink()
    core(other).update("user", "name", "Bob")
    meet(other, one, folder)
    assert texts(one) == texts(other) == ["the text"]
    assert core(one).get().user == core(other).get().user == {"name": "Bob"}


@pytest.mark.promise("Y24")
def test_only_its_owner_can_read_the_key_which_is_in_no_file_of_the_folder(world):
    one, _, folder = world
    documents(one).append([TEXT])
    meet(*world)
    key = one.root / "sync" / "key"
    assert key.stat().st_mode & 0o077 == 0
    written = [path.read_bytes() for path in sorted(folder.root.rglob("*")) if path.is_file()]
    assert written
    secret = [KEY.key, KEY.key.hex().encode(), KEY.code.encode()]
    assert [data for data in written for form in secret if form in data] == []


def test_a_laptop_that_was_off_for_a_month(tmp_path):
    """Its writes get the place that their times have; what was forgotten and packed meanwhile is gone there, too."""
    now = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    folder = Folder(tmp_path / "folder")
    desk, phone, laptop = (Sync(tmp_path / name, host=name, now=lambda: now[0]) for name in ("desk", "phone", "laptop"))
    for each in (desk, phone, laptop):
        (each.root / "sync").mkdir(parents=True)
        KEY.save(each.root / "sync" / "key")
    documents(desk).append([{"id": f"memory/{name}", "text": f"text {name}"} for name in ("gone", "edited", "kept")])
    log(desk).append(said(1, 10, "a"), said(2, 30, "a"))
    for each in (desk, phone, laptop):
        each.run([folder])
    log(laptop).append(said(1, 20, "b"))
    documents(laptop).append([{"id": "memory/edited", "text": "on the train"}, {"id": "memory/new", "text": "new"}])
    for day in range(30):
        now[0] += timedelta(days=1)
        documents(desk).append([{"id": "memory/daily", "text": f"text of day {day}"}])
        if day == 10:
            documents(phone).forget(["memory/gone"])
            log(phone).remove(lambda line: line.value["id"] == "a1")
        for each in (desk, phone):
            assert each.run([folder]).problems == ()
    for _ in range(2):
        for each in (laptop, desk, phone):
            report = each.run([folder])
            assert (report.problems, report.waiting) == ((), ())
    wanted = ["new", "on the train", "text kept", "text of day 29"]
    assert [sorted(texts(each)) for each in (desk, phone, laptop)] == [wanted] * 3
    assert [line.value["id"] for line in log(laptop).read()] == ["b1", "a2"]
    assert log(laptop).path.read_bytes() == log(desk).path.read_bytes() == log(phone).path.read_bytes()
    files = [path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert files
    assert [data for data in files if b"text gone" in data or b"a says 1" in data] == []
    assert len(folder.names()) < 40  # the days were packed


def test_two_agents_save_while_both_machines_synchronise(world):
    """What is written in the middle of a run, on both, is neither lost nor doubled."""
    one, other, _ = world
    left = {one.host: 6, other.host: 6}

    def saving(sync):
        def step(_name):
            if left[sync.host]:
                left[sync.host] -= 1
                number = left[sync.host]
                record = {"id": f"saved/2026-01-01/{sync.host}{number}", "created_at": "2026-01-01T10:00:00.000Z"}
                FileJournals(sync.root).records("saved").append([{**record, "source": "t", "text": sync.host * number}])

        return step

    for each in (one, other):
        each.step = saving(each)
    while any(left.values()):
        meet(*world)
    meet(*world)
    held = [sorted(FileJournals(each.root).records("saved").ids()) for each in (one, other)]
    assert held[0] == held[1]
    assert len(held[0]) == 12


# Core memory: what its owner deletes is in no file of any machine, the history included.


@pytest.mark.promise("Y5")
@pytest.mark.parametrize("deleted", ["drink", "Drink"])
def test_a_deletion_erases_the_history_of_every_machine(world, tmp_path, deleted):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    core(one).update("user", "food", "noodles")
    meet(*world)
    for key in ("drink", "food"):
        core(other).update("user", key, "anything", trust="agent")
    meet(*world)
    assert [fact.value for fact in core(other).history()] == ["oolong", "noodles"]
    core(one).delete("user", deleted)
    meet(*world)
    assert core(one).get().user == core(other).get().user == {"food": "anything"}
    assert [fact.value for fact in core(other).history()] == ["noodles"]
    assert holding(tmp_path, "oolong") == []


def test_a_deletion_forgets_what_lost_a_conflict(world, tmp_path):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    core(other).update("user", "drink", "sencha")
    meet(*world)
    assert len(other.conflicts()) == 1
    core(one).delete("user", "drink")
    meet(*world)
    assert other.conflicts() == one.conflicts() == []
    assert holding(tmp_path, "oolong") == holding(tmp_path, "sencha") == []


def test_what_is_written_after_a_deletion_stays(world):
    one, other, folder = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(one).delete("user", "drink")
    core(one).update("user", "drink", "sencha")
    meet(*world)
    core(other).update("user", "drink", "water", trust="agent")
    meet(*world)
    assert core(one).get().user == core(other).get().user == {"drink": "water"}
    assert [fact.value for fact in core(other).history()] == ["sencha"]
    assert one.run([folder]).sent == 0


def test_an_agent_that_deletes_forgets_nothing(world):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(other).delete("user", "drink", trust="agent")
    core(one).update("user", "drink", "sencha")
    meet(*world)
    assert len(one.conflicts()) == 1
    assert [fact.value for fact in core(other).history()] == ["oolong"]
    assert Traces(one.root).read() == Traces(other.root).read() == []


def test_a_history_that_could_not_be_read_is_erased_later(world, tmp_path):
    one, other, folder = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(other).update("user", "drink", "anything", trust="agent")
    meet(*world)
    path = other.root / "core_memory.json"
    whole = path.read_text()
    path.write_text(whole.replace('"user": {', '"user": [], "was": {'))
    core(one).delete("user", "drink")
    one.run([folder])
    for _ in range(2):
        assert "not an object" in other.run([folder]).problems[0]
    path.write_text(whole)
    for _ in range(2):
        other.run([folder])
    assert core(other).history() == []
    assert holding(tmp_path, "oolong") == []


def test_an_owner_who_shares_no_memory_leaves_no_trace(tmp_path):
    facts = CoreMemory(FileJournals(tmp_path).text("core_memory"))
    facts.update("user", "drink", "oolong")
    facts.delete("user", "drink")
    assert not (tmp_path / "sync").exists()


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["looked", "applied"])
@pytest.mark.parametrize("written", ["a third text", ""])
def test_a_value_that_lost_a_conflict_stays_one_if_its_run_was_killed_and_the_winner_was_replaced(world, step, written):
    """Whoever writes after the kill sees the winner, not what this machine had written before."""
    one, other, folder = world
    core(one).update("user", "k", "the first")
    meet(*world)
    core(one).update("user", "k", "from one")
    other.now = lambda: datetime.now(UTC) + timedelta(hours=1)
    core(other).update("user", "k", "from the other")
    other.run([folder])

    def kill(name):
        if name == step:
            raise Killed

    one.step = kill
    with pytest.raises(Killed):
        one.run([folder])
    one.step = lambda _name: None
    assert core(one).get().user["k"] == ("from the other" if step == "applied" else "from one")
    if written:
        core(one).update("user", "k", written)
    else:
        Desk(one.root, KINDS["core_memory"]).settle(lambda _held: [])
    meet(*world)
    values = [dict(core(each).get().user) for each in (one, other)]
    told = {conflict.text for conflict in one.conflicts()} | {str(value) for value in values[0].values()}
    assert values[0] == values[1] == ({"k": written} if written else {})
    assert {"from one" if step == "applied" else "from the other"} <= told
    assert one.run([folder]).sent == other.run([folder]).sent == 0
