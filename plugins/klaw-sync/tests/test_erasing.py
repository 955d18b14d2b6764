"""What this machine has forgotten leaves ``sync/state.db`` at once, not with the next synchronisation."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from klaw_core import Memory, StoreError, load_config
from klaw_facts import Facts
from klaw_journals import Chat, FileJournals, Message
from klaw_sync import Folder
from klaw_sync.extension import SyncExtension
from klaw_sync.segments import read
from klaw_sync.state import State

CHAT = Chat("telegram", "1")
WORD = "zyzzyvaword"


@pytest.fixture
def make_memory(tmp_path):
    """Return what opens a memory of words only, with options of the extension."""
    with ExitStack() as opened:

        def make(**sync):
            overrides = {"memory": {"embedding": {"type": "none"}}, "extensions": {"sync": sync}}
            environment = {"KLAW_CONFIG": os.devnull}
            config = load_config(data_dir=tmp_path / "data", environment=environment, overrides=overrides)
            return opened.enter_context(Memory.open(config))

        yield make


@pytest.fixture
def memory(make_memory, tmp_path):
    """A memory that has told a folder nothing yet."""
    made = make_memory()
    made.extension(SyncExtension).sync.init(Folder(tmp_path / "folder"))
    return made


def run(memory, tmp_path):
    return memory.extension(SyncExtension).run([str(tmp_path / "folder")])


def state_of(memory):
    return memory.config.data_dir / "sync" / "state.db"


def kept(memory):
    return [path.name for path in state_of(memory).parent.glob("state.db*") if WORD.encode() in path.read_bytes()]


def say(memory):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return memory.conversations.append(Message("user", f"{WORD} was said", moment, meta=CHAT.meta))


def forget_memory(memory):
    path = memory.save(f"{WORD} was saved").path
    return lambda: memory.forget(path)


def forget_message(memory):
    name = say(memory).id
    return lambda: memory.forget(f"{CHAT.name}/{name}")


def purge(memory):
    say(memory)
    return lambda: memory.conversations.purge(CHAT)


def forget_fact(memory):
    fact = memory.extension(Facts).remember(f"{WORD} is a fact")
    return lambda: memory.forget(f"facts/{fact.id}")


@pytest.mark.parametrize("write", [forget_memory, forget_message, purge, forget_fact])
def test_a_forgotten_text_is_in_no_byte_of_the_state(memory, tmp_path, write):
    memory.save("another text stays")
    forget = write(memory)
    run(memory, tmp_path)
    assert kept(memory) == ["state.db"]
    forget()
    assert kept(memory) == []
    assert b"another text stays" in state_of(memory).read_bytes()
    assert run(memory, tmp_path).problems == ()
    assert kept(memory) == []


def test_an_import_says_which_records_had_been_forgotten(memory, tmp_path):
    export = tmp_path.parent / f"{tmp_path.name}.jsonl"
    gone, stays = (memory.save(text).path for text in (f"{WORD} was saved", "another text stays"))
    memory.export(export)
    run(memory, tmp_path)
    memory.forget(gone)
    report = memory.import_(export)
    assert report.added == {"saved": 1}
    (notice,) = (each for each in report.notices if "had been forgotten" in each)
    assert gone in notice
    assert stays not in notice
    assert "`klaw forget` removes" in notice
    assert [each for each in memory.import_(export).notices if "had been forgotten" in each] == []


def test_nothing_is_erased_a_second_time(memory, tmp_path):
    path = memory.save(f"{WORD} was saved").path
    run(memory, tmp_path)
    memory.forget(path)
    before = state_of(memory).read_bytes()
    memory.save("another text")
    assert state_of(memory).read_bytes() == before


def test_an_index_run_completes_what_was_interrupted(memory, tmp_path):
    path = memory.save(f"{WORD} was saved").path
    run(memory, tmp_path)
    FileJournals(memory.config.data_dir).records("saved").forget([path])  # and then the process dies
    assert kept(memory) == ["state.db"]
    memory.index()
    assert kept(memory) == []


def test_a_forgetting_does_not_wait_for_a_synchronisation_which_erases_at_its_end(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("klaw_sync.erasing._WAIT_SECONDS", 0.01)
    path = memory.save(f"{WORD} was saved").path
    run(memory, tmp_path)
    sync = memory.extension(SyncExtension).sync
    sync.step = lambda name: memory.forget(path) if name == "done" else None
    memory.save("something to tell")
    sync.run([Folder(tmp_path / "folder")])
    assert kept(memory) == []


def test_an_erasure_that_fails_is_told_and_done_by_the_next_index_run(memory, tmp_path, monkeypatch):
    path = memory.save(f"{WORD} was saved").path
    run(memory, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(State, "scrub", lambda _: (_ for _ in ()).throw(StoreError("the disk failed")))
        with pytest.raises(StoreError, match="klaw index"):
            memory.forget(path)
    memory.index()
    assert kept(memory) == []


def test_what_waits_to_be_sent_is_sent_without_it(make_memory, tmp_path):
    memory = make_memory(encrypt=False)
    folder = tmp_path / "folder"
    memory.extension(SyncExtension).sync.init(Folder(folder))
    run(memory, tmp_path)
    path = memory.save(f"{WORD} was saved").path
    memory.save("another text stays")
    sync = memory.extension(SyncExtension).sync

    def lose(step):
        if step == "outbox":
            raise StoreError("the process dies")

    sync.step = lose
    with pytest.raises(StoreError):
        sync.run([Folder(folder)])
    with State.open(state_of(memory)) as state:
        assert len(state.outbox(str(folder))) == 1
    memory.forget(path)
    with State.open(state_of(memory)) as state:
        assert state.outbox(str(folder)) == []
    assert kept(memory) == []
    run(memory, tmp_path)
    told = repr([read(sync.key, each.read_bytes()) for each in folder.rglob("*.kseg")])
    assert (WORD in told, "another text stays" in told) == (False, True)


def test_a_memory_that_is_not_shared_gets_no_state(make_memory):
    memory = make_memory()
    memory.forget(memory.save(f"{WORD} was saved").path)
    assert not state_of(memory).parent.exists()


def test_a_process_without_anything_to_erase_does_not_load_the_synchronisation(memory, tmp_path):
    path = memory.save(f"{WORD} was saved").path
    run(memory, tmp_path)
    memory.forget(path)
    script = """if True:
        import sys
        from klaw_core import Memory, load_config

        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=sys.argv[1], environment={"KLAW_CONFIG": "/dev/null"}, overrides=overrides)
        with Memory.open(config) as memory:
            memory.save("another text")
            memory.index()
        print(*(name for name in sys.modules if name.startswith("klaw_sync.")))"""
    command = [sys.executable, "-c", script, str(memory.config.data_dir)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "klaw_sync.erasing" in loaded
    assert {"klaw_sync.run", "klaw_sync.state"} & {*loaded} == set()


@pytest.mark.parametrize("write", [forget_memory, forget_message, forget_fact])
def test_what_this_machine_has_forgotten_itself_is_not_counted_by_the_next_run(memory, tmp_path, write):
    forget = write(memory)
    run(memory, tmp_path)
    forget()
    report = run(memory, tmp_path)
    assert (report.forgotten, report.problems) == (0, ())


def test_a_key_of_core_memory_that_was_deleted_here_is_not_counted_either(memory, tmp_path):
    memory.core.update("user", "name", WORD)
    run(memory, tmp_path)
    memory.core.delete("user", "name")
    assert run(memory, tmp_path).forgotten == 0
    assert kept(memory) == []
