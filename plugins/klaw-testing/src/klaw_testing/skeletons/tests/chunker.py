"""Test the contract of chunkers."""

import pytest

from klaw_core import PlainOptions
from klaw_testing.chunker import ChunkerContract
from klaw_testing.skeletons.chunker import SkeletonChunker


class TestSkeleton(ChunkerContract):
    @pytest.fixture
    def make_chunker(self):
        return lambda max_tokens, overlap_tokens: SkeletonChunker(PlainOptions(max_tokens, overlap_tokens))
