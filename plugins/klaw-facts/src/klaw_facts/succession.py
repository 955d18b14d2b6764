"""The order of the values that a slot with one value at a time has had, from what was said about it.

It depends on the statements alone, not on the order in which they became known. What was said later is the later value,
unless the time that it names ends before the other one is known to have been true. A statement without a date says that
the value is true when it is said, and nothing about its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from attrs import evolve, frozen

from klaw_facts.extracting.begins import endings_of
from klaw_facts.extracting.slots import Stated
from klaw_facts.validity import is_dated, latest_begin, unit_end
from klaw_facts.values import Fact, normalised

_NEVER = datetime.min.replace(tzinfo=UTC)
#: The resolution of the times in the journal.
RESOLUTION = timedelta(milliseconds=1)


@frozen
class Turn:
    """A value in its place. ``begin`` is the first moment at which it may be true, given the values before it.

    ``latest`` is the last moment at which it can have begun, ``known`` the last at which it is known to be true,
    ``likely`` the last at which it was said as news that nothing had overtaken. A fact that says that a value has ended
    has a turn, too.
    """

    fact: Fact
    said: datetime
    begin: datetime
    latest: datetime
    known: datetime
    likely: datetime

    @property
    def is_dated(self) -> bool:
        """Whether somebody said when it began."""
        return is_dated(self.fact)

    @property
    def value(self) -> str:
        """The value as it is compared."""
        return normalised(self.fact.value or "")

    @property
    def endings(self) -> Sequence[Stated]:
        """What it says to be so no more, if it is the turn of no value."""
        return endings_of(self.fact)

    def ends(self, other: Turn) -> bool:
        """Whether it says that the value of another turn is true no more."""
        return any(item.slot == other.fact.slot and item.ends(other.fact.value or "") for item in self.endings)

    def differs_from(self, earlier: Turn) -> bool:
        """Whether this is not the earlier value going on: another one, or one that began again later, or its end."""
        if self.endings or earlier.endings:
            return self.ends(earlier) or earlier.ends(self)
        begin = self.fact.valid_from
        began_again = self.is_dated and begin is not None and begin > earlier.known
        return began_again or self.value != earlier.value

    def is_before(self, other: Turn) -> bool:
        """Whether it had begun, whenever that was, before the other value is known to have been true."""
        return self._had_begun_before(other) and not self.corrects(other)

    def corrects(self, other: Turn) -> bool:
        """Whether it was said later than the other value that it is so, and was so before that one."""
        affirmed = self.fact.affirmed_at
        return (
            affirmed is not None and affirmed > other.known and self.said > other.said and self._had_begun_before(other)
        )

    def _had_begun_before(self, other: Turn) -> bool:
        is_unit = self.is_dated and self.latest != self.said and self.fact.precision not in {"moment", "unknown"}
        return self.latest <= other.known if is_unit else self.latest < other.known


def turn_of(fact: Fact, now: datetime) -> Turn:
    """Return the value of a fact, as if there were no other."""
    said = fact.said_at or fact.recorded_at or now
    affirmed = fact.affirmed_at or _NEVER
    if fact.valid_from is None or not is_dated(fact):
        known = max(said, affirmed)
        return Turn(fact, said, fact.valid_from or said, said, known, known)
    latest = latest_begin(fact.valid_from, fact.precision)
    if fact.valid_from <= said:
        latest = min(latest, said)
    if fact.affirmed_at is not None and endings_of(fact):
        latest = said  # what is so no more since some time is not so now, whatever was said in between
    known = max(fact.valid_from, affirmed)
    return Turn(fact, said, fact.valid_from, latest, known, max(said, known))


def succession(facts: Iterable[Fact], now: datetime) -> Sequence[Turn]:
    """Return the values of a slot, the oldest first. Of two said at one moment, the later one in a message, or here."""
    ordered: list[Turn] = []
    for turn in sorted((turn_of(fact, now) for fact in facts), key=lambda item: (item.said, item.fact.quotes[:1])):
        place = len(ordered)
        while place and turn.is_before(ordered[place - 1]):
            place -= 1
        if place < len(ordered):  # it was overtaken when it was said
            turn = evolve(turn, likely=turn.known)  # noqa: PLW2901  # the same value
        ordered[place:] = _after(ordered[:place], [turn, *ordered[place:]])
    return ordered


def _after(before: Sequence[Turn], turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield values with begins after the moments at which the values before are known, or else said, to be true."""
    values = [turn for turn in before if not turn.endings]
    known = max((turn.known for turn in values), default=_NEVER)
    likely = max((turn.likely for turn in values), default=_NEVER)
    for turn in turns:
        if turn.is_dated:
            floor = likely if likely < turn.latest else known
            if turn.begin <= floor < turn.latest:
                # What was said to be true on a day was so on all of it, as far as anybody knows.
                day_after = unit_end(floor, "day")
                begin = day_after if day_after < turn.latest else floor + RESOLUTION
                turn = evolve(turn, begin=begin, known=max(begin, turn.known))  # noqa: PLW2901  # the same value
        yield turn
        if not turn.endings:
            known, likely = max(known, turn.known), max(likely, turn.likely)
