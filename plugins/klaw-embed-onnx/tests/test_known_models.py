"""The recipes of known models (pooling, prefixes, windows), each on a small real graph and tokenizer of its kind.

The graph's states are computed here a second time, with numpy. The files come from a hub on this machine, so that
what is tested is all that a person does: name a model, add it, index and search.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import attrs
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from pytest_httpserver import HTTPServer
from tokenizers import Regex, Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.normalizers import BertNormalizer, Replace
from tokenizers.pre_tokenizers import BertPreTokenizer, Metaspace
from tokenizers.processors import TemplateProcessing

from klaw_core import ComponentContext, EmbeddingError
from klaw_core.cli.program import cli
from klaw_embed_onnx.embedder import OnnxEmbedder
from klaw_embed_onnx.options import OnnxOptions
from klaw_embed_onnx.plugin import klaw_embedders
from klaw_models import KNOWN, KnownFile, KnownModel, OnnxEmbedderManifest, find_model
from klaw_testing.embedder import EmbedderContract

DIMENSION = 384
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;!?-_'\"()[]<>/|{}#*+=@$%&~`^"
_WORDS = ["represent", "this", "sentence", "for", "searching", "relevant", "passages", "query", "passage", "where"]


def _bert_tokenizer() -> Tokenizer:
    """Words and letters, as in the tokenizers of MiniLM, BGE and Arctic Embed."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_WORDS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
    tokenizer = Tokenizer(WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)
    return tokenizer


def _sentencepiece_tokenizer() -> Tokenizer:
    """Pieces that begin with the space before them, as in multilingual-e5-small's tokenizer; a line end is a space."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *(f"▁{word}" for word in _WORDS), *_LETTERS, "x" * 16]
    tokenizer = Tokenizer(Unigram([(piece, -1.0 - len(piece) / 100) for piece in pieces], unk_id=3))
    tokenizer.normalizer = Replace(Regex(r"\s+"), " ")
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


TOKENIZERS = {
    "all-MiniLM-L6-v2": _bert_tokenizer,
    "bge-small-en-v1.5": _bert_tokenizer,
    "snowflake-arctic-embed-xs": _bert_tokenizer,
    "multilingual-e5-small": _sentencepiece_tokenizer,
}
TABLE = np.random.default_rng(7).normal(size=(200, DIMENSION)).astype(np.float32)


def _states(ids: list[int]) -> np.ndarray:
    """What the graph makes of one text: each token's row, and a fifth of the mean of all rows."""
    rows = TABLE[ids]
    return rows + rows.mean(axis=0) / 5


def _graph(*, types: bool) -> bytes:
    """Return that graph for batches with padding; it takes token types if the model's does."""
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names]
    constants = {"table": TABLE, "last": np.array([2]), "middle": np.array([1]), "fifth": np.array(0.2, np.float32)}
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["ones", "last"], ["mask"]),
        helper.make_node("Mul", ["rows", "mask"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=1),
        helper.make_node("ReduceSum", ["mask", "middle"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("Mul", ["mean", "fifth"], ["share"]),
        helper.make_node("Add", ["rows", "share"], ["mixed"]),
    ]
    if types:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "last"], ["shift"]),
            helper.make_node("Add", ["mixed", "shift"], ["last_hidden_state"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["mixed"], ["last_hidden_state"]))
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", DIMENSION])
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "small", inputs, [output], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def _small(name: str, *, types: bool) -> tuple[KnownModel, list[bytes]]:
    """Return a known model with small files in place of its own, and what they hold."""
    known = KNOWN[name]
    contents = [_graph(types=types), TOKENIZERS[name]().to_str().encode()]
    files = [
        KnownFile(file.path, sha256(content).hexdigest(), len(content))
        for file, content in zip(known.files, contents, strict=True)
    ]
    return attrs.evolve(known, files=tuple(files)), contents


@pytest.fixture
def on_hub(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., KnownModel]:
    """Return a function that puts a small model on the hub, in the place of a known one."""
    monkeypatch.setenv("HF_ENDPOINT", httpserver.url_for("").rstrip("/"))

    def put(name: str, *, types: bool = True) -> KnownModel:
        model, contents = _small(name, types=types)
        for file, content in zip(model.files, contents, strict=True):
            path = f"/{model.repository}/resolve/{model.commit}/{file.path}"
            httpserver.expect_request(path).respond_with_data(content)
        monkeypatch.setitem(KNOWN, name, model)
        return model

    return put


@pytest.fixture
def klaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs ``klaw`` in a home of its own and returns what it prints on stdout."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    # The installed package of the default model would be found first.
    monkeypatch.setattr("klaw_models.places.GROUP", "klaw.no.such.group")

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            cli.main(list(arguments), prog_name="klaw")
        shown = capsys.readouterr()
        assert caught.value.code == 0, shown.err
        return shown.out

    return run


def _embedder(tmp_path: Path, model: str) -> OnnxEmbedder:
    (component,) = klaw_embedders()
    return component.factory(OnnxOptions(model=model), ComponentContext(tmp_path, tmp_path / "XDG_CACHE_HOME" / "klaw"))


