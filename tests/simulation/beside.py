"""What stays beside the owner's program for a part of the day: who comes, what is asked of it, how it leaves."""

import signal
import time
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define
from children import Say, forked
from company import Company, alone, converse, ending_of, settle
from lives import LEAVE, Operation, Outcome
from model import Model
from scenes import Home
from world import go_on_from

_sleep = time.sleep  # the real one


@define
class Beside:
    """What stays beside the owner's program for a part of the day."""

    home: Home
    model: Model
    outcome: Outcome
    _company: Company | None = None

    @property
    def kind(self) -> str:
        """What it runs; "" if nobody is there."""
        return "" if self._company is None else self._company.kind

    def live(self, operation: Operation) -> None:
        """Let somebody come, or go."""
        if operation.kind != LEAVE:
            self.outcome.counts.update(("operations", operation.kind))
            if self._company is None:
                self._come(operation)
        elif self._company is not None:
            self.outcome.counts.update(("operations", LEAVE))
            self._leave(operation, self._company)

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
        company = Company.start(self.home, operation.kind, operation.at)
        if company.is_ready():
            self._company = company
        else:
            company.end_at_once()
            self._problem(operation, f"{operation.kind}: it does not start: {company.said()[-600:]}")

    def _leave(self, operation: Operation, company: Company) -> None:
        number = ending_of(operation)
        dice = Random(f"{operation.word} leaves")
        if company.has_ended():
            self._problem(operation, f"{company.kind}: it has ended by itself: {company.said()[-600:]}")
        elif company.kind == "watch":
            if number != signal.SIGKILL:
                self._in_child(operation, lambda say: settle(self.home, self.model, operation.at, say))
            company.end(number)
        else:
            company.is_hurried = dice.random() < 1 / 3
            left = dice.randint(1, 12)

            def learn(said: list[Any]) -> None:
                nonlocal left
                if said[0] in {"saved", "forgotten"}:
                    left -= 1
                    if not left:
                        _sleep(dice.random() ** 2 * 0.02)
                        company.end(number)
                self._hear(operation, said)

            forked(lambda say: converse(self.home.data, operation.word, dice, say), answer=learn)
            company.end(number)
        for problem in company.problems(number):
            self._problem(operation, problem)
        self.outcome.counts[f"{company.kind} ended by {number.name}"] += 1
        self._company = None

        def look(say: Say) -> None:
            for problem in alone(self.home.data):
                say("problem", problem)

        self._in_child(operation, look)

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
            case "forgotten", name:
                model.gone[name] = model.unsure.pop(name)
            case "refused", text:
                self._problem(operation, f"serve: refused: {text}")

    def _problem(self, operation: Operation, text: str) -> None:
        self.outcome.problems.append((operation.number, text))
