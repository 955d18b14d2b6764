"""Test the contract of rerankers."""

import pytest

from klaw_testing.reranker import RerankerContract
from klaw_testing.skeletons.reranker import SkeletonReranker


class TestSkeleton(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return SkeletonReranker()