def _expected(model: KnownModel, prefixed: str) -> np.ndarray:
    tokenizer = TOKENIZERS[model.name]()
    tokenizer.no_padding()
    tokenizer.no_truncation()
    states = _states(tokenizer.encode(prefixed).ids)
    vector = states[0] if model.settings["pooling"] == "cls" else states.mean(axis=0)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("types", [True, False], ids=["token types", "no token types"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_known_model_is_used_as_documented(
    on_hub: Callable[..., KnownModel], klaw: Callable[..., str], tmp_path: Path, name: str, *, types: bool
) -> None:
    model = on_hub(name, types=types)
    klaw("models", "add", name)
    embedder = _embedder(tmp_path, name)
    query, document = model.settings["query_prefix"], model.settings["document_prefix"]
    text = "where is the key?"
    np.testing.assert_allclose(embedder.embed_query(text), _expected(model, query + text), rtol=0, atol=1e-6)
    (vector,) = embedder.embed_documents([text])
    np.testing.assert_allclose(vector, _expected(model, document + text), rtol=0, atol=1e-6)
    assert embedder.space.model == name
    assert embedder.space.revision == model.revision
    assert embedder.max_tokens == model.settings["max_tokens"]


def test_the_recipes_are_those_of_the_model_cards() -> None:
    """bge and arctic: the first token's state, an instruction before questions; e5: the mean, both prefixed."""
    instruction = "Represent this sentence for searching relevant passages: "
    recipes = {name: (s["pooling"], s["query_prefix"], s["document_prefix"]) for name, s in _settings()}
    assert recipes["all-MiniLM-L6-v2"] == ("mean", "", "")
    assert recipes["bge-small-en-v1.5"] == ("cls", instruction, "")
    assert recipes["snowflake-arctic-embed-xs"] == ("cls", instruction, "")
    assert recipes["multilingual-e5-small"] == ("mean", "query: ", "passage: ")
    assert recipes["embeddinggemma-300M"] == ("mean", "task: search result | query: ", "title: none | text: ")


def _settings() -> list[tuple[str, dict[str, str]]]:
    return [(name, dict(model.settings)) for name, model in KNOWN.items() if "pooling" in model.settings]


@pytest.fixture(scope="module")
def small_e5(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    directory = tmp_path_factory.mktemp("e5")
    model, contents = _small("multilingual-e5-small", types=True)
    for file, content in zip(model.files, contents, strict=True):
        (directory / file.name).write_bytes(content)
    (directory / "model.json").write_text(json.dumps(model.manifest))
    return OnnxEmbedder(find_model(OnnxEmbedderManifest, "any", str(directory), directory))


@pytest.mark.one_of(3)
class TestSmallE5KeepsTheContract(EmbedderContract):
    """The whole contract on a tokenizer of SentencePiece's kind, with both prefixes."""

    query_document_cosine = 0.5  # query and document have different prefixes, which weigh much in a short text
    tolerance = 1e-5

    @pytest.fixture
    def embedder(self, small_e5: OnnxEmbedder) -> OnnxEmbedder:
        return small_e5


def test_a_model_can_be_named_added_and_used(
    on_hub: Callable[..., KnownModel], klaw: Callable[..., str], tmp_path: Path
) -> None:
    model = on_hub("bge-small-en-v1.5")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "keys.md").write_text("# Keys\n\nThe key of the shed is below the third flower pot.\n")
    klaw("init")
    klaw("config", "set", "memory.embedding.model", "bge-small-en-v1.5")
    klaw("models", "add", "bge-small-en-v1.5")
    klaw("index", str(notes))
    (found, *_) = json.loads(klaw("search", "where is the key of the shed", "--mode", "vector", "--json"))
    assert found["path"] == "notes/keys.md"
    status = json.loads(klaw("status", "--json"))
    assert model.revision in json.dumps(status)


def test_an_output_that_is_pooled_already_is_an_error(
    on_hub: Callable[..., KnownModel], klaw: Callable[..., str], tmp_path: Path
) -> None:
    """As of an export with `sentence_embedding` as its only output."""
    on_hub("bge-small-en-v1.5")
    klaw("models", "add", "bge-small-en-v1.5")
    directory = tmp_path / "XDG_CACHE_HOME" / "klaw" / "models" / "bge-small-en-v1.5"
    shape = ["batch", DIMENSION]
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    )
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceSum", ["rows", "middle"], ["sentence_embedding"], keepdims=0),
    ]
    initializers = [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(np.array([1]), "middle")]
    output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "pooled", [ids, mask], [output], initializers)
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    (directory / "model.onnx").write_bytes(content)
    manifest = json.loads((directory / "model.json").read_text())
    manifest["files"]["model.onnx"]["sha256"] = sha256(content).hexdigest()
    (directory / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(EmbeddingError, match="is not a vector a token"):
        _embedder(tmp_path, "bge-small-en-v1.5").embed_query("a key")
