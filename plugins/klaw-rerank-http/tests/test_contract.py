"""The contract, kept over a real socket."""

import pytest

from klaw_testing.reranker import RerankerContract


class TestHttp(RerankerContract):
    @pytest.fixture
    def reranker(self, server, connect):
        return connect(server.url, top_n=3)
