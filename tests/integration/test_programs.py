"""What programs use: single files, live objects, events, single messages that go, and agents kept apart."""

from datetime import UTC, datetime

import pytest

from klaw_core import (
    API,
    Chat,
    CloseEvent,
    Component,
    ForgetEvent,
    IndexEvent,
    ListeningExtension,
    LiveComponent,
    Memory,
    Message,
    MessageEvent,
    NoOptions,
    NotFoundError,
    PluginError,
    SearchEvent,
)
from klaw_core.agents import Agents
from klaw_core.kinds import EMBEDDER
from klaw_testing.memory_store import MemoryStore

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
CHAT = Chat.parse("telegram_1")


def paths(results):
    return sorted({result.path for result in results})


@pytest.fixture
def indexed(home, memory):
    """A memory of three notes."""
    for name in ("a", "b", "c"):
        home.write(f"{name}.md", f"The heron of {name}.\n")
    memory.index(home.notes)
    home.recorder.take()
    return memory


class TestSingleFiles:
    def test_only_named_files_are_updated(self, home, indexed, check):
        home.write("a.md", "The kingfisher of a.\n", hours=1)
        home.write("b.md", "The kingfisher of b.\n", hours=1)
        home.write("d.md", "The kingfisher of d.\n", hours=1)
        (home.notes / "c.md").unlink()
        report = indexed.index(paths=[home.notes / "a.md", str(home.notes / "d.md")])
        assert (report.added, report.changed, report.removed) == (1, 1, 0)
        assert sorted(home.recorder.take()) == ["a\nThe kingfisher of a.", "d\nThe kingfisher of d."]
        assert paths(indexed.search("kingfisher", mode="fts")) == ["notes/a.md", "notes/d.md"]
        assert paths(indexed.search("heron", mode="fts")) == ["notes/b.md", "notes/c.md"]
        check(indexed)

    def test_updating_every_changed_file_equals_a_full_run(self, home, indexed, dump):
        home.write("a.md", "The kingfisher of a.\n", hours=1)
        (home.notes / "c.md").unlink()
        indexed.index(paths=[home.notes / "a.md", home.notes / "c.md"])
        single = dump(indexed)
        assert indexed.index().changed == 0
        assert dump(indexed) == single

    def test_a_deleted_file_leaves_the_index(self, home, indexed):
        (home.notes / "b.md").unlink()
        assert indexed.index(paths=[home.notes / "b.md"]).removed == 1
        assert paths(indexed.search("heron", mode="fts")) == ["notes/a.md", "notes/c.md"]

    def test_a_file_that_is_empty_now_leaves_the_index(self, home, indexed, dump):
        home.write("b.md", "", hours=1)
        report = indexed.index(paths=[home.notes / "b.md"])
        assert (report.removed, [item.reason for item in report.skipped]) == (1, ["is empty"])
        assert paths(indexed.search("heron", mode="fts")) == ["notes/a.md", "notes/c.md"]
        single = dump(indexed)
        indexed.index()
        assert dump(indexed) == single

    def test_a_file_without_a_source_is_rejected_and_changes_nothing(self, home, indexed, tmp_path, dump):
        home.write("a.md", "The kingfisher of a.\n", hours=1)
        before = dump(indexed)
        with pytest.raises(NotFoundError):
            indexed.index(paths=[home.notes / "a.md", tmp_path / "elsewhere.md"])
        assert dump(indexed) == before

    def test_a_journal_can_be_updated_by_name(self, indexed, dump):
        message = Message("user", "A lantern on the pier.", datetime.now(UTC), meta=Chat("telegram", "1").meta)
        indexed.conversations.append(message)
        (file,) = (indexed.config.data_dir / "conversations").rglob("*.jsonl")
        assert indexed.index(paths=[file]).added == 1
        before = dump(indexed)
        report = indexed.index(paths=[file])
        assert (report.removed, report.unchanged) == (0, 1)
        assert dump(indexed) == before

    def test_an_empty_list_of_files_does_nothing(self, indexed, dump):
        before = dump(indexed)
        assert indexed.index(paths=[]).changed == 0
        assert dump(indexed) == before


class TestLiveComponents:
    def test_the_given_object_is_used(self, home):
        home.write("a.md", "The heron.\n")
        live = home.component("mine").factory(None, None)
        components = [LiveComponent(EMBEDDER, "mine", live)]
        config = home.config(embedding={"type": "mine"})
        with Memory.open(config, registry=home.registry(), components=components) as memory:
            memory.index(home.notes)
            assert memory.search("heron", mode="vector")
        assert live.recorder.texts[-1] == "a\nThe heron."  # after the probe of its weights
        assert live.recorder.questions == ["heron"]

    def test_a_live_component_replaces_that_of_a_plugin(self, home):
        home.write("a.md", "The heron.\n")
        live = home.component("mine").factory(None, None)
        components = [LiveComponent(EMBEDDER, "counting", live)]
        with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
            memory.index(home.notes)
        assert live.recorder.texts
        assert home.recorder.texts == []

    def test_an_extension_receives_the_events_that_it_lists(self, home):
        class Ear(ListeningExtension):
            name = "ear"

            def __init__(self):
                self.heard = []

            def on(self, event, /):
                self.heard.append(type(event))

        ear, deaf = Ear(), Ear()
        components = [
            LiveComponent("extension", "ear", ear, listens=(SearchEvent, CloseEvent)),
            LiveComponent("extension", "deaf", deaf),
        ]
        with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
            memory.save("The heron stands still.")
            memory.search("heron")
        assert ear.heard == [SearchEvent, CloseEvent]
        assert deaf.heard == []

    def test_without_the_object_its_name_is_unknown(self, home):
        with Memory.open(home.config(embedding={"type": "mine"}), registry=home.registry()) as memory:
            assert any("no plugin provides the embedder 'mine'" in problem for problem in memory.status().problems)
            home.write("a.md", "The harbour master writes down every ship.")
            assert "'mine'" in memory.index(home.notes).notices[0]
            assert memory.search("harbour")[0].path == "notes/a.md"


