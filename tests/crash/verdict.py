"""What must be true after a crash, looked at by a process that was not there.

In four steps: before anything is opened, as it was found, after the next ``klaw index``, and while life goes on.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

from attrs import define, field
from scenes import CHAT, EXPORTED, IMPORTED, NOON, Home, word

from klaw_core import Memory
from klaw_journals import BadLine
from klaw_journals.messages import Message
from klaw_journals.record_journal import FileJournal

# What a crash may leave to be seen, and costs nothing.
_HARMLESS = {"leftovers", "disk-space", "damaged-copy"}


@define
class Story:
    """What was said to have been begun and done, before the crash."""

    saved: dict[str, str] = field(factory=dict)
    unindexed: dict[str, str] = field(factory=dict)  # kept, but found only after the next index, as the caller was told
    messages: dict[str, str] = field(factory=dict)
    facts: dict[str, str] = field(factory=dict)
    forgetting: dict[str, str] = field(factory=dict)
    forgotten: dict[str, str] = field(factory=dict)
    excluding: set[str] = field(factory=set)
    excluded: dict[str, str] = field(factory=dict)
    indexed: bool = False
    reindexing: bool = False
    reindexed: bool = False
    exported: bool = False
    importing: bool = False
    imported: bool = False

    @classmethod
    def of(cls, lines: Sequence[tuple[str, str, str, str]]) -> "Story":  # noqa: C901  # one case a line
        """Replay what was said."""
        story = cls()
        for line in lines:
            match line:
                case "done", ("save" | "append" | "notice") as what, name, text:
                    known = {"save": story.saved, "append": story.messages, "notice": story.unindexed}
                    known[what][name] = text
                case "done", "fact", name, text:
                    story.facts[name] = text
                case "begin", "forget", name, text:
                    story.forgetting[name] = text
                    story.facts.pop(name.removeprefix("facts/"), None)
                    story.saved.pop(name, None)
                    story.messages.pop(name.removeprefix(f"{CHAT.name}/"), None)
                case "done", "forget", name, text:
                    story.forgotten[name] = text
                case "begin", "exclude", name, _:
                    story.excluding.add(name)
                case "done", "exclude", name, text:
                    story.excluded[name] = text
                case stage, "index", *_:
                    story.indexed = stage == "done"
                case "done", "export", *_:
                    story.exported = True
                case stage, "import", *_:
                    story.importing, story.imported = True, stage == "done"
                case stage, "reindex", *_:
                    story.reindexing, story.reindexed = True, stage == "done"
        return story


def examine(home: Home, story: Story, dimension: int) -> Iterator[str]:
    """Yield everything that is not as it was promised."""
    for path in home.notes.iterdir() if home.notes.exists() else ():
        if not path.stat().st_size:  # the scene died as it wrote a note, while Klaw wrote in another thread
            path.unlink()
    yield from _bytes(home, story)
    yield from _exported(home, story)
    yield from _as_found(home, story, dimension)
    with home.open(dimension) as memory:
        with memory._assembly.store.read() as snapshot:
            record = snapshot.space("memory")
        if not story.reindexing and (record is None or record.space.dimension == dimension):
            if (home.data / "saved.jsonl").exists():  # otherwise there is nothing yet, which `index` says
                memory.index()
            kept = {saved["id"] for saved in FileJournal(home.data / "saved.jsonl").replay().records.values()}
            kept |= {f"facts/{name}" for name in memory.extension("facts").state().facts} if home.facts else set()
            kept |= {f"{CHAT.name}/{name}" for name in _journal(memory)}
            story.forgotten |= {name: text for name, text in story.forgetting.items() if name not in kept}
            yield from _bytes(home, story)
            if story.importing:
                memory.import_(home.root / IMPORTED)  # again: what is there is passed over
                memory.index()
                yield from _imported(memory, home)
            yield from _whole(memory, home, story, "after index")
        memory.reindex()
        yield from _whole(memory, home, story, "after reindex")
        yield from (f"{path.name} was not swept" for path in home.data.glob("klaw.db.rebuild*"))
        yield from _life_goes_on(memory, home, story)
    yield from _bytes(home, story)
    yield from (f"{path.name} is left" for path in home.data.glob(".klaw-saved*"))


def _bytes(home: Home, story: Story) -> Iterator[str]:
    """Look for what was forgotten in the bytes of every file."""
    for path in home.data.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for name, text in {**story.forgotten, **story.excluded}.items():
                if text.split()[0].encode() in data:
                    yield f"the text of {name}, which was forgotten, is in {path.name}"


def _exported(home: Home, story: Story) -> Iterator[str]:
    """An export is whole, or there is none."""
    path = home.root / EXPORTED
    if not path.exists():
        if story.exported:
            yield "the export was acknowledged, and is not there"
        return
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if lines[-1] != {"kind": "end", "records": len(lines) - 2}:
        yield f"the export ends with {lines[-1]}"


def _imported(memory: Memory, home: Home) -> Iterator[str]:
    """Everything that was to be imported is there, once."""
    lines = [json.loads(line) for line in (home.root / IMPORTED).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "saved" and memory.get(line["value"]["id"]).content != line["value"]["text"]:
            yield f"{line['value']['id']} was not imported"
        if line["kind"] == "core" and memory.core.get().user.get(line["key"]) != line["value"]:
            yield f"{line['key']} was not imported"
    said = [line["value"]["id"] for line in lines if line["kind"] == "message"]
    if missing := set(said) - _journal(memory):
        yield f"messages were not imported: {missing}"


def _as_found(home: Home, story: Story, dimension: int) -> Iterator[str]:
    """Look before anything is fixed: nothing acknowledged is missing, and the index agrees with itself."""
    with home.open(dimension) as memory:
        with memory._assembly.store.read() as snapshot:
            record = snapshot.space("memory")
            yield from _sound(memory, snapshot, embedded=False)
            rows = {row.id for row in snapshot.messages.all(CHAT.name)}
        if story.reindexed and record.space.dimension != dimension:
            yield "the reindex was acknowledged, and the index is the old one"
        moved = record is None or record.space.dimension == dimension
        for name, text in story.saved.items():
            if name not in story.unindexed:
                yield from _found(memory, name, text, ("fts", "vector") if moved else ("fts",), "as found")
        if not moved:  # the old index is whole, for the model that it was made with
            with home.open(record.space.dimension) as old:
                for name, text in story.saved.items():
                    yield from _found(old, name, text, ("fts", "vector"), "in the old index")
        kept = {saved["id"] for saved in FileJournal(home.data / "saved.jsonl").replay().records.values()}
        yield from (f"{name} is not in saved.jsonl" for name in story.saved.keys() - kept)
        yield from (f"message {name} is not in the journal" for name in story.messages.keys() - _journal(memory))
        yield from (f"message {name} is no row" for name in story.messages.keys() - rows - story.unindexed.keys())
        yield from _not_found(memory, story, "as found")
        if home.facts:
            known = memory.extension("facts").state().facts
            yield from (f"the fact {name} is not in facts.jsonl" for name in story.facts.keys() - known.keys())
        if story.indexed:
            yield from _notes(memory, home, story, "as found")


def _whole(memory: Memory, home: Home, story: Story, when: str) -> Iterator[str]:
    """Look after the next run: everything is wholly there or wholly absent."""
    with memory._assembly.store.read() as snapshot:
        yield from _sound(memory, snapshot, embedded=True)
        indexed = set(snapshot.manifest("memory", "saved"))
        rows = [row.id for row in snapshot.messages.all(CHAT.name)]
    kept = {saved["id"]: saved["text"] for saved in FileJournal(home.data / "saved.jsonl").replay().records.values()}
    if indexed != kept.keys():
        yield f"{when}: saved memories in the index and in the journal differ: {indexed ^ kept.keys()}"
    for name, text in {**kept, **story.saved}.items():
        yield from _found(memory, name, text, ("fts", "vector"), when)
    said = _journal(memory)
    if set(rows) != said or len(rows) != len(said):
        yield f"{when}: messages as rows and in the journal differ: {set(rows) ^ said}"
    yield from _not_found(memory, story, when)
    if home.facts:
        yield from _facts(memory, story, when)
    yield from _notes(memory, home, story, when)
    for finding in memory.doctor().findings:
        torn = finding.severity == "warning" and finding.check in {"saved-lines", "conversation-lines", "fact-lines"}
        if finding.check not in _HARMLESS and not torn:
            yield f"{when}: doctor finds {finding.severity} {finding.check}: {finding.what}"


def _facts(memory: Memory, story: Story, when: str) -> Iterator[str]:
    """Look whether facts in the index are those of the journal, and each message that states one was taken once."""
    facts = memory.extension("facts")
    state = facts.state()
    yield from (f"{when}: the fact {name} is lost" for name in story.facts.keys() - state.facts.keys())
    with memory._assembly.store.read() as snapshot:
        indexed = {path.removeprefix("facts/") for path in snapshot.manifest("facts", "facts")}
    if indexed != state.facts.keys():
        yield f"{when}: facts in the index and in the journal differ: {indexed ^ state.facts.keys()}"
    yield from (f"{when}: {fact.id} is not what was said" for fact in facts.pointers.unsound(state.facts.values()))
    undone = any(batch.state == "undone" for batch in state.batches.values())
    told = [line.message.content for line in memory.conversations.read(CHAT) if not isinstance(line, BadLine)]
    told = sorted(text for text in told if text.startswith("My name is")) if not undone else []
    taken = sorted(fact.text for fact in state.facts.values() if fact.text.startswith("My name is"))
    if told != taken:
        yield f"{when}: of {told} the facts are {taken}"


def _life_goes_on(memory: Memory, home: Home, story: Story) -> Iterator[str]:
    """Write again: what the crash tore must not spoil what comes after it."""
    text = f"{word('later', 1)} came after the crash"
    story.saved[memory.save(text, created_at=NOON + timedelta(days=2)).path] = text
    message = memory.conversations.append(Message("user", text, NOON + timedelta(minutes=50), meta=CHAT.meta))
    story.messages[message.id] = text
    memory.index()
    yield from _whole(memory, home, story, "later")


def _sound(memory: Memory, snapshot, *, embedded: bool) -> Iterator[str]:
    """Look at the file itself, and whether every index holds exactly the chunks there are.

    Vectors follow the rows: unless all is ``embedded``, some may be missing, and none may be of a chunk that is gone.
    """
    connection = snapshot.resource
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    if problems != ["ok"]:
        yield f"integrity_check: {problems[:3]}"
    if broken := connection.execute("PRAGMA foreign_key_check").fetchall():
        yield f"foreign_key_check: {broken[:3]}"
    keys = snapshot.keys("memory").tolist()
    for name, index in memory._assembly.indexes():
        held = index.keys(connection, "memory").tolist()
        if held != keys and (embedded or not index.needs_vectors or not set(held) <= set(keys)):
            yield f"{name} holds {len(held)} keys, the store {len(keys)}"
        yield from index.check(connection, "memory", getattr(snapshot.space("memory"), "space", None))


def _found(memory: Memory, name: str, text: str, modes: Sequence[str], when: str) -> Iterator[str]:
    for mode in modes:
        results = memory.search(text if mode == "vector" else text.split(maxsplit=1)[0], 5, mode=mode)
        if name not in {result.path for result in results}:
            yield f"{when}: {name} is not found by {mode}"


def _not_found(memory: Memory, story: Story, when: str) -> Iterator[str]:
    for name, text in story.forgotten.items():
        if memory.search(text.split()[0], 5, mode="fts"):
            yield f"{when}: {name}, which was forgotten, is found"


def _notes(memory: Memory, home: Home, story: Story, when: str) -> Iterator[str]:
    """Look whether what is indexed of the notes is what stands in them."""
    if not home.notes.exists():
        return
    with memory._assembly.store.read() as snapshot:
        stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
    held = {item.path: set() for item in stored if item.origin == "notes"}
    for item in stored:
        if item.origin == "notes":
            held[item.path] |= set(item.chunk.text.split())
    wanted = {f"notes/{path.name}": set(path.read_text().split()) for path in home.notes.iterdir()}
    for name in wanted.keys() | held.keys():
        absent = held.get(name) is None
        if name in story.excluded or (name in story.excluding and absent):
            if not absent:
                yield f"{when}: {name}, which was excluded, is in the index"
        elif name not in wanted:
            yield f"{when}: {name}, which is gone, is in the index"
        elif absent or not wanted[name] - {"#"} <= held[name]:
            yield f"{when}: {name} is not wholly in the index"


def _journal(memory: Memory) -> set[str]:
    return {line.message.id for line in memory.conversations.read(CHAT) if not isinstance(line, BadLine)}
