"""Test the contract of embedders."""

import pytest

from klaw_testing.embedder import EmbedderContract
from klaw_testing.skeletons.embedder import SkeletonEmbedder


class TestSkeleton(EmbedderContract):
    @pytest.fixture
    def embedder(self):
        return SkeletonEmbedder()
