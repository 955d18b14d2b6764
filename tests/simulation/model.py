"""What a life must leave behind: what was acknowledged, what was forgotten, and what may be either.

Three states are enough. What was acknowledged must be there; what was forgotten must be in no byte; of what was under
way when a process died, was interrupted or was refused, either is right, and nothing is asked. A person's moves also
have an order in time: at each moment, the home is the one of the last move before it. A move that was forgotten leaves
the end of the home before it, so until the next move there may be none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Self

import apsw
from attrs import asdict, define, field
from lives import BESIDE_FROM, START, Operation, beside_of
from machines import carried, is_shared, meet, second_of
from others import PRIVATE, as_agent, command_in, forged, prompt_problems, recalled, run_command
from scenes import CHAT, Home

from klaw_core import Memory, WorkspaceError
from klaw_core.values.text import text_hash
from klaw_facts import Facts
from klaw_journals import BadLine, Chat
from klaw_journals.record_journal import FileJournal
from klaw_journals.rewriting import leftover_of

# What a crash may leave to be seen, and costs nothing.
_HARMLESS = {"leftovers", "disk-space", "damaged-copy", "saved-lines", "conversation-lines", "fact-lines"}
# What programs and people do: two messages have one id, a copy of a damaged database is kept, a watcher is killed.
_HARMLESS |= {"conversation-ids", "copies", "watcher"}
#: Where people say something, by person: the owner; Anna, who has two chats; and somebody else who is called Anna.
_ANNA = {"name": "Anna", "sender_id": "7"}
PEOPLE = (
    (CHAT.meta,),
    ({**Chat("telegram", "777").meta, **_ANNA}, {**Chat("telegram", "778").meta, **_ANNA}),
    ({**Chat("telegram", "888").meta, "name": "Anna"},),
)
#: The kinds of operations, by where the model notes what they make, and where what was either goes when they end.
_MAKES = dict.fromkeys(("save", "import", "tool", "request", "shell"), "saved") | dict.fromkeys(("say", "move"), "said")
_MAKES |= {"fact": "facts", "core": "core", "agent": "agents"}
_ENDS = dict.fromkeys(("forget", "unsay", "unfact", "request"), "gone") | {
    "retract": "hidden",
    "far": "leaving",
    "rename": "notes",
}
#: The texts that are saved, with one word in each.
FORMS = ("{} was saved", "{} was told", "{} was imported", "{} was typed", "{} was saved far away")
_MOVED = "I moved to "
#: What a person's editor writes first, and may leave if it dies; nobody else changes it.
EDITED = "edited"
_LATE = timedelta(days=3)  # what is said late is of an earlier day
#: What may have a secret of a text that is kept: its record, and what a crash has left of writing that anew.
_RECORDS = {"saved.jsonl", leftover_of(Path("saved.jsonl")).name, "state.db"}
_LATEST = 5  # of each kind, that are looked for after each death
_ID = re.compile(r"saved/\d{4}-\d\d-\d\d/[0-9a-f]{2,64}")


@define
class Model:
    """Names of what was acknowledged, each with the word of its text; words of what is gone; secrets."""

    saved: dict[str, str] = field(factory=dict)
    said: dict[str, str] = field(factory=dict)
    facts: dict[str, str] = field(factory=dict)
    core: dict[str, str] = field(factory=dict)
    #: Facts that are kept, and shown to none.
    hidden: dict[str, str] = field(factory=dict)
    #: What the agent has saved in its own memory.
    agents: dict[str, str] = field(factory=dict)
    #: What messages said before somebody has edited them by hand.
    edited: dict[str, str] = field(factory=dict)
    #: The words of notes, by path; of notes and messages that an index run has seen.
    notes: dict[str, str] = field(factory=dict)
    seen: list[str] = field(factory=list)
    #: What was written on the second machine, and has not come here; what was said there.
    far: dict[str, str] = field(factory=dict)
    far_said: dict[str, str] = field(factory=dict)
    #: What was forgotten on the second machine: gone here, too, once both have told each other everything.
    leaving: dict[str, str] = field(factory=dict)
    gone: dict[str, str] = field(factory=dict)
    unsure: dict[str, str] = field(factory=dict)
    #: The chat and the time of each move, whether its message is still there or not.
    moves: list[list[Any]] = field(factory=list)
    secrets: list[str] = field(factory=list)

    def copy(self) -> Self:
        """Return a model that another process may change."""
        return type(self)(**json.loads(json.dumps(asdict(self))))

    def secret(self, secret: str) -> None:
        """Learn of a secret, which may be in no byte but those of records."""
        self.secrets.append(secret)

    def arrived(self, name: str) -> None:
        """Learn that what was saved on the second machine has come here."""
        if name in self.far:
            self.saved[name] = self.far.pop(name)

    def settled(self, notes: Mapping[str, str]) -> None:
        """Learn that somebody has found these notes, and all that was said: nothing but a change may undo that."""
        self.notes = dict(notes)
        self.seen = sorted(self.said.values())
        for name in notes:
            self.unsure.pop(name, None)

    def words(self) -> list[str]:
        """Return the words that a search may look for."""
        return sorted({*self.saved.values(), *self.said.values(), *self.facts.values()})

    def target(self, name: str, word: str) -> None:
        """Learn that a forgetting begins: from now on the text may be either."""
        for known in (self.saved, self.said, self.facts, self.hidden, self.far, self.notes):
            known.pop(name, None)
        self.unsure[name] = word

    def has_other(self, operation: Operation, name: str) -> bool:
        """Return whether another text has the name of what an operation has made."""
        made = _MAKES.get(operation.kind)
        return made in {"saved", "facts", "agents"} and getattr(self, made).get(name, operation.word) != operation.word

    def hear(self, said: Sequence[Any], operation: Operation) -> None:
        """Learn from what a process says of an operation."""
        match said:
            case "target" | "arrived" | "secret" as what, *words:
                getattr(self, what)(*words)
            case "end", _, name, problem:
                self.end(operation, name, problem)
            case "end of other", name, problem:
                self.end(beside_of(operation), name, problem)

    def end(self, operation: Operation, name: str, problem: str) -> None:
        """Learn how an operation ended: with the name of what it made, or with an error or a notice."""
        kind, word = operation.kind, operation.word
        if kind == "move" and not problem:
            self._moved(operation)
        if problem:
            self.died(operation)
        elif kind in _ENDS and name in self.unsure:
            getattr(self, _ENDS[kind])[name] = self.unsure.pop(name)
        elif kind == "edit" and name in self.unsure:
            self.edited[word] = self.unsure.pop(name)
            self.said[name] = word
        elif kind == "purge":
            chat = [known for known in self.unsure if known.startswith(f"{CHAT.name}/")]
            self.gone |= {known: self.unsure.pop(known) for known in chat}
        elif kind == "note" and name:
            self.unsure.pop(name, None)
            self.notes[name] = word  # two who write one note may each tell of it before either has written
        elif name and kind == "index":
            self.seen = sorted(self.said.values())
        elif name and kind == "far":
            (self.far if name.startswith("saved/") else self.far_said)[name] = word
        elif name and kind in _MAKES:
            getattr(self, _MAKES[kind])[name] = word

    def died(self, operation: Operation) -> None:
        """Learn that the process died in an operation."""
        self.unsure[operation.word] = operation.word
        if operation.kind == "core":
            self.core.clear()  # the key may have its earlier value, or the later one
        elif operation.kind == "move":
            self._moved(operation)  # its message may be there

    def _moved(self, operation: Operation) -> None:
        meta, at = move_of(operation)
        self.moves.append([_chat_of(meta).name, at.timestamp()])


@define
class Judge:
    """Looks at what a life has left, as a process that was not there."""

    home: Home
    model: Model
    at: float

    def at_once(self, memory: Memory) -> Iterator[str]:
        """Yield what is not as it was promised as soon as a process has died, before anything repairs it.

        An operation that follows would hide it: an index run reads the journals again.
        """
        yield from self._found(memory, "after a death", latest=_LATEST)

    def problems(self) -> Iterator[str]:
        """Yield everything that is not as it was promised; afterwards the index has been made anew."""
        yield from self.forgotten_bytes()
        if is_shared(self.home):
            yield from self._met()
        with self.home.open() as memory:
            yield from self._found(memory, "as found")
            if self.home.notes.exists():
                memory.index(self.home.notes)
            memory.index()
            yield from self.forgotten_bytes()
            yield from self._found(memory, "after index")
            yield from self._kept(memory)
            yield from self._once_indexed(memory)
        yield from self._advised()
        connection = apsw.Connection(str(self.home.data / "klaw.db"))
        if (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            yield f"integrity_check: {found[:2]}"
        connection.close()
        yield from self.forgotten_bytes()
        yield from (f"{path.name} is left" for path in self.home.data.rglob("*.rebuild*"))

    def found_by_all(self, memory: Memory) -> Iterator[str]:
        """Yield what is not as it was promised, whatever the store is; afterwards the index has been made anew."""
        yield from self._found(memory, "as found")
        if self.home.notes.exists():
            memory.index(self.home.notes)
        with suppress(WorkspaceError):  # there may be nothing to index
            memory.index()
        yield from self._found(memory, "after index")
        yield from self._once_indexed(memory)

    def _once_indexed(self, memory: Memory) -> Iterator[str]:
        """Yield what is not as it was promised of homes, findings, contexts and the agent; afterwards it is rebuilt."""
        yield from self._homes(memory)
        if self.home.swapped.exists() and any(each.check == "vector-space" for each in memory.doctor().findings):
            memory.reindex()  # it was advised, and has not been done or has not ended
        yield from _doctor(memory)
        yield from self._told(memory)
        yield from as_agent(self.home, lambda agent: list(self._agents(agent)))
        memory.reindex()
        yield from self._found(memory, "after reindex")

    def _advised(self) -> Iterator[str]:
        """Do what the findings of ``klaw doctor`` advise, harmless ones too; afterwards they must be gone."""
        with self.home.open() as memory:
            advised = {each.check: command_in(each.hint or "") for each in memory.doctor().findings}
        if not any(advised.values()):
            return
        for words in sorted({words for words in advised.values() if words}):
            code, told = run_command(self.home, words)
            if code:
                yield f"the advice 'klaw {' '.join(words)}' has failed: {told[-300:]}"
        with self.home.open() as memory:
            left = {each.check for each in memory.doctor().findings}
        for check, words in advised.items():
            if words and check in left:
                yield f"after 'klaw {' '.join(words)}' there is still what advised it: {check}"

    def _met(self) -> Iterator[str]:
        """Let both machines tell each other everything; look at the second one, and at what the folder carries."""
        second = second_of(self.home)
        with self.home.open() as memory, second.open() as other:
            for each in (memory, other):  # what a crash has left undone
                with suppress(WorkspaceError):
                    each.index()
            yield from meet(self.home, memory, other)
            self.model.gone |= self.model.leaving
            self.model.saved |= self.model.far
            for name, word in self.model.saved.items():
                if name not in names_of(other, word):
                    yield "what was saved is not found on the second machine"
            for word in (*self.model.said.values(), *self.model.far_said.values()):
                if not all(names_of(each, word) for each in (memory, other)):
                    yield "what was said is not found on both machines"
            for word in self.model.gone.values():
                if names_of(other, word):
                    yield "what was forgotten is found on the second machine"
            yield from _doctor(other)
        for each in (second.data, self.home.data):
            yield from (f"both machines have met: {problem}" for problem in self.forgotten_bytes(each))
        told = carried(self.home)
        if any(word in told or word.capitalize() in told for word in self.model.gone.values()):
            yield "the folder carries what was forgotten"

    def forgotten_bytes(self, directory: Path | None = None) -> Iterator[str]:
        """Look for what was forgotten in the bytes of every file, and for secrets in those of all but records."""
        for path in (directory or self.home.data).rglob("*"):
            if not path.is_file() or path.name == EDITED:
                continue
            data = path.read_bytes()
            if any(word.encode() in data or word.capitalize().encode() in data for word in self.model.gone.values()):
                yield f"what was forgotten is in {path.name}"
            if any(digest in data for digest in self._digests(path)):
                yield f"the vector of what was forgotten is in {path.name}"
            is_record = path.name in _RECORDS or path.parent.parent.name == "conversations"
            if not is_record and any(secret.encode() in data for secret in self.model.secrets):
                yield f"a secret is in {path.name}"

    def _digests(self, path: Path) -> Iterator[bytes]:
        """Yield the keys of the vectors of forgotten texts, if it is a file that may have them."""
        if path.name.startswith("klaw.db"):
            for word, form in product(self.model.gone.values(), FORMS):
                yield bytes.fromhex(text_hash(form.format(word)))

    def _found(self, memory: Memory, when: str, latest: int = 0) -> Iterator[str]:
        """Look for what is there at once, or for the latest of each kind."""
        for name, word in [*self.model.saved.items()][-latest:]:
            if name not in names_of(memory, word):
                yield f"{when}: a saved text is not found"
        yield from self._gone(memory, when, latest)
        yield from self._hidden(memory, when, latest)
        yield from self._seen(memory, when, latest)
        if when not in {"as found", "after a death"}:
            yield from self._indexed(memory, when)

    def _gone(self, memory: Memory, when: str, latest: int) -> Iterator[str]:
        """Look for what was forgotten."""
        for name, word in [*self.model.gone.items()][-latest:]:
            if names_of(memory, word):
                yield f"{when}: {name.partition('/')[0]}: what was forgotten is found"
            if when == "after index" and word in str(memory.context(word)):
                yield f"{when}: what was forgotten is in a context"

    def _seen(self, memory: Memory, when: str, latest: int) -> Iterator[str]:
        """Look for what an index run has seen."""
        for name, word in [*self.model.notes.items()][-latest:]:
            if name not in names_of(memory, word):
                yield f"{when}: a note that was indexed is not found"
        for word in [word for word in self.model.seen if word in self.model.said.values()][-latest:]:
            if not any(path.startswith("conversations/") for path in names_of(memory, word)):
                yield f"{when}: a message that was indexed is not found"

    def _hidden(self, memory: Memory, when: str, latest: int = 0) -> Iterator[str]:
        """Look for what is kept, and shown to none, or to the agent only."""
        for word in [*self.model.hidden.values()][-latest:]:
            if names_of(memory, word, "facts") or word in str(memory.context(word)):
                yield f"{when}: a fact that was retracted or archived is shown"
        for word in [*self.model.agents.values()][-latest:]:
            if names_of(memory, word):
                yield f"{when}: the owner finds what the agent has saved"

    def _indexed(self, memory: Memory, when: str) -> Iterator[str]:
        """Look for what only an index run promises to find."""
        for path in self.home.notes.iterdir() if self.home.notes.exists() else ():
            if f"notes/{path.name}" not in names_of(memory, path.read_text("utf-8").split()[2]):
                yield f"{when}: a note is not found"
        for word in self.model.said.values():
            if not any(path.startswith("conversations/") for path in names_of(memory, word)):
                yield f"{when}: a message is not found"
        for word in self.model.edited.values():
            if names_of(memory, word):
                yield f"{when}: what a message said before it was edited by hand is found"
        if self.home.private and not names_of(memory, PRIVATE):
            yield f"{when}: the owner's configured source is not found"

    def _told(self, memory: Memory) -> Iterator[str]:
        """Ask about each note, whose name and text may be a stranger's."""
        for path in self.home.notes.iterdir() if self.home.notes.exists() else ():
            word = path.read_text("utf-8").split()[2]
            yield from forged(str(memory.context(word)))
            yield from prompt_problems(recalled(memory, word))

    def _agents(self, memory: Memory) -> Iterator[str]:
        """Look at the agent's memory, through the agent."""
        if self.model.agents:
            memory.index()
        for name, word in self.model.agents.items():
            if name not in names_of(memory, word):
                yield "what the agent has saved is not found"
        for word in (PRIVATE, *self.model.words()):
            if names_of(memory, word):
                yield "the agent finds what is the owner's"

    def _kept(self, memory: Memory) -> Iterator[str]:
        records = FileJournal(self.home.data / "saved.jsonl").replay().records
        if lost := {name for name, word in self.model.saved.items() if word not in str(records.get(name))}:
            yield f"saved texts are lost: {len(lost)}"
        if wrong := [name for name in records if not _ID.fullmatch(name)]:
            yield f"saved texts have ids of other kinds: {len(wrong)}"
        written = {
            message.content for metas in PEOPLE for meta in metas for message in _messages(memory, _chat_of(meta))
        }
        lost_words = [word for word in self.model.said.values() if not any(word in text.lower() for text in written)]
        if lost_words:
            yield f"messages are lost: {len(lost_words)}"
        known = memory.extension(Facts).state().facts
        if lost := (self.model.facts | self.model.hidden).keys() - {f"facts/{name}" for name in known}:
            yield f"facts are lost: {len(lost)}"
        told = memory.core.get().user
        if wrong := [key for key, word in self.model.core.items() if told.get(key) != word]:
            yield f"keys of core memory are not what was set: {len(wrong)}"

    def _homes(self, memory: Memory) -> Iterator[str]:
        """Ask for each person's home just after each move, once the facts have been taken from the messages."""
        facts = memory.extension(Facts)
        facts.extract()
        are_proposed = bool(facts.state().proposals)  # a batch that would end many facts only proposes it
        moves = {
            chats: sorted(
                (message.ts, message.content[len(_MOVED) : -1])
                for chat in chats
                for message in _messages(memory, chat)
                if _is_move(message.content)
            )
            for chats in (tuple(map(_chat_of, metas)) for metas in PEOPLE)
        }
        ends = [(each.value, each.valid_to) for each in facts.state().facts.values() if each.slot == "home"]
        # At the time of somebody's move, the others live where they did.
        for moment_of_one in sorted(at for own in moves.values() for at, _ in own):
            known = facts.list(as_of=moment_of_one + timedelta(seconds=1))
            for chats, own in moves.items():
                names = {chat.name for chat in chats}
                homes = {each.value for each in known if each.slot == "home" and _said_in(each, names)}
                city = next((city for at, city in reversed(own) if at <= moment_of_one), None)
                gone = {moment(at) for chat, at in self.model.moves if chat in names} - {at for at, _ in own}
                if not homes and any(value == city and end in gone for value, end in ends):
                    continue  # nobody returns because a later move was forgotten
                if city is not None and (city not in homes or (len(homes) > 1 and not are_proposed)):
                    yield f"at the time of a move the home is {len(homes)} other than the one moved to"


