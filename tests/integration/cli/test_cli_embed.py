"""``klaw embed``, ``index --no-embed``, ``reindex --embedding``: vectors later, and other vectors."""

import json
import re
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from klaw_core.files.atomic import locked
from klaw_testing.doubles.openai import FakeOpenAI

CONFIG = """\
# mine
[memory.embedding]
type = "openai"
url = "{url}"
dimension = 64
retries = 0
"""


@pytest.fixture
def provider(httpserver):
    return FakeOpenAI(httpserver, dimension=64)


@pytest.fixture
def embedding(klaw, user_home, provider):
    """Run ``klaw`` with an embedder that counts."""
    (user_home / "config" / "klaw" / "config.toml").write_text(CONFIG.format(url=provider.url))
    return klaw


def problems(klaw):
    return json.loads(klaw("status", "--json").stdout)["problems"]


def test_embed_adds_the_vectors_after_an_index_run_without_them(embedding, notes, provider):
    result = embedding("index", str(notes), "--no-embed")
    assert result.exit_code == 0
    assert "3 chunks found by words alone: not embedded yet → klaw embed" in result.stderr
    assert not provider.answered
    assert "notes/auth.md" in embedding("search", "tokens expire").stdout
    assert problems(embedding) == ["sqlite-vec lacks 3 chunks: run `klaw embed`"]
    assert embedding("embed", "--limit", "2").exit_code == 0
    assert problems(embedding) == ["sqlite-vec lacks 1 chunk: run `klaw embed`"]
    result = embedding("embed", "--batch-size", "1", "--json")
    assert (result.exit_code, json.loads(result.stdout)["embedded"]) == (0, 1)
    assert embedding("embed").stdout == "every chunk has its vector\n"
    assert problems(embedding) == []
    assert "notes/auth.md" in embedding("search", "tokens", "--mode", "vector").stdout


def test_an_unavailable_provider_affects_only_vectors(embedding, notes, user_home):
    (user_home / "config" / "klaw" / "config.toml").write_text(CONFIG.format(url="http://127.0.0.1:9/v1"))
    result = embedding("index", str(notes))
    assert result.exit_code == 0
    assert "3 new; 3 chunks in " in result.stdout
    assert "3 chunks found by words alone" in result.stderr
    assert "cannot be reached" in result.stderr
    assert "notes/auth.md" in embedding("search", "tokens").stdout
    assert embedding("embed").exit_code == 1
    assert problems(embedding) == ["sqlite-vec lacks 3 chunks: run `klaw embed`"]


def test_missing_vectors_of_another_model_name_reindex_and_not_embed(embedding, notes, provider, user_home):
    embedding("index", str(notes))
    (notes / "new.md").write_text("# New\n\nThe kiln is cold.\n", "utf-8")
    (user_home / "config" / "klaw" / "config.toml").write_text(
        CONFIG.format(url=provider.url).replace("dimension = 64", "dimension = 32")
    )
    indexing, embed = embedding("index"), embedding("embed")
    assert indexing.exit_code == 0
    for result in (indexing, embed):
        assert "1 chunk found by words alone" in result.stderr
        assert "`klaw reindex` embeds everything again" in result.stderr
        assert "klaw embed" not in result.stderr
    assert embed.exit_code == 1
    assert "embedded: nothing in" in embed.stdout
    paused, lacking = problems(embedding)
    assert "vector search is paused" in paused
    assert lacking == "sqlite-vec lacks 1 chunk: run `klaw reindex`"


@pytest.mark.promise("D15")
def test_reindex_with_an_embedder_configures_it(embedding, notes, provider, user_home):
    config = user_home / "config" / "klaw" / "config.toml"
    embedding("index", str(notes))
    provider.name = "text-embedding-3-large"
    result = embedding("reindex", "--embedding", "openai:text-embedding-3-large")
    assert result.exit_code == 0, result.stderr
    assert "now uses the embedder openai:text-embedding-3-large" in result.stderr
    written = config.read_text()
    assert written.startswith("# mine")
    assert 'model = "text-embedding-3-large"' in written
    assert "dimension = 64" in written
    assert json.loads(embedding("status", "--json").stdout)["space"]["model"] == "text-embedding-3-large"
    assert embedding("search", "tokens", "--mode", "vector").exit_code == 0


