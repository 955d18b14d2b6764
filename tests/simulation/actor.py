"""The process that lives a part of a life. It says what it begins and what was acknowledged; only that is promised."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from interrupts import Interrupter, Sides
from lives import START, Fault, Known, Operation
from model import Judge, Model, moment
from scenes import CHAT, Home
from world import Clock, Disk, Files, seed_dice

from klaw_core import KlawError, StoreFullError
from klaw_facts import Facts
from klaw_journals.messages import Message

_PLACES = 6  # where notes are written
_KEYS = 3  # of core memory

#: ``say("begin" or "target" or "end" or "problem" …, details …)``
Say = Callable[..., None]


class Actor:
    """Lives operations in this process, and looks around after each error."""

    def __init__(self, home: Home, say: Say, seed: str, at: float, model: Model) -> None:
        self.home, self.model, self._say = home, model, say
        self.clock = Clock(at)
        self.clock.install()
        self.files = Files()
        self.files.install()
        self.disk = Disk(home.data, seed_dice(seed), self.clock)
        self.disk.install()
        self.memory = home.open()
        self._sides: Sides | None = None
        self.known: dict[str, Known] | None = None

    def live(self, operation: Operation) -> None:
        """Live one operation, with its fault."""
        self.clock.wall = operation.at
        fault = operation.fault or Fault("")
        if fault.kind == "interrupt" and self._sides is None:
            self._sides = Sides(self.memory, self.home.data, probes=1000 * operation.number)
        self._say("begin", operation.number)
        rehearsal = Interrupter() if self.known is not None else None
        interrupter = Interrupter(fault.place) if fault.kind == "interrupt" else rehearsal
        steps = int(fault.how) if fault.kind == "full" else 1
        self.disk.expect((fault.kind, fault.step, steps) if fault.kind in {"crash", "power", "full"} else None)
        kept, name, problem = None, "", ""
        try:
            if interrupter is None:
                name = self._do(operation)
            else:
                with interrupter:
                    name = self._do(operation)
        except KeyboardInterrupt as error:
            problem, kept = "KeyboardInterrupt", error if fault.how else None
        except StoreFullError as error:
            problem = type(error).__name__
            if fault.kind != "full":
                self._problem(f"{operation.kind}: the disk was not full: {error}")
        except KlawError as error:
            problem = type(error).__name__
            self._refused(operation, fault, error)
        count = self.disk.count
        self.disk.expect(None)
        if self.known is not None and rehearsal is not None:
            known = self.known.setdefault(operation.kind, Known())
            known.places = list(dict.fromkeys([*known.places, *rehearsal.places]))
            known.steps = max(known.steps, count)
        self.model.end(operation, name, problem)
        self._say("end", operation.number, name, problem)
        self._look(
            operation, interrupted=interrupter is not rehearsal and interrupter is not None and interrupter.raised
        )
        del kept

    def _refused(self, operation: Operation, fault: Fault, error: KlawError) -> None:
        """A refusal is right only if it is about the fault."""
        if fault.kind != "full":
            told = str(error).replace(str(self.home.root), "")
            self._problem(f"{operation.kind}: {type(error).__name__}: {told}")

    def _look(self, operation: Operation, *, interrupted: bool) -> None:
        if interrupted:
            self._say("fired", operation.number)
            for problem in self._sides.problems() if self._sides else ():
                self._problem(f"after {operation.kind}: {problem}")
        if operation.kind in {"forget", "unsay", "unfact"}:
            for problem in Judge(self.home, self.model, operation.at).forgotten_bytes():
                self._problem(f"after {operation.kind}: {problem}")

    def _problem(self, text: str) -> None:
        self._say("problem", text)

    def _do(self, operation: Operation) -> str:
        """Do what an operation says; return the name of what it made or forgot."""
        return str(getattr(self, f"do_{operation.kind}")(operation) or "")

    def _pick(self, operation: Operation, names: Any) -> Any:
        found = sorted(names)
        return found[int(operation.pick * len(found))] if found else None

    def do_save(self, operation: Operation) -> str:
        passage = self.memory.save(f"{operation.word} was saved")
        return "" if passage.notice else passage.path

    def do_secret(self, operation: Operation) -> None:
        letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        secret = "".join(Random(operation.word).choices(letters, k=40))
        self.model.secrets.append(secret)
        self._say("secret", secret)
        text = f"My OpenAI key is sk-proj-{secret}"
        if operation.pick < 1 / 2:
            self.memory.save(text)
        else:
            self._append(operation, text)

    def _append(self, operation: Operation, text: str) -> str:
        message = Message("user", text, moment(START) + timedelta(minutes=operation.number), meta=CHAT.meta)
        return f"{CHAT.name}/{self.memory.conversations.append(message).id}"

    def do_say(self, operation: Operation) -> str:
        return self._append(operation, f"{operation.word} was said")

    def do_move(self, operation: Operation) -> str:
        return self._append(operation, f"I moved to {operation.word.capitalize()}.")

    def _forget_one(self, operation: Operation, names: dict[str, str]) -> str:
        name = self._pick(operation, names)
        if name is None:
            return ""
        word = names[name]
        self.model.target(name, word)
        self._say("target", name, word)
        self.memory.forget(name)
        return str(name)

    def do_forget(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.saved)

    def do_unsay(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.said)

    def do_unfact(self, operation: Operation) -> str:
        return self._forget_one(operation, self.model.facts)

    def do_note(self, operation: Operation) -> None:
        self.home.notes.mkdir(exist_ok=True)
        path = self.home.notes / f"n{int(operation.pick * _PLACES)}.md"
        path.write_text(f"# Note\n\n{operation.word} stands here.\n\n## More\n\n{operation.word} again\n", "utf-8")
        os.utime(path, (operation.at, operation.at))
        self.memory.index(self.home.notes)

    def do_unnote(self, operation: Operation) -> None:
        path: Path | None = self._pick(operation, self.home.notes.glob("*.md"))
        if path is not None:
            self.files.forget(path)
            path.unlink()
            self.memory.index(self.home.notes)

    def do_index(self, _: Operation) -> None:
        if self.home.notes.exists():
            self.memory.index()

    def do_search(self, operation: Operation) -> None:
        word = self._pick(operation, self.model.words()) or operation.word
        found = [result.content for result in self.memory.search(word, 5)]
        for text in found:
            if any(gone in text for gone in self.model.gone.values()):
                self._problem("search: what was forgotten is found")

    def do_context(self, operation: Operation) -> None:
        told = str(self.memory.context(self._pick(operation, self.model.words()) or operation.word))
        if any(hidden in told for hidden in (*self.model.gone.values(), *self.model.secrets)):
            self._problem("context: it has what was forgotten, or a secret")

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

    def do_doctor(self, _: Operation) -> None:
        self.memory.doctor()

    def do_restart(self, _: Operation) -> None:
        """The process ends before this operation, and another goes on."""

    def do_clock(self, _: Operation) -> None:
        """The clock was set."""
