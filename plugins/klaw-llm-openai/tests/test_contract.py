from __future__ import annotations

import pytest

from klaw_testing.language_model import LanguageModelContract


class TestOpenAIModel(LanguageModelContract):
    @pytest.fixture
    def model(self, server, connect):
        server.answer = '{"city": "Kiel"}'
        return connect(server.url)


class TestAServerWithoutSchemas(LanguageModelContract):
    @pytest.fixture
    def model(self, server, connect):
        server.forms = ()
        server.answer = 'Sure! Here it is:\n```json\n{"city": "Kiel"}\n```\nAnything else?'
        return connect(server.url)
