"""The contract, kept by a real graph and a real tokenizer."""

import pytest

from klaw_testing.reranker import RerankerContract


class TestOnnx(RerankerContract):
    @pytest.fixture
    def reranker(self, make_model, load):
        return load(make_model(), top_n=3)
