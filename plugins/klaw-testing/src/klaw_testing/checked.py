"""The contract of an index that checks itself: inherit it instead of ``IndexContract``."""

from __future__ import annotations

from typing import TypeVar

from klaw_core import Index
from klaw_testing.index import IndexContract, crowd

R = TypeVar("R")


class CheckedIndexContract(IndexContract[R]):
    """The index reports no damage in rows that it wrote. The tests of each index must prove that it finds damage."""

    def test_it_can_be_checked(self, index: Index[R]) -> None:
        assert type(index).check is not Index.check

    def test_a_filled_index_has_no_findings(self, index: Index[R], filled: R) -> None:
        assert list(index.check(filled, "memory", self.space(index))) == []
        index.remove(filled, "memory", self.held(index, filled)[::2])
        self.add(index, filled, crowd(5, first=1000))
        assert list(index.check(filled, "memory", self.space(index))) == []

    def test_an_unfilled_index_has_no_findings(self, index: Index[R], migrated: R) -> None:
        assert list(index.check(migrated, "memory", None)) == []

    def test_checking_writes_nothing(self, index: Index[R], filled: R) -> None:
        before = self.held(index, filled)
        index.check(filled, "memory", self.space(index))
        assert self.held(index, filled) == before
