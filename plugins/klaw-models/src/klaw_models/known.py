"""The models that Klaw knows by name: the locations and hashes of their files.

Every file has its SHA-256 and its size, and every repository a commit, so that hubs, mirrors and networks need not be
trusted. ``docs/decisions/0012-models.md`` describes how the values were checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class KnownFile:
    """One file of a repository. ``path`` is its path there, ``name`` its name on this machine."""

    path: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """Return the file's name without its directory."""
        return self.path.rpartition("/")[2]


@frozen
class KnownModel:
    """A model that ``klaw models add NAME`` can fetch.

    ``weights`` is the first of ``files``; its SHA-256 is the model's revision. ``settings`` are the keys of the
    manifest that determine how the model is used; ``extra`` is the extra of ``klaw`` that installs it, if there is one.
    """

    name: str
    kind: str
    repository: str
    commit: str
    files: tuple[KnownFile, ...]
    license: str
    languages: str
    settings: Mapping[str, Any] = field(repr=False)
    extra: str = ""

    @property
    def revision(self) -> str:
        """Return the identifier of the weights, independent of their source: the SHA-256."""
        return self.files[0].sha256

    @property
    def size(self) -> int:
        """Return the size of a download in bytes."""
        return sum(file.size for file in self.files)

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the content of the model's ``model.json``."""
        return {
            "format": 1,
            "kind": self.kind,
            "name": self.name,
            "revision": self.revision,
            "license": self.license,
            "languages": self.languages,
            "source": {"repository": self.repository, "commit": self.commit},
            **self.settings,
            "files": {file.name: {"sha256": file.sha256, "size": file.size} for file in self.files},
        }


_BERT_INPUTS = {"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"}
#: The prefix of BGE and Arctic Embed for queries; they have none for documents.
_SEARCHING = "Represent this sentence for searching relevant passages: "


def _bert(max_tokens: int, *, window_tokens: int, pooling: str, query: str = "", document: str = "") -> dict[str, Any]:
    """Return the settings of a small BERT model with 384 dimensions and 512 positions."""
    return {
        "dimension": 384,
        "window_tokens": window_tokens,
        "max_tokens": max_tokens,
        "max_positions": 512,
        "pooling": pooling,
        "query_prefix": query,
        "document_prefix": document,
        "model": "model.onnx",
        "tokenizer": "tokenizer.json",
        "inputs": _BERT_INPUTS,
    }


_MODELS = (
    KnownModel(
        name="all-MiniLM-L6-v2",
        kind="onnx-embedder",
        repository="sentence-transformers/all-MiniLM-L6-v2",
        commit="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        files=(
            KnownFile(
                "onnx/model.onnx", "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452", 90_405_214
            ),
            KnownFile("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
        ),
        license="Apache-2.0",
        languages="English",
        settings=_bert(254, window_tokens=256, pooling="mean"),
        extra="minilm",
    ),
    KnownModel(
        name="bge-small-en-v1.5",
        kind="onnx-embedder",
        repository="BAAI/bge-small-en-v1.5",
        commit="5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
        files=(
            KnownFile(
                "onnx/model.onnx", "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35", 133_093_490
            ),
            KnownFile("tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66", 711_396),
        ),
        license="MIT",
        languages="English",
        settings=_bert(502, window_tokens=512, pooling="cls", query=_SEARCHING),
    ),
    KnownModel(
        name="snowflake-arctic-embed-xs",
        kind="onnx-embedder",
        repository="Snowflake/snowflake-arctic-embed-xs",
        commit="d8c86521100d3556476a063fc2342036d45c106f",
        files=(
            KnownFile(
                "onnx/model.onnx", "cf2698d30ff05da02c70a088313bad56e5c2f401d734cb24a8390d446111936c", 90_387_631
            ),
            KnownFile("tokenizer.json", "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854", 711_649),
        ),
        license="Apache-2.0",
        languages="English",
        settings=_bert(502, window_tokens=512, pooling="cls", query=_SEARCHING),
    ),
    KnownModel(
        name="multilingual-e5-small",
        kind="onnx-embedder",
        repository="intfloat/multilingual-e5-small",
        commit="614241f622f53c4eeff9890bdc4f31cfecc418b3",
        files=(
            KnownFile(
                "onnx/model.onnx", "ca456c06b3a9505ddfd9131408916dd79290368331e7d76bb621f1cba6bc8665", 470_268_510
            ),
            KnownFile("tokenizer.json", "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39", 17_082_730),
        ),
        license="MIT",
        languages="about 100",
        settings=_bert(502, window_tokens=512, pooling="mean", query="query: ", document="passage: "),
    ),
    KnownModel(
        name="embeddinggemma-300M",
        kind="gguf-embedder",
        repository="ggml-org/embeddinggemma-300M-GGUF",
        commit="0f741b5a6585bd53aeb15cd1372c56f2a0f65e12",
        files=(
            KnownFile(
                "embeddinggemma-300M-Q8_0.gguf",
                "b5ce9d77a3fc4b3b39ccb5643c36777911cc4eb46a66962eadfa3f5f60490d63",
                333_590_944,
            ),
        ),
        license="Gemma Terms of Use",
        languages="more than 100",
        settings={
            "dimension": 768,
            "window_tokens": 2048,
            "max_tokens": 2032,  # without two special tokens and a prefix of at most 14
            "pooling": "mean",
            "query_prefix": "task: search result | query: ",
            "document_prefix": "title: none | text: ",
            "model": "embeddinggemma-300M-Q8_0.gguf",
        },
    ),
    KnownModel(
        name="ms-marco-MiniLM-L6-v2",
        kind="onnx-cross-encoder",
        repository="cross-encoder/ms-marco-MiniLM-L6-v2",
        commit="c5ee24cb16019beea0893ab7796b1df96625c6b8",
        files=(
            KnownFile(
                "onnx/model.onnx", "5d3e70fd0c9ff14b9b5169a51e957b7a9c74897afd0a35ce4bd318150c1d4d4a", 91_011_230
            ),
            KnownFile("tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66", 711_396),
        ),
        license="Apache-2.0",
        languages="English",
        settings={
            "window_tokens": 512,
            "model": "model.onnx",
            "tokenizer": "tokenizer.json",
            "inputs": _BERT_INPUTS,
        },
    ),
)

#: Every known model, by name.
KNOWN: Mapping[str, KnownModel] = {model.name: model for model in _MODELS}
