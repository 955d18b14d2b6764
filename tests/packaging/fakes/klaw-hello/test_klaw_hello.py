"""The whole contract of an embedder, for one fixture."""

import pytest

from klaw_core.testing.embedder import EmbedderContract
from klaw_hello import HashingEmbedder


class TestHashing(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> HashingEmbedder:
        return HashingEmbedder()
