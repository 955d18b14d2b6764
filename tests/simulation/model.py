"""What a life must leave behind: what was acknowledged, what was forgotten, and what may be either.

Three states are enough. What was acknowledged must be there; what was forgotten must be in no byte; of what was under
way when a process died, was interrupted or was refused, either is right, and nothing is asked. A person's moves also
have an order in time: at each moment, the home is the one of the last move before it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import apsw
from attrs import asdict, define, field
from lives import Operation
from scenes import CHAT, Home

from klaw_core import Memory
from klaw_facts import Facts
from klaw_journals import BadLine
from klaw_journals.record_journal import FileJournal

# What a crash may leave to be seen, and costs nothing.
_HARMLESS = {"leftovers", "disk-space", "damaged-copy", "saved-lines", "conversation-lines", "fact-lines"}


@define
class Model:
    """Names of what was acknowledged, each with the word of its text; words of what is gone; secrets."""

    saved: dict[str, str] = field(factory=dict)
    said: dict[str, str] = field(factory=dict)
    facts: dict[str, str] = field(factory=dict)
    core: dict[str, str] = field(factory=dict)
    gone: dict[str, str] = field(factory=dict)
    unsure: dict[str, str] = field(factory=dict)
    secrets: list[str] = field(factory=list)

    def copy(self) -> Self:
        """Return a model that another process may change."""
        return type(self)(**json.loads(json.dumps(asdict(self))))

    def words(self) -> list[str]:
        """Return the words that a search may look for."""
        return sorted({*self.saved.values(), *self.said.values(), *self.facts.values()})

    def target(self, name: str, word: str) -> None:
        """Learn that a forgetting begins: from now on the text may be either."""
        for known in (self.saved, self.said, self.facts):
            known.pop(name, None)
        self.unsure[name] = word

    def end(self, operation: Operation, name: str, problem: str) -> None:
        """Learn how an operation ended: with the name of what it made, or with an error or a notice."""
        word = operation.word
        match operation.kind:
            case _ if problem:
                self.died(operation)
            case "save" if name:
                self.saved[name] = word
            case "say" | "move":
                self.said[name] = word
            case "fact":
                self.facts[name] = word
            case "core":
                self.core[name] = word
            case "forget" | "unsay" | "unfact" if name in self.unsure:
                self.gone[name] = self.unsure.pop(name)
            case "purge":
                chat = [known for known in self.unsure if known.startswith(f"{CHAT.name}/")]
                self.gone |= {known: self.unsure.pop(known) for known in chat}

    def died(self, operation: Operation) -> None:
        """Learn that the process died in an operation."""
        self.unsure[operation.word] = operation.word
        if operation.kind == "core":
            self.core.clear()  # the key may have its earlier value, or the later one


@define
class Judge:
    """Looks at what a life has left, as a process that was not there."""

    home: Home
    model: Model
    at: float

    def problems(self) -> Iterator[str]:
        """Yield everything that is not as it was promised; afterwards the index has been made anew."""
        yield from self.forgotten_bytes()
        with self.home.open() as memory:
            yield from self._found(memory, "as found")
            if self.home.notes.exists():
                memory.index(self.home.notes)
            memory.index()
            yield from self.forgotten_bytes()
            yield from self._found(memory, "after index")
            yield from self._kept(memory)
            yield from self._homes(memory)
            yield from _doctor(memory)
            memory.reindex()
            yield from self._found(memory, "after reindex")
        connection = apsw.Connection(str(self.home.data / "klaw.db"))
        if (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            yield f"integrity_check: {found[:2]}"
        connection.close()
        yield from self.forgotten_bytes()
        yield from (f"{path.name} is left" for path in self.home.data.rglob("*.rebuild*"))

    def forgotten_bytes(self) -> Iterator[str]:
        """Look for what was forgotten in the bytes of every file, and for secrets in those of all but records."""
        for path in self.home.data.rglob("*"):
            if not path.is_file():
                continue
            data = path.read_bytes()
            if any(word.encode() in data or word.capitalize().encode() in data for word in self.model.gone.values()):
                yield f"what was forgotten is in {path.name}"
            is_record = path.name == "saved.jsonl" or path.parent.parent.name == "conversations"
            if not is_record and any(secret.encode() in data for secret in self.model.secrets):
                yield f"a secret is in {path.name}"

    def _found(self, memory: Memory, when: str) -> Iterator[str]:
        for name, word in self.model.saved.items():
            if name not in _paths(memory, word):
                yield f"{when}: a saved text is not found"
        for name, word in self.model.gone.items():
            if _paths(memory, word):
                yield f"{when}: {name.partition('/')[0]}: what was forgotten is found"
            if word in str(memory.context(word)):
                yield f"{when}: what was forgotten is in a context"
        if when != "as found":
            yield from self._indexed(memory, when)

    def _indexed(self, memory: Memory, when: str) -> Iterator[str]:
        """Look for what only an index run promises to find."""
        for path in self.home.notes.iterdir() if self.home.notes.exists() else ():
            if f"notes/{path.name}" not in _paths(memory, path.read_text("utf-8").split()[2]):
                yield f"{when}: a note is not found"
        for word in self.model.said.values():
            if not any(path.startswith("conversations/") for path in _paths(memory, word)):
                yield f"{when}: a message is not found"

    def _kept(self, memory: Memory) -> Iterator[str]:
        journal = FileJournal(self.home.data / "saved.jsonl").replay().records.values()
        if lost := self.model.saved.keys() - {record["id"] for record in journal}:
            yield f"saved texts are lost: {len(lost)}"
        if lost := self.model.said.keys() - {f"{CHAT.name}/{message.id}" for message in _messages(memory)}:
            yield f"messages are lost: {len(lost)}"
        known = memory.extension(Facts).state().facts
        if lost := self.model.facts.keys() - {f"facts/{name}" for name in known}:
            yield f"facts are lost: {len(lost)}"
        told = memory.core.get().user
        if wrong := [key for key, word in self.model.core.items() if told.get(key) != word]:
            yield f"keys of core memory are not what was set: {len(wrong)}"

    def _homes(self, memory: Memory) -> Iterator[str]:
        """Ask for the home just after each move, once the facts have been taken from the messages."""
        facts = memory.extension(Facts)
        facts.extract()
        moves = sorted(
            (message.ts, message.content.split()[-1][:-1]) for message in _messages(memory) if _is_move(message.content)
        )
        for moment, city in moves:
            homes = {fact.value for fact in facts.list(as_of=moment + timedelta(seconds=1)) if fact.slot == "home"}
            are_proposed = bool(facts.state().proposals)  # a batch that would end many facts only proposes it
            if city not in homes or (len(homes) > 1 and not are_proposed):
                yield f"at the time of a move the home is {len(homes)} other than the one moved to"


def _is_move(text: str) -> bool:
    return text.startswith("I moved to ")


def _paths(memory: Memory, word: str) -> list[str]:
    return [result.path for result in memory.search(word, 5, mode="fts") if word in result.content.lower()]


def _messages(memory: Memory) -> list[Any]:
    return [line.message for line in memory.conversations.read(CHAT) if not isinstance(line, BadLine)]


def _doctor(memory: Memory) -> Iterator[str]:
    for finding in memory.doctor().findings:
        if finding.severity in {"error", "warning"} and finding.check not in _HARMLESS:
            yield f"doctor: {finding.severity} {finding.check}: {finding.what}"


def moment(at: float) -> datetime:
    """Return a moment of a life."""
    return datetime.fromtimestamp(at, UTC)
