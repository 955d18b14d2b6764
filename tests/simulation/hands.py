"""What is done to the files of a memory: by hand, by a disk that fails, by a second machine and a shared folder."""

import os
from datetime import timedelta
from pathlib import Path
from random import Random

from deeds import Deeds
from lives import START, Operation
from machines import FAR_CHAT, TRICKS, Trick, names_in, open_second, second_of, share, synchronise
from model import EDITED, moment
from others import command_in, damage, run_command
from scenes import CHAT

from klaw_core import KlawError
from klaw_journals.messages import Message

_COMMANDS = 3  # that a person tries, each from the hint of the one before


class Hands(Deeds):
    """Deeds of which the memory learns from its files only."""

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
        self._drop_sides()
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
