"""The process that lives a part of a life. It says what it begins and what was acknowledged; only that is promised."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from http.client import HTTPException
from pathlib import Path
from random import Random
from time import tzset
from typing import Any

import others
from attrs import evolve
from company import ask
from interrupts import Interrupter, Sides
from lives import START, Fault, Known, Operation, add_met, beside_of
from machines import FAR_CHAT, TRICKS, Trick, names_in, open_second, second_of, share, synchronise
from model import EDITED, Model, moment, move_of, names_of, said_at
from others import (
    AGENT,
    FORGED,
    NOTES,
    PRIVATE,
    as_agent,
    command_in,
    damage,
    forged,
    prompt_problems,
    recalled,
    run_command,
    to_import,
    tool,
    typed,
    with_offers,
)
from scenes import CHAT, Home
from together import Together
from turns import take_turns
from world import STUCK, WAITING, Clock, Disk, Files, listen_to_stderr, said_on_stderr, seed_dice

from klaw_core import (
    KlawError,
    Memory,
    NotFoundError,
    QueryError,
    RecordError,
    StoreFullError,
    StoreLockedError,
    WorkspaceError,
)
from klaw_facts import Facts
from klaw_journals.messages import Message

_KEYS = 3  # of core memory
_SAID_LATE = 3 / 4
_AGAIN = 1 / 6  # of what is said has an id that another message has
_COMMANDS = 3  # that a person tries, each from the hint of the one before
#: Not interrupted: they work in other threads, or end with a process of their own.
_WHOLE = {"request", "tool", "damage", "shell"}
#: What a person does once more when the disk is no longer full: the error's hint says so.
_TRIED_AGAIN = {
    "save",
    "say",
    "move",
    "note",
    "index",
    "search",
    "context",
    "fact",
    "extract",
    "core",
    "reindex",
    "doctor",
    "model",
    "rename",
}
#: What ends something, which another process may have ended.
_OF_ONE = {"forget", "unsay", "unfact", "retract"}
#: What a person does only while no other program has the memory open.
_ALONE_ONLY = {"damage", "edit", "model"}
#: The dimensions that the embedder takes in turns; what is looked for by its meaning must be embedded again.
_DIMENSIONS, _REINDEXED = (24, 16), 2 / 3
_ZONES = ("UTC", "Asia/Kolkata", "America/New_York", "Pacific/Chatham")
_BESIDE_FILES = 1000  # the number of the first file that another process sees


def _aside(work: Callable[[], object]) -> None:
    """Do something in a thread of its own, which no interrupt reaches."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Actor:
    """Lives operations in this process, and looks around after each error."""

    #: Faults that are possible while another process works, or in a second store.
    in_company: frozenset[str] = frozenset({"crash", "full"})  # only this process's steps are known

    def __init__(
        self,
        home: Home,
        say: Any,
        seed: str,
        at: float,
        model: Model,
        *,
        beside: bool = False,
        company: str = "",
        together: Together | None = None,
    ) -> None:
        self.home, self.model, self._say = home, model, say
        self._is_beside, self._company = beside, company
        self.clock = Clock(at, waits=bool(company))
        self.clock.install()
        listen_to_stderr()
        self.files = Files(_BESIDE_FILES if beside else 0)
        if not company:  # which sees the numbers of the system
            self.files.install()
        self.disk = Disk(home.data, seed_dice(seed, is_alone=not company), self.clock, beside=beside)
        if together is not None:
            together.join()
            self.disk.others = together
        self.disk.install()
        with_offers(home.registry)
        self.memory = self._open()
        self._sides: Sides | None = None
        self._overtaken: list[Any] = []
        #: The kinds of two operations that two threads do.
        self._of_pair: set[str] = set()
        self.known: dict[str, Known] | None = None

    def _open(self) -> Memory:
        try:
            return self.home.open()
        except StoreLockedError:
            if not self._is_beside:
                raise
            self.disk.keep_steps()  # the other one stands still, and may hold the lock
            os._exit(WAITING)

    def live(self, operation: Operation) -> None:
        """Live one operation, with its fault."""
        self.clock.wall = operation.at
        fault = operation.fault or Fault("")
        if self._company and fault.kind not in self.in_company:
            fault = Fault("")
        if fault.kind == "interrupt" and self._sides is None:
            self._sides = Sides(self.memory, self.home.data, probes=1000 * operation.number)
        self._say("begin", operation.number)
        interrupter = self._interrupter(operation, fault)
        self._overtaken = []
        steps = int(fault.how) if fault.kind == "full" else 1
        step = (fault.kind, fault.step, steps) if fault.kind in {"crash", "power", "full"} else None
        self.disk.expect(step, is_turn=fault.is_turn)
        kept: BaseException | None = None  # the last one, as an interactive Python keeps it
        for number, place in enumerate(fault.earlier, 1):
            kept = self._try(evolve(operation, attempt=number), fault, Interrupter(place))[2]
        if fault.kind == "thread":
            name, problem, kept_last = self._in_two_threads(operation, fault)
        else:
            name, problem, kept_last = self._try(operation, fault, interrupter)
        if self.disk.has_failed:
            self._say("full")
        count, turns = self.disk.count, self.disk.turns
        self.disk.expect(None)
        if self.known is not None:
            places = list(interrupter.places) if isinstance(interrupter, Interrupter) else []
            add_met(self.known, operation.kind, Known(places, count, turns))
        self._end(operation, name, problem)
        if problem == StoreFullError.__name__ and operation.kind in _TRIED_AGAIN:
            name, problem, _ = self._try(operation, Fault(""), nullcontext())
            self._end(operation, name, problem)
        if fault.kind in {"crash", "power"}:  # its step was not reached
            self.disk.die(fault.kind)
        for words in self._overtaken:
            self.model.hear(words, beside_of(operation))
        is_kept = not (kept is None and kept_last is None)
        self._look(operation, fault.kind, interrupted=problem == "KeyboardInterrupt", kept=is_kept)
        del kept, kept_last

    def _end(self, operation: Operation, name: str, problem: str) -> None:
        name = self._still(operation, name)
        if not problem and self.model.has_other(operation, name):
            self._problem(f"{operation.kind}: it has the name of another text, which is lost")
        self.model.end(operation, name, problem)
        self._say("end", operation.number, name, problem)

    def _interrupter(self, operation: Operation, fault: Fault) -> AbstractContextManager[Any]:
        if fault.kind == "interrupt":
            return Interrupter(fault.place)
        if fault.kind == "beside":
            return Interrupter(fault.place, lambda: self._let_another(operation))
        return nullcontext() if self.known is None or operation.kind in _WHOLE else Interrupter()

    def _try(
        self, operation: Operation, fault: Fault, interrupter: AbstractContextManager[Any]
    ) -> tuple[str, str, BaseException | None]:
        """Do an operation; return the name of what it made, the error that ended it, and an interrupt that is kept."""
        try:
            with interrupter:
                return self._do(operation), "", None
        except KeyboardInterrupt as error:
            return "", "KeyboardInterrupt", error if fault.how else None
        except StoreFullError as error:
            if fault.kind != "full":
                self._problem(f"{operation.kind}: the disk was not full: {error}")
            return "", type(error).__name__, None
        except KlawError as error:
            self._refused(operation, fault, error)
            return "", type(error).__name__, None
        except (OSError, HTTPException) as error:
            if operation.kind != "request" or self._company != "serve":
                raise
            return "", type(error).__name__, None  # the server was killed; if not, it is seen that it has ended

    def _in_two_threads(self, operation: Operation, fault: Fault) -> tuple[str, str, None]:
        """Do an operation and another one in two threads; return the name that the first has made, and its error."""
        if self._sides is None:
            self._sides = Sides(self.memory, self.home.data, probes=1000 * operation.number)
        other = beside_of(operation)
        ended: list[tuple[str, str]] = [("", ""), ("", "")]
        self._say("thread")

        def do(number: int, one: Operation) -> None:
            self._of_pair = {operation.kind, other.kind}
            name, problem, _ = self._try(one, fault, nullcontext())
            ended[number] = name, problem

        works = [partial(do, number, one) for number, one in enumerate((operation, other))]
        taken = take_turns(works, Random(f"{operation.word} turns"), STUCK)
        self._of_pair = set()
        self._say("turns", taken)
        name, problem = ended[1]
        name = self._still(other, name)
        self.model.end(other, name, problem)
        self._say("end of other", name, problem)
        return *ended[0], None

    def _still(self, operation: Operation, name: str) -> str:
        """Return the name, unless somebody else has written over that note, or deleted it, meanwhile."""
        if operation.kind != "note" or not name:
            return name
        path = self.home.notes.parent / name
        return name if path.exists() and operation.word in path.read_text("utf-8") else ""

    def _let_another(self, operation: Operation) -> None:
        """Let another process do something while this one stands still."""
        self._overtaken = self._say.ask("beside", operation.number)
        self.disk.add_steps()
        for what, *words in self._overtaken:
            if what == "digest":
                self.disk.digest.update(words[0].encode())

    def _refused(self, operation: Operation, fault: Fault, error: KlawError) -> None:
        """A refusal is right only if it is about the fault: one of another kind would let a person look elsewhere."""
        both = self._of_pair or ({operation.kind, beside_of(operation).kind} if self._overtaken else set())
        # An extension that could not follow a forgetting is reported with the reason.
        is_locked = isinstance(error, StoreLockedError) or "is locked by process" in str(error)
        if (self._is_beside or self._of_pair) and is_locked:
            return  # the other one stands still, and may hold the lock
        if both and both <= _OF_ONE and isinstance(error, NotFoundError):
            return  # the other one has forgotten it
        told = str(error).replace(str(self.home.root), "")
        cause = "the disk was full, but: " if fault.kind == "full" else ""
        self._problem(f"{operation.kind}: {cause}{type(error).__name__}: {told}")

    def _look(self, operation: Operation, fault: str, *, interrupted: bool, kept: bool) -> None:
        if interrupted:
            self._say("interrupts")
        if interrupted or fault == "thread":
            for problem in self._sides.problems(kept=kept) if self._sides else ():
                self._problem(f"after {operation.kind}: {problem}")
        for told in said_on_stderr():
            self._problem(f"{operation.kind}: printed: {told}")
        # A process that stands still may read an old snapshot, and rebuilds end later.
        is_quiet = not self._is_beside and not self._overtaken and not self._company
        if is_quiet and operation.kind in {"forget", "unsay", "unfact", "purge"}:
            # Whoever reads the file of an open database, and closes it, has taken this process's locks from it (POSIX).
            for problem in self._say.ask("look"):
                self._problem(f"after {operation.kind}: {problem}")

    def _problem(self, text: str) -> None:
        self._say("problem", text)

    def _do(self, operation: Operation) -> str:
        """Do what an operation says; return the name of what it made or forgot."""
        if self._company and operation.kind in _ALONE_ONLY:
            return ""
        return str(getattr(self, f"do_{operation.kind}")(operation) or "")

    def _pick(self, operation: Operation, names: Any) -> Any:
        found = sorted(names)
        return found[int(operation.pick * len(found))] if found else None

    def do_save(self, operation: Operation) -> str:
        passage = self.memory.save(f"{operation.word} was saved")
        return "" if passage.notice else passage.path

    def do_secret(self, operation: Operation) -> None:
        """Tell a secret, through one of the doors."""
        letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        secret = "".join(Random(operation.word).choices(letters, k=40))
        self.model.secrets.append(secret)
        self._say("secret", secret)
        text = f"My OpenAI key is sk-proj-{secret}"
        doors: list[Callable[[], object]] = [
            lambda: self.memory.save(text),
            lambda: self._append(operation, text),
            lambda: self.memory.extension(Facts).remember(text),
            lambda: tool(self.memory, "memory_remember", text=text),
            # What makes the server here is the simulator's own, and is not interrupted.
            lambda: _aside(lambda: others.request(self.memory, "POST /api/memories", {"text": text})),
        ]
        with suppress(RecordError):  # a fact of which nothing else is left is refused
            doors[int(operation.pick * len(doors))]()

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

    def _begin_of(self, name: str, word: str) -> None:
        """Say that something begins of which either may be true until it ends."""
        self.model.target(name, word)
        self._say("target", name, word)

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
        report = self.memory.index(self.home.notes)
        return "" if report.notices else f"notes/{path.name}"

    def do_unnote(self, operation: Operation) -> None:
        path: Path | None = self._pick(operation, self.home.notes.glob("*.md"))
        if path is not None:
            self._begin_of(f"notes/{path.name}", "")
            self.files.forget(path)
            path.unlink()
            if not self._is_watched(operation):
                self.memory.index(self.home.notes)

    def do_rename(self, operation: Operation) -> str:
        """Rename a note: it is found under its new name only."""
        path: Path | None = self._pick(operation, self.home.notes.glob("*.md"))
        if path is None:
            return ""
        word, to = path.read_text("utf-8").split()[2], path.with_name(f"r{operation.number}.md")
        for each in (path, to):
            self._begin_of(f"notes/{each.name}", word)
        path.rename(to)
        if self._is_watched(operation):
            return ""
        report = self.memory.index(self.home.notes)
        if not self._company and f"notes/{path.name}" in names_of(self.memory, word):
            self._problem("rename: a note is found under its earlier name")
        return "" if report.notices else f"notes/{to.name}"

    def do_model(self, operation: Operation) -> None:
        """Change the embedder in the configuration; then do what is advised, or forget to do it."""
        self.memory.close()
        self._sides = None
        was = int(self.home.swapped.read_text()) if self.home.swapped.exists() else _DIMENSIONS[1]
        self.home.swapped.write_text(str(next(each for each in _DIMENSIONS if each != was)))
        self.memory = self.home.open()
        if operation.pick < _REINDEXED:
            self.memory.reindex()

    def do_zone(self, operation: Operation) -> None:
        """Travel to another time zone."""
        os.environ["TZ"] = _ZONES[int(operation.pick * len(_ZONES))]
        tzset()

    def _is_watched(self, operation: Operation) -> bool:
        """Return whether a change of a file is left to ``klaw watch``."""
        return self._company == "watch" and operation.number % 2 == 0

    def do_index(self, _: Operation) -> str:
        if not self.home.notes.exists():
            return ""
        report = self.memory.index()
        return "" if report.notices or self._of_pair else "all"  # it may have read before the other one has written

    def _asked(self, operation: Operation, word: str) -> str:
        """Return what is asked: at each attempt something else, because the vector of a question is kept."""
        return f"{word} again{operation.attempt}" if operation.attempt else word

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

    def _noted(self) -> list[str]:
        """Return the words of the notes."""
        return [told[2] for path in self.home.notes.glob("*.md") if len(told := path.read_text("utf-8").split()) > 2]

    def _shown(self, where: str, told: str) -> None:
        """Look for what none may be shown."""
        if any(word in told for word in (*self.model.gone.values(), *self.model.secrets)):
            self._problem(f"{where}: it has what was forgotten, or a secret")
        if any(word in told for word in self.model.hidden.values()):
            self._problem(f"{where}: it has a fact that was retracted or archived")

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

    def do_reindex(self, _: Operation) -> None:
        self.memory.reindex()

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
            report = self.memory.import_(path)
            return "" if report.notices else name
        try:
            self.memory.import_(path)
        except RecordError:
            return ""
        self._problem("import: an id of another kind was taken")
        return ""

    def do_agent(self, operation: Operation) -> str:
        """Let an agent use its own memory, through which it sees nothing of the owner's."""
        return str(as_agent(self.home, lambda memory: self._as_agent(operation, memory)) or "")

    def _as_agent(self, operation: Operation, memory: Any) -> str:
        if operation.pick < 1 / 3:
            passage = memory.save(f"{operation.word} is the agent's")
            return "" if passage.notice else str(passage.path)
        with suppress(WorkspaceError):  # nothing was saved yet
            memory.index()
        for word in (PRIVATE, self._pick(operation, self.model.words()) or PRIVATE):
            if any(word in result.content for result in memory.search(word, 5)) or word in str(memory.context(word)):
                self._problem("agent: it finds what is the owner's")
        return ""

    def do_request(self, operation: Operation) -> str:
        """Send a request to the server of the memory, as the owner or as the agent."""
        pick = operation.pick
        request = partial(ask, self.home.data) if self._company == "serve" else partial(others.request, self.memory)
        if pick < 1 / 4:
            saved = self._answered(operation, request("POST /api/memories", {"text": f"{operation.word} was told"}))
            return "" if saved is None or saved.get("notice") else str(saved["path"])
        word = self._pick(operation, self.model.words()) or PRIVATE
        if pick < 1 / 2:
            found = self._answered(operation, request("GET /api/search", query=f"query={word}&k=5"))
            self._shown("request", "" if found is None else str([each["content"] for each in found["results"]]))
            return ""
        if pick < 3 / 4:
            name = self._pick(operation, self.model.saved)
            if name is None:
                return ""
            self.model.target(name, self.model.saved[name])
            self._say("target", name, self.model.unsure[name])
            self._answered(operation, request("DELETE /api/document", query=f"path={name}"))
            return str(name)
        for asked in (f"/api/search?query={word}", f"/api/search?query={PRIVATE}", "/api/sources"):
            path, _, query = asked.partition("?")
            found = self._answered(operation, request(f"GET {path}", agent=AGENT, query=query))
            told = str(found).replace(f"nothing contains {query.removeprefix('query=')!r}", "")  # what it has asked
            if word in told or PRIVATE in told or "private" in told:
                self._problem("request: the agent's token opens what is the owner's")
        return ""

    def _answered(self, operation: Operation, answer: Any) -> Any:
        """Return what a request was answered with success; None, and a problem unless the disk was full, otherwise."""
        if answer.status in {200, 201, 204}:
            return answer.value or {}
        kind = operation.fault.kind if operation.fault else ""
        is_full = answer.status == 507 or (answer.status == 503 and "cannot be opened" in str(answer.value))
        if is_full and kind == "full":  # an agent is not told why its memory cannot be opened
            raise StoreFullError("the server has said so")
        self._problem(f"request: status {answer.status}: {answer.value}")
        return None

    def do_tool(self, operation: Operation) -> str:
        """Call a tool of the server for MCP, or ask for its prompt."""
        memory, pick = self.memory, operation.pick
        word = self._pick(operation, [*self.model.words(), *self.model.hidden.values()]) or operation.word
        if pick < 1 / 4:
            answer = self._told(operation, tool(memory, "memory_save", content=f"{operation.word} was told"))
            return "" if answer.get("notice") else str(answer.get("saved", ""))
        if pick < 1 / 2:
            where = {"collection": "facts"} if operation.number % 2 and self.model.facts else {}
            answer = self._told(operation, tool(memory, "memory_search", q=word, **where))
            self._shown("tool", str([each["content"] for each in answer.get("results", ())]))
        elif pick < 3 / 4:
            word = self._pick(operation, self._noted()) or word
            told = recalled(memory, word)
            self._shown("prompt", told.partition("\n")[2])
            for problem in prompt_problems(told):
                self._problem(f"tool: {problem}")
        else:
            answer = self._told(operation, tool(memory, "memory_context", message=word))
            self._shown("tool", str(answer.get("context", "")))
            for problem in forged(str(answer.get("context", ""))):
                self._problem(f"tool: {problem}")
        return ""

    def _told(self, operation: Operation, answered: tuple[Any, bool]) -> Any:
        """Return what a tool answered; an error is a problem unless the disk was full."""
        answer, is_error = answered
        if is_error and operation.fault is not None and operation.fault.kind == "full":
            raise StoreFullError(str(answer))
        if is_error:
            self._problem(f"tool: {answer}")
        return answer

    def do_edit(self, operation: Operation) -> str:
        """Change a message by hand, as an editor does: with a new file in the old one's place.

        A message whose id another one has is named by its text, too, and so would get another name.
        """
        for path in sorted((self.home.data / "conversations" / CHAT.name).glob("*.jsonl")):
            text = path.read_text("utf-8")
            known = {
                name: word for name, word in self.model.said.items() if f"{word} was said" in text and "~" not in name
            }
            name = self._pick(operation, known)
            if name is None:
                continue
            word = known[name]
            self.model.target(name, word)
            self._say("target", name, word)
            edited = text.replace(f"{word} was said", f"{operation.word} was said")
            try:
                self._write(path.with_name(EDITED), edited.encode())
            except OSError:  # the disk is full, and the editor leaves the file as it was
                path.with_name(EDITED).unlink()
                return ""
            os.replace(path.with_name(EDITED), path)  # noqa: PTH105  # `os` is recorded
            self._flush(path.parent)
            return str(name)
        return ""

    def _write(self, path: Path, data: bytes, at: int = 0) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.lseek(descriptor, at, os.SEEK_SET)
            os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _flush(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def do_far(self, operation: Operation) -> str:
        """Do something on the second machine: save, say, or forget what it has."""
        with open_second(self.home) as second:
            share(self.home, self.memory, second)
            if operation.pick < 2 / 5:
                passage = second.save(f"{operation.word} was saved far away")
                return "" if passage.notice else str(passage.path)
            if operation.pick < 3 / 5:
                at = moment(START) + timedelta(minutes=operation.number)
                message = Message("user", f"{operation.word} was said far away", at, meta=FAR_CHAT.meta)
                return f"{FAR_CHAT.name}/{second.conversations.append(message).id}"
            there = names_in(second_of(self.home))
            known = {name: word for name, word in (self.model.saved | self.model.far).items() if name in there}
            name = self._pick(operation, known)
            if name is None:
                return ""
            self.model.target(name, known[name])
            self._say("target", name, known[name])
            second.forget(name)
        for path in second_of(self.home).data.rglob("*"):
            if path.is_file() and known[name].encode() in path.read_bytes():
                self._problem(f"far: what was forgotten there is in {path.name}")
        return str(name)

    def do_sync(self, operation: Operation) -> None:
        """Synchronise one machine or both, while the folder does something to a segment."""
        dice = Random(operation.word)
        with open_second(self.home) as second:
            share(self.home, self.memory, second)
            machines = [self.memory, second] if dice.random() < 1 / 2 else [second, self.memory]
            with Trick(self.home, dice.choice(TRICKS), dice):
                machines = machines[: dice.randint(1, 2)]
                for memory in machines:
                    for problem in synchronise(self.home, memory):
                        if operation.fault is None or operation.fault.kind != "full":
                            self._problem(f"sync: {problem}")
        if self.memory not in machines:  # the journal may have what a full disk has kept from the index
            return
        for name in sorted(names_in(self.home) & self.model.far.keys()):
            self.model.arrived(name)
            self._say("arrived", name)

    def do_damage(self, operation: Operation) -> None:
        """Damage the database while nobody has it open; then do what the errors advise, until nothing is wrong."""
        self.memory.close()
        self._sides = None
        path = self.home.data / "klaw.db"
        start, size = damage(path, operation.pick)
        if size:
            self._write(path, bytes(size), start)
        else:
            descriptor = os.open(path, os.O_WRONLY)
            os.ftruncate(descriptor, max(start, 512))
            os.fsync(descriptor)
            os.close(descriptor)
        advised: str | None = "klaw reindex"  # what a person tries who has seen a disk fail
        for _ in range(_COMMANDS):
            code, told = run_command(self.home, command_in(advised or ""))
            if code:
                self._problem(f"damage: the advice '{advised}' has failed: {told[-300:]}")
            advised = self._wrong()
            if advised is None:
                break
        else:
            self._problem(f"damage: after {_COMMANDS} commands it is damaged, and it advises '{advised}'")
        self.memory = self.home.open()

    def _wrong(self) -> str | None:
        """Return what is advised against what is wrong; None if nothing is."""
        try:
            with self.home.open() as memory:
                found = [finding for finding in memory.doctor().findings if finding.severity == "error"]
        except KlawError as error:
            return error.hint
        return found[0].hint if found else None

    def do_shell(self, operation: Operation) -> str:
        """Type a command, or be a coding agent that runs a hook: what is printed has nothing that nobody may see."""
        known = self._pick(operation, self.model.words()) or operation.word
        dice, name = Random(operation.word), self._pick(operation, self.model.saved) or ""
        words, told = typed(operation.word, known, name, dice)
        code, printed = run_command(self.home, words, told)
        if code and words[0] == "doctor" and "→ klaw index" in printed and self.model.unsure:
            run_command(self.home, ("index",))  # what another process could not end, and said so
            code, printed = run_command(self.home, words, told)
        if code and words[0] == "doctor" and "→ `klaw reindex`" in printed and self.home.swapped.exists():
            run_command(self.home, ("reindex",))  # the embedder is another, and what was advised has not been done
            code, printed = run_command(self.home, words, told)
        command = f"klaw {words[0]}{' ' + words[1] if words[0] == 'hook' else ''}"
        if code and operation.fault is not None and operation.fault.kind == "full":
            raise StoreFullError(printed)
        if code and not (words[0] == "search" and "found" in printed):
            self._problem(f"shell: {command}: exit code {code}: {printed[-300:]}")
        self._shown(command, printed.replace(known, ""))
        if words[0] == "get" and self.model.saved[name] not in printed:
            self._problem(f"shell: {command}: the text is not printed")
        if words[0] != "save" or code:
            return ""
        saved, _ = json.JSONDecoder().raw_decode(printed)  # its notice follows, on standard error
        return "" if saved["notice"] else str(saved["path"])

    def do_doctor(self, _: Operation) -> None:
        self.memory.doctor()

    def do_restart(self, _: Operation) -> None:
        """The process ends before this operation, and another goes on."""

    def do_clock(self, _: Operation) -> None:
        """The clock was set."""
