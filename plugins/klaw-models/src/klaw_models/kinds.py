"""The kinds of models, and what the manifest of each must say. Lengths are in tokens.

Vectors always get unit length: Klaw's contract says so, whatever the model's own recipe is.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

from attrs import field, frozen, validators

from klaw_core import VectorSpace
from klaw_models.manifest import FILE, TEXT, WORD, FileRecord, ModelManifest, positive

_ABSENT_OR_WORD = validators.optional(WORD)


@frozen
class EmbedderManifest(ModelManifest):
    """What the embedders have in common.

    ``window_tokens`` is the model's window, special tokens included; ``max_tokens`` counts those of text in a
    window, without special tokens and prefix. The prefixes are put before a query and a document.
    """

    dimension: int = field(validator=positive)
    window_tokens: int = field(validator=positive)
    max_tokens: int = field(validator=positive)
    pooling: str = field(validator=validators.in_(("mean", "cls", "last")))
    query_prefix: str = field(validator=TEXT)
    document_prefix: str = field(validator=TEXT)
    model: str = field(validator=FILE)

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; its pooling names all that decides a vector beside the weights.

        The window decides a long text's, the prefixes everyone's: ``cls/512+1c2f57e0``.
        """
        pooling = f"{self.pooling}/{self.window_tokens}"
        if self.query_prefix or self.document_prefix:
            prefixes = f"{self.query_prefix}\0{self.document_prefix}"
            pooling += "+" + sha256(prefixes.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return VectorSpace(self.name, self.revision, self.dimension, pooling=pooling)


@frozen
class OnnxEmbedderManifest(EmbedderManifest):
    """A sentence embedder as an ONNX graph with a ``tokenizer.json``.

    Further keys: ``tokenizer`` (a file), ``max_positions`` (the longest input the graph accepts), ``inputs``
    (``ids``, ``mask``, and ``types``, which is fed where the graph has it), ``output`` (numbers of shape
    (batch, tokens, dimension); absent: the graph's first), ``weight_only`` (a second graph of the same model, whose
    activations are not quantised; it may be absent, and may keep its weights in the first one's file: for runtimes that
    choose the precision themselves). The pooling is ``mean`` or ``cls``.
    """

    KIND: ClassVar[str] = "onnx-embedder"
    RUN_BY: ClassVar[tuple[str, str]] = ("memory.embedding", "onnx")

    tokenizer: str = field(validator=FILE)
    ids_input: str = field(validator=WORD)
    mask_input: str = field(validator=WORD)
    types_input: str | None = field(validator=_ABSENT_OR_WORD)
    output: str | None = field(validator=_ABSENT_OR_WORD)
    weight_only: str | None = field(default=None, validator=validators.optional(FILE))

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the names of the graphs and the tokenizer."""
        return (self.model, self.tokenizer, *([self.weight_only] if self.weight_only else []))

    @classmethod
    def parse(cls, directory: Path, content: Mapping[str, Any]) -> Self:
        """Make the manifest from a JSON object. Raise ValueError, TypeError, KeyError or AttributeError."""
        manifest = cls(
            **_embedder(directory, content),
            tokenizer=content["tokenizer"],
            ids_input=content["inputs"]["ids"],
            mask_input=content["inputs"]["mask"],
            types_input=content["inputs"].get("types"),
            output=content.get("output"),
            weight_only=content.get("weight_only"),
        )
        if manifest.pooling == "last":
            raise ValueError("pooling 'last' is not one of 'mean', 'cls'")
        if manifest.window_tokens > content["max_positions"] or manifest.max_tokens > manifest.window_tokens:
            raise ValueError("max_tokens <= window_tokens <= max_positions does not hold")
        return manifest


@frozen
class GgufEmbedderManifest(EmbedderManifest):
    """An embedder as one GGUF file, tokenizer included. The pooling is ``mean``, ``cls`` or ``last``."""

    KIND: ClassVar[str] = "gguf-embedder"
    RUN_BY: ClassVar[tuple[str, str]] = ("memory.embedding", "llamacpp")

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the name of the GGUF file."""
        return (self.model,)

    @classmethod
    def parse(cls, directory: Path, content: Mapping[str, Any]) -> Self:
        """Make the manifest from a JSON object. Raise ValueError, TypeError, KeyError or AttributeError."""
        manifest = cls(**_embedder(directory, content))
        if manifest.max_tokens > manifest.window_tokens:
            raise ValueError("max_tokens <= window_tokens does not hold")
        return manifest


@frozen
class CrossEncoderManifest(ModelManifest):
    """A cross-encoder as an ONNX graph with a ``tokenizer.json``: a query and a text in, a score out.

    ``window_tokens`` counts both texts and the special tokens. ``output`` is float32 of shape (batch, 1) or
    (batch,); absent: the graph's first. ``types`` is fed where the graph has it.
    """

    KIND: ClassVar[str] = "onnx-cross-encoder"
    RUN_BY: ClassVar[tuple[str, str]] = ("memory.reranking", "onnx")

    window_tokens: int = field(validator=positive)
    model: str = field(validator=FILE)
    tokenizer: str = field(validator=FILE)
    ids_input: str = field(validator=WORD)
    mask_input: str = field(validator=WORD)
    types_input: str | None = field(validator=_ABSENT_OR_WORD)
    output: str | None = field(validator=_ABSENT_OR_WORD)

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the names of the graph and the tokenizer."""
        return (self.model, self.tokenizer)

    @classmethod
    def parse(cls, directory: Path, content: Mapping[str, Any]) -> Self:
        """Make the manifest from a JSON object. Raise ValueError, TypeError, KeyError or AttributeError."""
        return cls(
            **_common(directory, content),
            window_tokens=content["window_tokens"],
            model=content["model"],
            tokenizer=content["tokenizer"],
            ids_input=content["inputs"]["ids"],
            mask_input=content["inputs"]["mask"],
            types_input=content["inputs"].get("types"),
            output=content.get("output"),
        )


def _common(directory: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "directory": directory,
        "name": content["name"],
        "revision": content["revision"],
        "license": content.get("license", ""),
        "languages": content.get("languages", ""),
        "files": {name: FileRecord(file["sha256"], file.get("size")) for name, file in content["files"].items()},
    }


def _embedder(directory: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("dimension", "window_tokens", "max_tokens", "pooling", "query_prefix", "document_prefix", "model")
    return _common(directory, content) | {key: content[key] for key in keys}


#: What reads the manifests of each kind.
KINDS: Mapping[str, type[ModelManifest]] = {
    kind.KIND: kind for kind in (OnnxEmbedderManifest, GgufEmbedderManifest, CrossEncoderManifest)
}
#: What a manifest without ``kind`` describes: the first ones were written before there was another.
FIRST_KIND = OnnxEmbedderManifest.KIND
