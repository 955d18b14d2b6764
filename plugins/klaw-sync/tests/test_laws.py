"""Laws of machines that share a memory: clocks that disagree, files that are late, doubled, half or never there.

Every history ends with the delivery of everything. Then all machines show the same; what somebody has written and
nobody has forgotten is there, or is a conflict; and what was forgotten is in no file of any machine or folder.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from klaw_journals import FileJournals, Traces, format_ts
from klaw_memories import CoreMemory
from klaw_notes.sharing import Sharing
from klaw_notes.workspace import Workspace
from klaw_notes.workspace_list import Workspaces
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.desks import Desk, desks
from klaw_sync.values import KINDS

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = MemoryKey("00112233445566aa", bytes(range(32)))
STEPS = ["published", "adopted", "stamped", "outbox", "pushed", "looked", "applied", "done", "packed"]
SAVED = "saved/2026-03-01/0123456789ab"
GROUP = "telegram_1"

which = st.integers(0, 4)


class Killed(BaseException):
    """The process ends here."""


class Place:
    """A machine: its data directory, its copy of the folder, its clock."""

    def __init__(self, root: Path, name: str, skew: int) -> None:
        self.name, self.root = name, root / name
        self.folder = Folder(root / f"folder-{name}")
        self.root.mkdir()
        self.now = START + timedelta(seconds=skew)
        (self.root / "sync").mkdir()
        KEY.save(self.root / "sync" / "key")
        self.crash = ""
        self.meanwhile: Callable[[], object] | None = None
        self.seen: set[str] = set()
        self.deleted: set[str] = set()
        self.sync = Sync(self.root, host=name, now=lambda: self.now, step=self._step)
        self.workspaces.change(lambda known: known.update(notes=Workspace(self.root, "notes")))
        Sharing(self.workspaces).share("notes")

    def _step(self, name: str) -> None:
        if name == "looked" and self.meanwhile:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        if name == self.crash:
            self.crash = ""
            raise Killed(name)

    @property
    def journals(self) -> FileJournals:
        return FileJournals(self.root)

    @property
    def core(self) -> CoreMemory:
        return CoreMemory(self.journals.text("core_memory"))

    @property
    def workspaces(self) -> Workspaces:
        return Workspaces(self.root / "workspaces.json")

    def run(self):
        """Synchronise as the extension does: what was changed in the list of workspaces is told, then adopted."""
        Sharing(self.workspaces).publish()
        self._step("published")
        report = self.sync.run([self.folder])
        Sharing(self.workspaces).adopt()
        self._step("adopted")
        return report

    def excluded(self) -> set[str]:
        return set(self.workspaces.named("notes").exclude)

    def records(self, kind: str) -> list[dict]:
        found: list[dict] = []
        for desk in desks(self.root, [kind]):
            if desk.stamp:
                desk.settle(lambda held: (found.extend(held), held)[1])
        return found

    def dump(self) -> dict:
        shown = {kind: self.records(kind) for kind in KINDS}
        shown["workspaces"] = [body for body in shown["workspaces"] if "op" not in body]
        for kind in ("saved", "documents", "core_memory", "workspaces"):
            shown[kind].sort(key=KINDS[kind].id_of)
        return {**shown, "conflicts": [(one.kind, one.id, one.text) for one in self.sync.conflicts()]}

    def files(self) -> dict[str, bytes]:
        root = self.folder.root
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class Net(RuleBasedStateMachine):
    @initialize(
        count=st.sampled_from([2, 2, 3, 4, 5]),
        skew=st.lists(st.sampled_from([0, 5, -4000, 90_000_000]), min_size=5, max_size=5),
    )
    def start(self, count, skew):
        self.root = Path(tempfile.mkdtemp())
        self.places = [Place(self.root, "abcde"[number], skew[number]) for number in range(count)]
        self.queues: list[list[tuple[str, bytes | None]]] = [[] for _ in self.places]
        self.tokens = 0
        self.written: dict[
            str, tuple[tuple[str, ...], frozenset[str]]
        ] = {}  # the scopes of each text, and what it had seen
        self.replaced: set[str] = set()
        self.forgotten: set[str] = set()  # what somebody forgot who saw it
        self.excluded: set[str] = set()  # the patterns that somebody excluded, and nobody has included since

    def place(self, number: int) -> Place:
        return self.places[number % len(self.places)]

    def token(self) -> str:
        self.tokens += 1
        return f"text{self.tokens:04d}text"

    def _wrote(
        self, place: Place, kind: str, body: dict, text: str, *, where: str = "", over: tuple[str, ...] = ()
    ) -> None:
        """Note what a text had seen when it was written, and what it replaces."""
        traces = Traces(place.root)
        seen = {name for _, name in traces.read()}
        for old in over:
            seen |= self.written[old][1]
        self.replaced.update(over)
        self.written[text] = KINDS[kind].scopes(traces, where, body), frozenset(seen)

    # -- people and agents
    @rule(i=which)
    def save(self, i):
        place, text = self.place(i), self.token()
        moment = format_ts(place.now)
        record = {
            "id": f"{SAVED}{self.tokens:04x}",
            "created_at": moment,
            "source": "test",
            "chat_id": None,
            "text": text,
        }
        place.journals.records("saved").append([record])
        self._wrote(place, "saved", record, text)

    @rule(i=which)
    def save_under_one_id(self, i):
        place, text = self.place(i), self.token()
        record = {"id": SAVED, "created_at": format_ts(place.now), "source": "test", "chat_id": None, "text": text}
        journal = place.journals.records("saved")
        if journal.get([SAVED]):
            return
        journal.append([record])
        self._wrote(place, "saved", record, text)

    @rule(i=which)
    def put(self, i):
        place, text = self.place(i), self.token()
        journal = place.journals.records("documents")
        before = tuple(record["text"] for record in journal.get(["memory/d"]).values())
        record = {"id": "memory/d", "collection": "memory", "document": "d", "text": text}
        journal.append([record])
        self._wrote(place, "documents", record, text, over=before)

    def _core(self, place, change):
        Desk(place.root, KINDS["core_memory"]).settle(change)

    @rule(i=which, delete=st.booleans())
    def set_core(self, i, delete):
        place = self.place(i)
        before = tuple(body["value"] for body in place.records("core_memory"))
        if delete:
            self.replaced.update(before)
            self._core(place, lambda _held: [])
            return
        text = self.token()
        body = {"section": "user", "key": "k", "value": text}
        self._core(place, lambda _held: [body])
        self._wrote(place, "core_memory", body, text, over=before)

    @rule(i=which)
    def set_core_as_an_agent(self, i):
        """What somebody else wrote is kept in the history of this machine."""
        place, text = self.place(i), self.token()
        before = tuple(body["value"] for body in place.records("core_memory"))
        place.core.update("user", "k", text, trust="agent")
        body = {"section": "user", "key": "k", "value": text}
        self._wrote(place, "core_memory", body, text, over=before)

    @rule(i=which)
    def forget_core(self, i):
        """The owner deletes a key."""
        place = self.place(i)
        gone = {body["value"] for body in place.records("core_memory")}
        gone |= {fact.value for fact in place.core.history()}
        if gone:
            place.core.delete("user", "k")
            self.forgotten |= gone

    @rule(i=which, own=st.booleans())
    def say(self, i, own):
        place, text = self.place(i), self.token()
        name = f"m{self.tokens}" if own else "msg_001"
        day, body = place.now.date().isoformat(), {"id": name, "ts": format_ts(place.now), "content": text}
        place.journals.logs("conversations").log(GROUP, day).append(body)
        self._wrote(place, "conversations", body, text, where=f"{GROUP}/{day}")

    @rule(i=which)
    def learn(self, i):
        """A fact from a message that is here."""
        place = self.place(i)
        said = place.records("conversations")
        if not said:
            return
        message = said[-1]
        name = f"f-{message['content']}"
        journal = place.journals.records("facts")
        if journal.get([name]):
            return
        quotes = [{"chat": GROUP, "message": message["id"], "start": 0, "end": len(message["content"])}]
        fact = {"id": name, "op": "assert", "ts": format_ts(place.now), "text": message["content"], "quotes": quotes}
        journal.append([fact, {"id": f"b-{self.tokens}-{place.name}", "op": "batch", "ts": format_ts(place.now)}])

    @rule(i=which)
    def exclude_note(self, i):
        text = self.token()
        self.place(i).workspaces.change_patterns("notes", add=[text])
        self.excluded.add(text)

    @rule(i=which, j=st.integers(0, 3))
    def include_note(self, i, j):
        place = self.place(i)
        known = sorted(place.excluded())
        if known:
            place.workspaces.change_patterns("notes", remove=[known[j % len(known)]])
            self.excluded.discard(known[j % len(known)])

    # -- forgetting
    @rule(i=which, kind=st.sampled_from(["saved", "documents"]), j=st.integers(0, 3))
    def forget(self, i, kind, j):
        place = self.place(i)
        journal = place.journals.records(kind)
        names = sorted(journal.ids())
        if names:
            name = names[j % len(names)]
            text, before = journal.get([name])[name]["text"], set(Traces(place.root).read())
            journal.forget([name])
            self.forgotten.add(text)
            new = {trace for _, trace in set(Traces(place.root).read()) - before}
            for body in place.records("saved"):  # a text of the same id that has another one here stays
                scopes, seen = self.written[body["text"]]
                self.written[body["text"]] = scopes, seen | new

    @rule(i=which, j=st.integers(0, 3))
    def forget_message(self, i, j):
        place = self.place(i)
        said = place.records("conversations")
        if said:
            gone = said[j % len(said)]
            for desk in desks(place.root, ["conversations"]):
                group, _, name = desk.place.partition("/")
                place.journals.logs("conversations").log(group, name).remove(lambda line: line.value == gone)
            self.forgotten.add(gone["content"])
            self._forget_facts(place, [gone["content"]])

    def _forget_facts(self, place, texts):
        """Forget the facts of forgotten messages, as klaw-facts does."""
        journal = place.journals.records("facts")
        journal.forget([name for name in journal.ids() if name.removeprefix("f-") in texts])

    @rule(i=which)
    def purge(self, i):
        place = self.place(i)
        gone = [body["content"] for body in place.records("conversations")]
        logs = place.journals.logs("conversations")
        for name in logs.names(GROUP):
            logs.log(GROUP, name).delete()
        self.forgotten.update(gone)
        self._forget_facts(place, gone)

    # -- time, files and faults
    @rule(i=which, by=st.sampled_from([1, 60, -30, 200_000]))
    def tick(self, i, by):
        self.place(i).now += timedelta(seconds=by)

    @rule(i=which, crash=st.sampled_from(["", "", "", *STEPS]), changes=st.sampled_from(["", "", "exclude", "include"]))
    def synchronise(self, i, crash, changes):
        """Synchronise, while somebody may change the list of workspaces."""
        place = self.place(i)
        place.crash = crash
        change = {"exclude": lambda: self.exclude_note(i), "include": lambda: self.include_note(i, 0)}
        place.meanwhile = change.get(changes)
        with suppress(Killed):
            place.run()
        place.crash, place.meanwhile = "", None
        self._carry(i % len(self.places))

    def _carry(self, i):
        """Queue what this machine has written or deleted for the others."""
        place = self.places[i]
        files = place.files()
        for other, queue in enumerate(self.queues):
            if other != i:
                queue += [(name, data) for name, data in files.items() if name not in place.seen]
                queue += [(name, None) for name in place.seen - files.keys()]
        place.deleted |= place.seen - files.keys()
        place.seen = set(files)

    @rule(i=which, j=st.integers(0, 9), how=st.sampled_from(["whole", "whole", "half", "copy", "twice"]))
    def deliver(self, i, j, how):
        i %= len(self.places)
        if self.queues[i]:
            self._deliver(i, *self.queues[i].pop(j % len(self.queues[i])), how)

    def _deliver(self, i, name, data, how="whole"):
        place = self.places[i]
        path = place.folder.root / name
        if data is None:
            path.unlink(missing_ok=True)
            place.deleted.add(name)
            place.seen.discard(name)
            return
        if name in place.deleted:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if how == "half":
            path.write_bytes(data[: len(data) // 2])
            place.seen.add(name)
        elif how == "copy" and name.endswith(".kseg"):
            copy = path.with_name(path.name.replace(".kseg", " (conflicted copy).kseg"))
            copy.write_bytes(data)
            place.seen.add(str(copy.relative_to(place.folder.root)))
        else:
            path.write_bytes(data)
            place.seen.add(name)
        if how in {"half", "copy", "twice"}:
            self.queues[i].append((name, data))

    @rule(i=which)
    def lose_state(self, i):
        """The derived file is lost, between two runs that had nothing left to tell."""
        place = self.place(i)
        for _ in range(2):
            place.run()
        self._carry(i % len(self.places))
        (place.root / "sync" / "state.db").unlink()

    @precondition(lambda self: self.tokens % 3 == 0)
    @rule(i=which)
    def forge(self, i):
        """Somebody without the key writes into the folder."""
        from klaw_sync.segments import Writer

        forger = Writer(MemoryKey(KEY.memory, bytes(32)), "ab" * 8, "forger")
        ((name, data),) = forger.pack(1, [{"k": "tomb", "s": "00" * 16, "x": "11" * 8}])
        place = self.place(i)
        path = place.folder.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        place.seen.add(name)

    # -- the laws
    def teardown(self):
        if not hasattr(self, "places"):
            return
        try:
            self._end()
        finally:
            shutil.rmtree(self.root)

    def _end(self):
        for _ in range(5):
            for i, place in enumerate(self.places):
                while self.queues[i]:
                    self._deliver(i, *self.queues[i].pop(0))
                place.run()
                self._carry(i)
        assert not any(self.queues), "a run without a change wrote or deleted something"
        dumps = [place.dump() for place in self.places]
        for other in dumps[1:]:
            assert _comparable(other) == _comparable(dumps[0])
        shown = json.dumps(dumps[0], ensure_ascii=False, default=str)
        told = defaultdict(set)
        for place in self.places:
            for scope, name in Traces(place.root).read():
                told[scope].add(name)
        dead = {text for text, (scopes, seen) in self.written.items() if any(told[scope] - seen for scope in scopes)}
        assert self.forgotten <= dead
        assert {text for text in self.written.keys() - dead - self.replaced if text not in shown} == set()
        excluded = {place.name: place.excluded() for place in self.places}
        assert {frozenset(patterns) for patterns in excluded.values()} == {frozenset(excluded["a"])}
        assert excluded["a"] >= self.excluded
        files = {path: path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}
        left = {
            (text, str(path.relative_to(self.root))) for text in dead for path in files if text.encode() in files[path]
        }
        assert left == set()
        _one_text_for_each_id(dumps[0])
        self._keep_order(dumps[0])

    def _keep_order(self, dump):
        days = defaultdict(list)
        for body in dump["conversations"]:
            days[body["ts"][:10]].append(body["ts"])
        assert [len(set(map(str, day))) <= len(day) for day in days.values()] == [True] * len(days)


def _comparable(dump: dict) -> dict:
    return {**dump, "facts": [body for body in dump["facts"] if body["op"] != "batch"]}


def _one_text_for_each_id(dump: dict) -> None:
    for kind in ("saved", "documents", "core_memory", "facts"):
        ids = [KINDS[kind].id_of(body) for body in dump[kind]]
        assert len(ids) == len(set(ids))


def _run(examples: int, steps: int) -> None:
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        print_blob=False,
    )
    run_state_machine_as_test(Net, settings=profile)


@pytest.fixture
def fast(monkeypatch):
    """Do not wait for the disk: no process ends here."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    monkeypatch.setattr("os.fdatasync", lambda _descriptor: None, raising=False)


@pytest.mark.usefixtures("fast")
def test_machines_that_have_the_same_files_show_the_same():
    _run(20, 25)


@pytest.mark.campaign
@pytest.mark.usefixtures("fast")
def test_long_histories():
    _run(400, 40)