def test_reindex_with_a_data_directory_configures_only_that_directory(embedding, notes, provider, user_home):
    config = user_home / "config" / "klaw" / "config.toml"
    before = config.read_text()
    there = ("--data-dir", str(user_home / "there"))
    embedding("index", str(notes))
    embedding("index", str(notes), *there)
    provider.name = "text-embedding-3-large"
    result = embedding("reindex", "--embedding", "openai:text-embedding-3-large", *there)
    assert result.exit_code == 0, result.stderr
    assert config.read_text() == before
    assert 'model = "text-embedding-3-large"' in (user_home / "there" / "config.toml").read_text()
    assert embedding("search", "tokens", "--mode", "vector", *there).exit_code == 0
    provider.name = "text-embedding-3-small"
    assert embedding("search", "tokens", "--mode", "vector").exit_code == 0
    models = [json.loads(embedding("status", "--json", *where).stdout)["space"]["model"] for where in ((), there)]
    assert models == ["text-embedding-3-small", "text-embedding-3-large"]


def test_an_edit_of_the_configuration_during_a_reindex_is_kept(embedding, notes, provider, user_home, monkeypatch):
    config = user_home / "config" / "klaw" / "config.toml"
    embedding("index", str(notes))
    provider.name = "text-embedding-3-large"
    model = type(provider.model)
    answer = model.vector

    def edit(self, text, dimension):
        if "# edited" not in config.read_text():
            config.write_text(config.read_text() + "\n[memory.fusion]\nk = 30  # edited\n")
        return answer(self, text, dimension)

    monkeypatch.setattr(model, "vector", edit)
    assert embedding("reindex", "--embedding", "openai:text-embedding-3-large").exit_code == 0
    written = config.read_text()
    assert 'model = "text-embedding-3-large"' in written
    assert "k = 30  # edited" in written


def test_an_unavailable_model_changes_nothing(embedding, notes, user_home):
    config = user_home / "config" / "klaw" / "config.toml"
    embedding("index", str(notes))
    before = config.read_text()
    for named in ("openai:no-such-model", "nothing", "none"):
        assert embedding("reindex", "--embedding", named).exit_code == 1
    assert config.read_text() == before
    assert embedding("search", "tokens", "--mode", "vector").exit_code == 0


@pytest.mark.parametrize("configured", ["openai", "none"])
def test_an_unknown_embedder_is_named_with_those_that_exist(embedding, notes, user_home, monkeypatch, configured):
    config = user_home / "config" / "klaw" / "config.toml"
    before = config.read_text()
    if configured == "none":
        monkeypatch.setenv("KLAW_EMBEDDER", "none")
    for _ in ("new", "indexed"):
        for named in ("nope", "opena", ":model"):
            result = embedding("reindex", "--embedding", named)
            assert result.exit_code == 1
            assert f"no plugin provides the embedder '{named.partition(':')[0]}'" in result.stderr
            assert re.search(r"installed: .*\bnone\b.*\bopenai\b", result.stderr)
            assert "config set" not in result.stderr
        embedding("index", str(notes))
    assert config.read_text() == before


def test_an_overridden_configuration_is_rejected_before_embedding(embedding, notes, provider, monkeypatch):
    embedding("index", str(notes))
    paid = provider.answered.total()
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    result = embedding("reindex", "--embedding", "openai:text-embedding-3-large")
    assert result.exit_code == 1
    assert "KLAW_EMBEDDER" in result.stderr
    assert provider.answered.total() == paid


def test_a_run_that_waits_for_another_prints_a_notice_without_a_bar(embedding, notes):
    embedding("index", str(notes), "--no-embed")
    data_dir = Path(json.loads(embedding("status", "--json").stdout)["location"]).parent
    with locked(data_dir / "embedding.lock"):
        waiting = Popen([sys.executable, "-m", "klaw_core", "embed"], stdout=PIPE, stderr=PIPE, text=True)
        assert "waiting for another process that is embedding" in waiting.stderr.readline()
        assert "notes/auth.md" in embedding("search", "tokens expire").stdout
    waiting.communicate(timeout=300)
    assert waiting.returncode == 0
