"""The kinds of models, and the required keys of each manifest. Lengths are in tokens.

Vectors always have unit length, as Klaw's contract of embedders requires.
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
    """The common part of embedders' manifests.

    ``window_tokens`` is the model's window with special tokens; ``max_tokens`` is the maximum number of a text's tokens
    in a window, without special tokens and prefix. The prefixes are put before queries and documents.
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
        """Return the vector space. Its pooling names everything except the weights that determines a vector.

        The window determines the vectors of long texts, and the prefixes those of all texts: ``cls/512+1c2f57e0``.
        """
        pooling = f"{self.pooling}/{self.window_tokens}"
        if self.query_prefix or self.document_prefix:
            prefixes = f"{self.query_prefix}\0{self.document_prefix}"
            pooling += "+" + sha256(prefixes.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return VectorSpace(self.name, self.revision, self.dimension, pooling=pooling)


@frozen
class OnnxEmbedderManifest(EmbedderManifest):
    """A sentence embedder as an ONNX graph with a ``tokenizer.json``.

    Further keys: ``tokenizer`` (a file), ``max_positions`` (the longest input of the graph), ``inputs`` (the names for
    ``ids``, ``mask`` and ``types``; the last is optional in the graph), ``output`` (floats of shape (batch, tokens,
    dimension); default: the graph's first output), ``weight_only`` (optional: a second graph of the same model without
    quantised activations, for runtimes that choose the precision themselves; it may use the weights in the first
    graph's file). The pooling is ``mean`` or ``cls``.
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
    """An embedder as one GGUF file with its tokenizer. The pooling is ``mean``, ``cls`` or ``last``."""

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

    ``window_tokens`` counts both texts and the special tokens. ``output`` is float32 of shape (batch, 1) or (batch,);
    default: the graph's first output. The input ``types`` is optional in the graph.
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


#: The class for the manifests of each kind.
KINDS: Mapping[str, type[ModelManifest]] = {
    kind.KIND: kind for kind in (OnnxEmbedderManifest, GgufEmbedderManifest, CrossEncoderManifest)
}
#: The kind of a manifest without ``kind``; the first manifests had only one kind.
FIRST_KIND = OnnxEmbedderManifest.KIND
