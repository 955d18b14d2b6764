"""Test the contract of indexes."""

import apsw
import pytest

from klaw_testing.index import IndexContract
from klaw_testing.skeletons.retriever import SkeletonIndex


class TestSkeleton(IndexContract[apsw.Connection]):
    @pytest.fixture
    def index(self):
        return SkeletonIndex()

    @pytest.fixture
    def connection(self):
        return apsw.Connection(":memory:")

    def begin(self, resource):
        resource.execute("BEGIN")

    def rollback(self, resource):
        resource.execute("ROLLBACK")
