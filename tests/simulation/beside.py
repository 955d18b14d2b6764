"""What stays beside the owner's program for a part of the day: who comes, what is asked of it, how it leaves.

It may be killed and started again, as often as the dice say. Or the machine loses its power: all processes end, and the
disk has what had been flushed, by whichever of them.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field
from children import Say, forked
from company import Company, alone, converse, ending_of, settle
from dates import go_on_from
from lives import LEAVE, Operation, Outcome
from model import Model
from power import MODES, Disk
from scenes import Home
from together import CUT, KILL, Together

_sleep = time.sleep  # the real one
#: What becomes of a part: it ends as it is told to, who stays is killed meanwhile, or the power is cut: meanwhile, or
#: in what is done at the end.
_FATES = "", "killed", "cut", "cut at the end"
#: So many steps of all processes on the disk are done before: ten to a power between these.
_STEPS, _LAST_STEPS = (0.5, 2.7), (1, 2.7)


@define
class Beside:
    """What stays beside the owner's program for a part of the day."""

    home: Home
    model: Model
    outcome: Outcome
    #: What the disk had when somebody came.
    before: Path
    _company: Company | None = None
    _fate: str = ""
    _together: Together | None = None
    _dice: Random = field(factory=Random)

    @property
    def kind(self) -> str:
        """What it runs; "" if nobody is there."""
        return "" if self._company is None else self._company.kind

    @property
    def together(self) -> Together | None:
        """Who does steps on the disk while somebody is there."""
        return self._together if self._company is not None else None

    @property
    def is_cut(self) -> bool:
        """Whether the machine has lost its power."""
        return self._company is not None and self._together is not None and self._together.is_cut

    def live(self, operation: Operation) -> bool:
        """Let somebody come, or go; return whether the power was cut."""
        before = self.outcome.counts["cut"]
        if operation.kind != LEAVE:
            self.outcome.counts.update(("operations", operation.kind))
            if self._company is None:
                self._come(operation)
        elif self._together is not None and self._company is not None:
            self.outcome.counts.update(("operations", LEAVE))
            self._leave(operation, self._together)
        return self.outcome.counts["cut"] > before

    def end_at_once(self) -> None:
        """End it, because the life has ended before its time."""
        if self._company is not None:
            self._company.end_at_once()
            self._company = None

    def _come(self, operation: Operation) -> None:
        if operation.kind == "watch":  # what is watched was indexed before

            def index(_say: Say) -> None:
                go_on_from(operation.at)
                self.home.notes.mkdir(exist_ok=True)
                with self.home.open() as memory:
                    memory.index(self.home.notes)

            self._in_child(operation, index)
        shutil.rmtree(self.before, ignore_errors=True)
        shutil.copytree(self.home.data, self.before, ignore=shutil.ignore_patterns("*.sock"))
        self._together = Together(self.home.root)
        self._dice = Random(f"{operation.word} part")
        self._fate = self._dice.choice(_FATES)
        if self._start(operation, operation.kind, self._together) and self._fate in {"killed", "cut"}:
            self._arm(self._together, KILL if self._fate == "killed" else CUT, _STEPS)

    def _start(self, operation: Operation, kind: str, together: Together) -> bool:
        company = Company.start(self.home, kind, operation.at, together)
        if company.is_ready():
            self._company = company
            return True
        company.end_at_once()
        self._company = None
        self._problem(operation, f"{kind}: it does not start: {company.said()[-600:]}")
        return False

    def _arm(self, together: Together, what: int, powers: tuple[float, float]) -> None:
        assert self._company is not None
        together.arm(what, int(10 ** self._dice.uniform(*powers)), self._company.pid)

    def go_on(self, operation: Operation) -> None:
        """Start who was killed again, which may be killed again."""
        company, together = self._company, self._together
        if company is None or together is None or not together.is_killed:
            return
        for problem in company.problems(signal.SIGKILL):
            self._problem(operation, problem)
        self.outcome.counts["killed"] += 1
        if self._start(operation, company.kind, together):
            self._arm(together, KILL, _STEPS)

    def lose_power(self, operation: Operation) -> None:
        """End all processes, and leave on the disk what a power cut may leave of what they did."""
        company, together = self._company, self._together
        assert company is not None
        assert together is not None
        company.end_at_once()
        self._company = None
        self.outcome.counts["cut"] += 1
        disk = self._played(together)
        for problem in self._unrecorded(disk):
            self._problem(operation, problem)
        restore(disk, self.home.data, self._dice.choice(MODES), self._dice)
        together.leave()

    def _played(self, together: Together) -> Disk:
        disk = Disk(self.before)
        disk.play(together.steps())
        return disk

    def _unrecorded(self, disk: Disk) -> Iterator[str]:
        """Yield what the record of all steps does not have as the disk has it: the record would be wrong."""
        now = disk.now()
        for path in sorted(self.home.data.rglob("*")):
            name = str(path.relative_to(self.home.data))
            is_recorded = path.is_file() and not name.endswith("-shm") and not name.startswith("sync/state.db")
            if is_recorded and now.get(name) != path.read_bytes():
                yield f"the record of the steps has another {name}"

    def _leave(self, operation: Operation, together: Together) -> None:
        together.disarm()
        self.go_on(operation)
        together.disarm()
        company, has_power = self._company, not self._fate.startswith("cut")
        if company is None:
            return
        number = ending_of(operation)
        if not together.is_cut:
            # Half of the watchers end their work before the cut, after which all that was found must be found.
            if not has_power and not (company.kind == "watch" and self._dice.random() < 1 / 2):
                self._arm(together, CUT, _LAST_STEPS)
            self._ask_last(operation, company, together, number)
        if not has_power:
            together.cut()
            self.lose_power(operation)
            return
        together.in_turn(lambda: company.end(number))
        for problem in company.problems(number):
            self._problem(operation, problem)
        self.outcome.counts[f"{company.kind} ended by {number.name}"] += 1
        self._company = None
        for problem in self._unrecorded(self._played(together)):
            self._problem(operation, problem)
        together.leave()

        def look(say: Say) -> None:
            for problem in alone(self.home.data):
                say("problem", problem)

        self._in_child(operation, look)

    def _ask_last(self, operation: Operation, company: Company, together: Together, number: signal.Signals) -> None:
        """Wait for the watcher, or converse with the server, which ends meanwhile if no power is cut."""
        has_power = not self._fate.startswith("cut")
        if company.has_ended() and not together.is_cut:
            self._problem(operation, f"{company.kind}: it has ended by itself: {company.said()[-600:]}")
        elif company.kind == "watch":
            if number != signal.SIGKILL or not has_power:
                self._in_child(operation, lambda say: settle(self.home, self.model, operation.at, say, together))
        else:
            dice = Random(f"{operation.word} leaves")
            company.is_hurried = dice.random() < 1 / 3
            left = dice.randint(1, 12)

            def learn(said: list[Any]) -> None:
                nonlocal left
                if said[0] in {"saved", "forgotten"}:
                    left -= 1
                    if not left and has_power:
                        _sleep(dice.random() ** 2 * 0.02)
                        together.in_turn(lambda: company.end(number))
                self._hear(operation, said)

            def speak(say: Say) -> None:
                together.record(self.home.data)
                converse(self.home.data, operation.word, dice, say)

            forked(speak, answer=learn)

    def _in_child(self, operation: Operation, work: Callable[[Say], None]) -> None:
        said, status = forked(work)
        for each in said:
            self._hear(operation, each)
        if status == "hang":
            self._problem(operation, f"{operation.kind}: it hangs")

    def _hear(self, operation: Operation, said: list[Any]) -> None:
        model = self.model
        match said:
            case "problem", text:
                self._problem(operation, f"after {self.kind}: {text}")
            case "begins", word:
                model.unsure[word] = word
            case "saved", name, word:
                model.saved[name] = word
                model.unsure.pop(word, None)
            case "target", name, word:
                model.target(name, word)
            case "settled", notes:
                model.settled(notes)
            case "forgotten", name:
                model.gone[name] = model.unsure.pop(name)
            case "refused", text:
                self._problem(operation, f"serve: refused: {text}")

    def _problem(self, operation: Operation, text: str) -> None:
        self.outcome.problems.append((operation.number, text))


def restore(disk: Disk, data: Path, mode: str, dice: Random) -> None:
    """Leave in a data directory what a power cut may leave of a disk.

    The state of a synchronisation is not recorded: SQLite flushes each commit, and undoes what was not committed.
    """
    states = {path.name: path.read_bytes() for path in (data / "sync").glob("state.db*")}
    shutil.rmtree(data)
    data.mkdir()
    disk.restore(data, mode, dice)
    for name, told in states.items() if (data / "sync").exists() else ():
        (data / "sync" / name).write_bytes(told)
