"""Which model, and how it is used: from the options, else from a manifest, else from the file's own metadata."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import EmbeddingError, estimate_tokens
from klaw_embed_llamacpp.header import Header
from klaw_embed_llamacpp.runtime import Settings
from klaw_embed_llamacpp.verification import ModelIdentity, VerificationCache
from klaw_models import GgufEmbedderManifest
from klaw_models import find_model as find_manifest

if TYPE_CHECKING:
    from klaw_embed_llamacpp.options import LlamaCppOptions

_SPECIAL_TOKENS = 2  # what a model puts around a text: [CLS] and [SEP], or their like
# The memory for a context grows with its square, and nobody embeds longer chunks in one piece.
_LARGEST_CONTEXT = 2048


@frozen(eq=False)
class GgufModel:
    """A GGUF file on this machine, with its manifest if it has one. Constructing reads nothing of the file."""

    path: Path
    options: LlamaCppOptions
    verifications: VerificationCache
    manifest: GgufEmbedderManifest | None = None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """Return what the vector space calls the model."""
        return self.manifest.name if self.manifest else self.path.stem

    @property
    def query_prefix(self) -> str:
        """Return what stands before a query."""
        declared = self.manifest.query_prefix if self.manifest else ""
        return declared if self.options.query_prefix is None else self.options.query_prefix

    @property
    def document_prefix(self) -> str:
        """Return what stands before a document."""
        declared = self.manifest.document_prefix if self.manifest else ""
        return declared if self.options.document_prefix is None else self.options.document_prefix

    @cached_property
    def header(self) -> Header:
        """What the file says of itself. Raise ModelNotFoundError or ModelCorruptError."""
        return Header.read(self.path)

    @cached_property
    def pooling(self) -> str:
        """How tokens become one vector. Raise ModelNotFoundError or ModelCorruptError."""
        if self.options.pooling != "auto":
            return self.options.pooling
        return self.manifest.pooling if self.manifest else self.header.pooling or "mean"

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens of a text one window holds. Raise ModelNotFoundError or ModelCorruptError."""
        if self.options.max_tokens:
            return self.options.max_tokens
        if self.manifest:
            return self.manifest.max_tokens
        return max(1, min(self.header.context_tokens, _LARGEST_CONTEXT) - self._around)

    @property
    def _around(self) -> int:
        return _SPECIAL_TOKENS + max(estimate_tokens([self.query_prefix, self.document_prefix]))

    @cached_property
    def settings(self) -> Settings:
        """How llama.cpp loads the file. Raise ModelNotFoundError, ModelCorruptError, EmbeddingError."""
        room, needed = self.header.context_tokens, self.max_tokens + self._around
        if needed > room and self.options.max_tokens:
            raise EmbeddingError(
                f"{self.name} has room for {room} tokens; a window of {self.max_tokens}, "
                f"with prefix and special tokens, takes {needed}",
                hint=f"set memory.embedding.max_tokens to {max(1, room - self._around)} or less",
            )
        return Settings(min(room, max(needed, _LARGEST_CONTEXT)), self.pooling, self.options.threads)

    @cached_property
    def verified(self) -> ModelIdentity:
        """What the file is, and that llama.cpp can run it: verified in another process if it is new here.

        Raise ModelNotFoundError, ModelCorruptError (also for a file that is not the one its manifest names),
        EmbedderUnavailableError.
        """
        verified = self.verifications.verify(self.path, self.settings)
        if self.manifest is None:
            return verified
        expected = ModelIdentity(self.manifest.files[self.manifest.model].sha256, self.manifest.dimension)
        if verified != expected:
            raise self.manifest.corrupt(
                f"{self.path} does not match its manifest: "
                f"{verified.dimension} dimensions and SHA-256 {verified.sha256}, "
                f"expected {expected.dimension} and {expected.sha256}"
            )
        return verified

    @property
    def identity(self) -> ModelIdentity:
        """What a vector space needs to know of the file: from the manifest, or from the file itself."""
        if self.manifest is None:
            return self.verified
        return ModelIdentity(self.manifest.revision, self.manifest.dimension)


def find_model(options: LlamaCppOptions, cache_dir: Path) -> GgufModel:
    """Find the model that the options name. Reads no more than a manifest.

    Raise ModelNotFoundError, ModelCorruptError for a manifest that cannot be used, PluginConflictError.
    """
    verifications = VerificationCache(cache_dir / "llamacpp")
    if options.path is not None:
        path = Path(options.path).expanduser()
        if path.suffix.lower() == ".gguf" or path.is_file():
            return GgufModel(path.absolute(), options, verifications)
    manifest = find_manifest(GgufEmbedderManifest, options.model, options.path, cache_dir)
    return GgufModel(manifest.directory / manifest.model, options, verifications, manifest)
