"""A server of OpenAI's protocol that misbehaves."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
import pytest

from klaw_core import EmbeddingError
from klaw_embed_openai.options import OpenAIOptions
from klaw_embed_openai.server import OpenAIServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.remote_embedder import DIMENSION, OTHER, ROW, RemoteEmbedderContract


class TestOpenAIOnTheWire(RemoteEmbedderContract):
    def connect(self, url: str, **options: Any) -> RemoteEmbedder:
        built = OpenAIOptions(url=url, dimension=DIMENSION, **options)
        return RemoteEmbedder(built, OpenAIServer(built))

    def answer(self, rows: Any) -> dict[str, Any]:
        return {"object": "list", "data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}


def _rows(answer: object) -> Any:
    return OpenAIServer(OpenAIOptions(url="http://localhost")).rows(answer, 2)


@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_rows_have_the_order_of_the_texts_in_any_order_of_answers(places: tuple[int, int]) -> None:
    entries = [{"index": 0, "embedding": ROW}, {"index": 1, "embedding": OTHER}]
    np.testing.assert_allclose(_rows({"data": [entries[place] for place in places]}), [ROW, OTHER], atol=1e-6)


def test_an_answer_without_indexes_is_used_in_its_order() -> None:
    np.testing.assert_allclose(_rows({"data": [{"embedding": ROW}, {"embedding": OTHER}]}), [ROW, OTHER], atol=1e-6)


@pytest.mark.parametrize("places", [(0, 0), (1, 2), (0, None), (0, "1"), (0, True), (0, 1.0), (-1, 0)])
def test_wrong_indexes_are_rejected(places: tuple[Any, Any]) -> None:
    data = [{"index": place, "embedding": ROW} for place in places]
    with pytest.raises(EmbeddingError, match="indexes do not match 2 texts"):
        _rows({"data": data})


@pytest.mark.parametrize("packed", ["AAA", "AAAA", "not base64", "ÄÖÜ!", "AAAAAAAA AAAAAAAA"])
def test_data_that_is_not_packed_float32_is_rejected(packed: str) -> None:
    with pytest.raises(EmbeddingError, match="not base64 of float32"):
        _rows({"data": [{"index": 0, "embedding": packed}, {"index": 1, "embedding": packed}]})


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_nan_in_base64_is_rejected(number: float) -> None:
    contract = TestOpenAIOnTheWire()
    packed = b64encode(np.array([number, 0, 0, 1], "<f4").tobytes()).decode()
    with contract._wire(contract._reply(packed)) as wire, pytest.raises(EmbeddingError, match="NaN or an infinity"):
        contract._embedder(wire).embed_query("a")