class TestEvents:
    def test_an_event_is_sent_after_its_change_is_visible(self, home, memory):
        found = []

        def listen(event):
            if isinstance(event, IndexEvent):
                with home.open() as other:  # another connection sees only what is committed
                    found.append((event.origins, paths(other.search("heron", mode="fts"))))

        home.write("a.md", "The heron.\n")
        memory.on_change(listen)
        memory.index(home.notes)
        assert found == [(("notes",), ["notes/a.md"])]

    def test_every_kind_of_event_is_sent_once(self, indexed):
        events = []
        indexed.on_change(events.append)
        indexed.search("heron")
        indexed.forget("notes/a.md")
        indexed.conversations.append(Message("user", "hello", MOMENT, meta=CHAT.meta))
        indexed.index()
        indexed.close()
        assert [type(event) for event in events] == [SearchEvent, ForgetEvent, MessageEvent, IndexEvent, CloseEvent]
        assert events[1].paths == ("notes/a.md",)
        assert (events[2].chat, events[2].content, events[2].created_at) == ("telegram_1", "hello", MOMENT)

    def test_a_listener_that_raises_stops_neither_the_run_nor_the_next_listener(self, home, memory, caplog):
        def fail(_event):
            raise RuntimeError("the listener is broken")

        events = []
        memory.on_change(fail)
        memory.on_change(events.append)
        home.write("a.md", "The heron.\n")
        assert memory.index(home.notes).added == 1
        assert memory.search("heron")
        assert [type(event) for event in events] == [IndexEvent, SearchEvent]
        assert "the listener is broken" in caplog.text

    def test_a_removed_listener_receives_no_events(self, indexed):
        events = []
        stop = indexed.on_change(events.append)
        stop()
        stop()
        indexed.search("heron")
        assert events == []

    def test_a_failed_run_sends_no_event(self, home, memory):
        events = []
        memory.on_change(events.append)
        home.recorder.fail_at = 1
        home.write("a.md", "The heron.\n")
        report = memory.index(home.notes)
        assert [event.report for event in events] == [report]
        assert report.lacking == 1


class TestRemovingMessages:
    @pytest.fixture
    def chat(self, memory):
        said = [("m1", "The key is under the mat."), ("m2", "The gate code is 4711."), ("m3", "Bring the ladder.")]
        for number, (name, text) in enumerate(said):
            moment = MOMENT.replace(minute=number)
            memory.conversations.append(Message("user", text, moment, id=name, meta=CHAT.meta))
        memory.index()
        return memory

    def left(self, memory):
        return [line.message.id for line in memory.conversations.read(CHAT)]

    def test_a_removed_message_is_not_found_and_the_others_are(self, chat, home):
        assert chat.conversations.remove(CHAT, ["m2"]) == 1
        assert self.left(chat) == ["m1", "m3"]
        assert not chat.search("4711", mode="fts")
        assert not chat.conversations.search("4711")
        assert chat.search("ladder", mode="fts")
        assert chat.conversations.search("ladder")
        assert not [
            path for path in (home.root / "data" / "conversations").rglob("*.jsonl") if b"4711" in path.read_bytes()
        ]

    def test_a_removed_message_does_not_return(self, chat):
        chat.conversations.remove(CHAT, ["m2"])
        chat.conversations.sync()
        chat.index()
        chat.reindex()
        assert not chat.search("4711", mode="fts")
        assert not chat.doctor().findings

    def test_removing_an_unknown_message_changes_nothing(self, chat, dump):
        before = dump(chat)
        assert chat.conversations.remove(CHAT, ["m9"]) == 0
        assert chat.conversations.remove(Chat.parse("telegram_2"), ["m1"]) == 0
        assert dump(chat) == before
        assert self.left(chat) == ["m1", "m2", "m3"]

    def test_removing_all_messages_leaves_an_empty_chat(self, chat):
        assert chat.conversations.remove(CHAT, ["m1", "m2", "m3"]) == 3
        assert self.left(chat) == []
        assert not chat.search("key gate ladder", mode="fts")
        assert chat.conversations.remove(CHAT, ["m1"]) == 0


class SharedStore(MemoryStore):
    """A store that would keep the memories of all agents together."""

    isolates = False


@pytest.mark.parametrize("store", [MemoryStore, SharedStore])
def test_agents_reject_a_store_without_isolation(make_home, store):
    home = make_home("memory")
    opened = []

    def build(_options, _place):
        opened.append(store())
        return opened[-1]

    home.extra.append(("store", Component("kept", NoOptions, build, API)))
    with Agents(home.config(), registry=home.registry()) as agents:
        if store is MemoryStore:
            assert agents.memory("a") is not agents.memory("b")
            return
        for _ in range(2):
            with pytest.raises(PluginError, match="separate memories"):
                agents.memory("a")
