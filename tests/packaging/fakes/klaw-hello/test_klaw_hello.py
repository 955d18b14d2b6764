"""The whole contract of an embedder, for one fixture."""

import pytest

from klaw_hello import HashingEmbedder
from klaw_testing.embedder import EmbedderContract


class TestHashing(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> HashingEmbedder:
        return HashingEmbedder()
