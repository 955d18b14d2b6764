"""What a person and her agent do with a memory in one process."""

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import tzset
from typing import Any

import apsw
from interrupts import Sides
from lives import Operation
from model import Model, move_of, names_of, said_at
from others import FORGED, NOTES, forged, to_import
from scenes import CHAT, Home
from world import Files

from klaw_core import IndexReport, Memory, QueryError, RecordError
from klaw_facts import Facts
from klaw_journals import ImportReport
from klaw_journals.messages import Message

_KEYS = 3  # of core memory
_SAID_LATE = 3 / 4
_AGAIN = 1 / 6  # of what is said has an id that another message has
#: The dimensions that the embedder takes in turns; what is looked for by its meaning must be embedded again.
_DIMENSIONS, _REINDEXED = (24, 16), 2 / 3
#: What prevents a text from being indexed without any fault of the disk.
_CAUSES = ("is locked", "in use by", "configured embedder is", "rebuil", "an id that another message of the chat has")
_ZONES = ("UTC", "Asia/Kolkata", "America/New_York", "Pacific/Chatham")


class Deeds:
    """What is done with the memory of a home. Each deed returns the name of what it made or forgot."""

    home: Home
    memory: Memory
    model: Model
    files: Files
    #: Says something to who keeps the life.
    _say: Any
    #: Who stays beside this process; whether it does something while another one stands still.
    _company: str
    _is_beside: bool
    _sides: Sides | None
    #: The kinds of two operations that two threads do.
    _of_pair: set[str]

    def _problem(self, text: str) -> None:
        self._say("problem", text)

    def _pick(self, operation: Operation, names: Any) -> Any:
        found = sorted(names)
        return found[int(operation.pick * len(found))] if found else None

    def _begin_of(self, name: str, word: str) -> None:
        """Say that something begins of which either may be true until it ends."""
        self.model.target(name, word)
        self._say("target", name, word)

    def _append(
        self,
        operation: Operation,
        text: str,
        *,
        meta: Any = CHAT.meta,
        id: str = "",  # noqa: A002
        late: bool = False,
    ) -> str:
        # What another process says meanwhile is earlier: a message that follows a later one is of that one's time.
        at = said_at(operation, late=late) - timedelta(minutes=self._is_beside / 2)
        message = self.memory.conversations.append(Message("user", text, at, id=id, meta=meta))
        return f"{message.meta['channel']}_{message.meta['chat_id']}/{message.id}"

    def _forget_one(self, operation: Operation, names: dict[str, str]) -> str:
        name = self._pick(operation, names)
        if name is None:
            return ""
        word = names[name]
        self.model.target(name, word)
        self._say("target", name, word)
        try:
            self.memory.forget(name)
        except QueryError:  # several messages have this id, and the error lists their names
            return ""
        return str(name)

    def _is_watched(self, operation: Operation) -> bool:
        """Return whether a change of a file is left to ``klaw watch``."""
        return self._company == "watch" and operation.number % 2 == 0

    def _asked(self, operation: Operation, word: str) -> str:
        """Return what is asked: at each attempt something else, because the vector of a question is kept."""
        return f"{word} again{operation.attempt}" if operation.attempt else word

    def _noted(self) -> list[str]:
        """Return the words of the notes."""
        return [told[2] for path in self.home.notes.glob("*.md") if len(told := _words_of(path)) > 2]

    def _shown(self, where: str, told: str) -> None:
        """Look for what none may be shown."""
        if any(word in told for word in (*self.model.gone.values(), *self.model.secrets)):
            self._problem(f"{where}: it has what was forgotten, or a secret")
        if any(word in told for word in self.model.hidden.values()):
            self._problem(f"{where}: it has a fact that was retracted or archived")

    def do_save(self, operation: Operation) -> str:
        passage = self.memory.save(f"{operation.word} was saved")
        self._noticed(operation, [passage.notice] if passage.notice else [])
        return "" if passage.notice else passage.path

    def _noticed(self, operation: Operation, notices: Iterable[str]) -> None:
        """Judge what is said of texts that were not indexed: it is right only if it is about the fault."""
        is_full = operation.fault is not None and operation.fault.kind == "full"
        if self._is_beside or self._company or is_full:
            return
        for notice in notices:
            if not any(cause in notice for cause in _CAUSES):
                self._problem(f"{operation.kind}: not indexed: {notice.rpartition(str(self.home.root))[2]}")

    def _reported(self, operation: Operation, report: IndexReport | ImportReport) -> bool:
        """Judge what a report says of texts that were not indexed; return whether all were."""
        self._noticed(operation, report.notices)
        # A line of a journal that a crash or a hand has cut is skipped for ever. What it had is looked for elsewhere.
        skipped = (f"{each.path}: {each.reason}" for each in report.skipped)
        self._noticed(operation, (told for told in skipped if ".jsonl" not in told))
        return not report.notices

    def do_say(self, operation: Operation) -> str:
        """Say something, sometimes with an id that another message has, as the messages of some programs do."""
        first = self._pick(operation, [name for name in self.model.said if name.startswith(f"{CHAT.name}/")])
        id_ = first.partition("/")[2].partition("~")[0] if first and operation.pick < _AGAIN else ""
        late = not id_ and operation.pick > _SAID_LATE
        return self._append(operation, f"{operation.word} was said", id=id_, late=late)

    def do_move(self, operation: Operation) -> str:
        """Somebody moves. What Anna says in her second chat is of an earlier day, and becomes known later."""
        meta, at = move_of(operation)
        city = f"{operation.word.capitalize()}, Texas"  # a known place: a home is no other
        return self._append(operation, f"I moved to {city}.", meta=meta, late=at < said_at(operation))

    def do_forget(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.saved)

    def do_unsay(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.said)

    def do_unfact(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.facts | self.model.hidden)

    def do_retract(self, operation: Operation) -> str:
        """Hide a fact: it was never true, or is put away."""
        name = self._pick(operation, self.model.facts)
        if name is None:
            return ""
        word = self.model.facts[name]
        self.model.target(name, word)
        self._say("target", name, word)
        keeper = self.memory.extension(Facts).keeper
        (keeper.retract if operation.number % 2 else keeper.archive)(name)
        return str(name)

    def do_note(self, operation: Operation) -> str:
        self.home.notes.mkdir(exist_ok=True)
        name = NOTES[int(operation.pick * len(NOTES))]
        path = self.home.notes / f"{name}.md"
        more = "" if name in NOTES[:3] else f"\n{FORGED}\n"
        self._begin_of(f"notes/{path.name}", operation.word)
        text = f"# Note\n\n{operation.word} stands here.\n\n## More\n\n{operation.word} again\n{more}"
        path.write_text(text, "utf-8")
        os.utime(path, (operation.at, operation.at))
        if self._is_watched(operation):
            return ""
        is_whole = self._reported(operation, self.memory.index(self.home.notes))
        return f"notes/{path.name}" if is_whole else ""

    def do_unnote(self, operation: Operation) -> None:
        path: Path | None = self._pick(operation, self.home.notes.glob("*.md"))
        if path is not None:
            self._begin_of(f"notes/{path.name}", "")
            with suppress(FileNotFoundError):  # another thread has renamed or deleted it
                self.files.forget(path)
                path.unlink()
            if not self._is_watched(operation):
                self._reported(operation, self.memory.index(self.home.notes))

    def do_rename(self, operation: Operation) -> str:
        """Rename a note: it is found under its new name only."""
        path: Path | None = self._pick(operation, self.home.notes.glob("*.md"))
        told = [] if path is None else _words_of(path)
        if path is None or not told:
            return ""
        word, to = told[2], path.with_name(f"r{operation.number}.md")
        for each in (path, to):
            self._begin_of(f"notes/{each.name}", word)
        with suppress(FileNotFoundError):
            path.rename(to)
        if self._is_watched(operation):
            return ""
        is_whole = self._reported(operation, self.memory.index(self.home.notes))
        was_renamed = path == to  # by the same operation, which a full disk ended
        if not (self._company or was_renamed) and f"notes/{path.name}" in names_of(self.memory, word):
            self._problem("rename: a note is found under its earlier name")
        return f"notes/{to.name}" if is_whole else ""

    def _drop_sides(self) -> None:
        """Close the connection of who looks from outside; the disk may be full."""
        sides, self._sides = self._sides, None
        with suppress(apsw.Error):
            if isinstance(sides, Sides):
                sides.close()

    def do_model(self, operation: Operation) -> None:
        """Change the embedder in the configuration; then do what is advised, or forget to do it."""
        self.memory.close()
        self._drop_sides()
        was = int(self.home.swapped.read_text()) if self.home.swapped.exists() else _DIMENSIONS[1]
        self.home.swapped.write_text(str(next(each for each in _DIMENSIONS if each != was)))
        self.memory = self.home.open()
        if operation.pick < _REINDEXED:
            self._reported(operation, self.memory.reindex())

    def do_zone(self, operation: Operation) -> None:
        """Travel to another time zone."""
        os.environ["TZ"] = _ZONES[int(operation.pick * len(_ZONES))]
        tzset()

    def do_index(self, operation: Operation) -> str:
        if not self.home.notes.exists():
            return ""
        is_whole = self._reported(operation, self.memory.index())
        # It may have read before another one has written.
        return "all" if is_whole and not self._of_pair and not self._overtaken else ""

    def do_search(self, operation: Operation) -> None:
        word = self._asked(operation, self._pick(operation, self.model.words()) or operation.word)
        found = [result.content for result in self.memory.search(word, 5)]
        for text in found:
            if any(gone in text for gone in self.model.gone.values()):
                self._problem("search: what was forgotten is found")

    def do_context(self, operation: Operation) -> None:
        word = self._pick(operation, self._noted()) if operation.number % 2 else None
        word = self._asked(operation, word or self._pick(operation, self.model.words()) or operation.word)
        told = str(self.memory.context(word))
        self._shown("context", told)
        for problem in forged(told):
            self._problem(f"context: {problem}")

    def do_fact(self, operation: Operation) -> str:
        return f"facts/{self.memory.extension(Facts).remember(f'{operation.word} is a fact').id}"

    def do_extract(self, _: Operation) -> None:
        self.memory.extension(Facts).extract()

    def do_core(self, operation: Operation) -> str:
        key = f"key {int(operation.pick * _KEYS)}"
        self.memory.core.update("user", key, operation.word)
        return key

    def do_export(self, _: Operation) -> None:
        path = self.home.root / "export.jsonl"
        self.memory.export(path)
        told = path.read_text("utf-8")
        path.unlink()
        for name, word in self.model.saved.items():
            if word not in told:
                self._problem(f"export: {name.partition('/')[0]}: a saved text is missing")

    def do_reindex(self, operation: Operation) -> None:
        self._reported(operation, self.memory.reindex())

    def do_purge(self, _: Operation) -> None:
        for name, word in sorted(self.model.said.items()):
            self.model.target(name, word)
            self._say("target", name, word)
        self.memory.conversations.purge(CHAT)

    def do_import(self, operation: Operation) -> str:
        """Import what a stranger has written: no record may have an id that is not of its kind."""
        text, name = to_import(operation.word, operation.pick)
        path = self.home.root / "import.jsonl"
        path.write_text(text, "utf-8")
        if operation.pick < 1 / 2:
            return name if self._reported(operation, self.memory.import_(path)) else ""
        try:
            self.memory.import_(path)
        except RecordError:
            return ""
        self._problem("import: an id of another kind was taken")
        return ""

    def do_doctor(self, _: Operation) -> None:
        self.memory.doctor()

    def do_restart(self, _: Operation) -> None:
        """The process ends before this operation, and another goes on."""

    def do_clock(self, _: Operation) -> None:
        """The clock was set."""


def _words_of(path: Path) -> list[str]:
    """Return the words of a note; none if another thread has renamed or deleted it."""
    with suppress(FileNotFoundError):
        return path.read_text("utf-8").split()
    return []