def _said_in(fact: Any, names: set[str]) -> bool:
    return any(quote.chat in names for quote in fact.quotes)


def _is_move(text: str) -> bool:
    return text.startswith(_MOVED)


def names_of(memory: Memory, word: str, collection: str | None = None) -> list[str]:
    """Return the names under which a search by words finds a word."""
    found = memory.search(word, 5, mode="fts", collection=collection)
    return [result.path for result in found if word in result.content.lower()]


def _chat_of(meta: Mapping[str, Any]) -> Chat:
    return Chat(meta["channel"], meta["chat_id"])


def _messages(memory: Memory, chat: Chat) -> list[Any]:
    return [line.message for line in memory.conversations.read(chat) if not isinstance(line, BadLine)]


def _doctor(memory: Memory) -> Iterator[str]:
    for finding in memory.doctor().findings:
        if finding.severity in {"error", "warning"} and finding.check not in _HARMLESS:
            yield f"doctor: {finding.severity} {finding.check}: {finding.what}"


def moment(at: float) -> datetime:
    """Return a moment of a life."""
    return datetime.fromtimestamp(at, UTC)


def said_at(operation: Operation, *, late: bool = False) -> datetime:
    """Return when something is said. What is said late is of an earlier day."""
    return moment(START) + timedelta(minutes=operation.number % BESIDE_FROM) - _LATE * late


def move_of(operation: Operation) -> tuple[Mapping[str, Any], datetime]:
    """Return where somebody tells of a move, and when. What Anna says in her second chat is said late."""
    metas = PEOPLE[int(operation.pick * 100) % len(PEOPLE)]
    meta = metas[operation.number % len(metas)]
    return meta, said_at(operation, late=meta != metas[0])
