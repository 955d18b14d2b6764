"""The properties of a model: from the options, otherwise from a manifest, otherwise from the metadata in the file."""

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

_SPECIAL_TOKENS = 2  # the special tokens around a text, such as [CLS] and [SEP]
# The memory for a context grows with its square, and chunks are not longer.
_MAX_CONTEXT = 2048


@frozen(eq=False)
class GgufModel:
    """A GGUF file on this machine, with its manifest if it has one. The constructor does not read the file."""

    path: Path
    options: LlamaCppOptions
    verifications: VerificationCache
    manifest: GgufEmbedderManifest | None = None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """Return the name of the model in the vector space."""
        return self.manifest.name if self.manifest else self.path.stem

    @property
    def query_prefix(self) -> str:
        """Return the prefix of queries."""
        declared = self.manifest.query_prefix if self.manifest else ""
        return declared if self.options.query_prefix is None else self.options.query_prefix

    @property
    def document_prefix(self) -> str:
        """Return the prefix of documents."""
        declared = self.manifest.document_prefix if self.manifest else ""
        return declared if self.options.document_prefix is None else self.options.document_prefix

    @cached_property
    def header(self) -> Header:
        """The metadata in the file. Raise ModelNotFoundError or ModelCorruptError."""
        return Header.read(self.path)

    @cached_property
    def pooling(self) -> str:
        """The method that combines the tokens' vectors. Raise ModelNotFoundError or ModelCorruptError."""
        if self.options.pooling != "auto":
            return self.options.pooling
        return self.manifest.pooling if self.manifest else self.header.pooling or "mean"

    @cached_property
    def max_tokens(self) -> int:
        """The maximum number of a text's tokens in one window. Raise ModelNotFoundError or ModelCorruptError."""
        if self.options.max_tokens:
            return self.options.max_tokens
        if self.manifest:
            return self.manifest.max_tokens
        return max(1, min(self.header.context_tokens, _MAX_CONTEXT) - self._added_tokens)

    @property
    def _added_tokens(self) -> int:
        return _SPECIAL_TOKENS + max(estimate_tokens([self.query_prefix, self.document_prefix]))

    @cached_property
    def settings(self) -> Settings:
        """The settings for llama.cpp. Raise ModelNotFoundError, ModelCorruptError, EmbeddingError."""
        room, needed = self.header.context_tokens, self.max_tokens + self._added_tokens
        if needed > room and self.options.max_tokens:
            raise EmbeddingError(
                f"{self.name} accepts {room} tokens; max_tokens = {self.max_tokens} plus prefix and special tokens "
                f"is {needed}",
                hint=f"set memory.embedding.max_tokens to {max(1, room - self._added_tokens)} or less",
            )
        return Settings(min(room, max(needed, _MAX_CONTEXT)), self.pooling, self.options.threads)

    @cached_property
    def verified(self) -> ModelIdentity:
        """The hash and dimension of the file. A new file is first loaded in another process to check that it is usable.

        Raise ModelNotFoundError, ModelCorruptError (also if the file does not match its manifest),
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
        """The hash and the dimension of the vectors, from the manifest or from the file itself."""
        if self.manifest is None:
            return self.verified
        return ModelIdentity(self.manifest.revision, self.manifest.dimension)


def find_model(options: LlamaCppOptions, cache_dir: Path) -> GgufModel:
    """Find the model that the options name. Reads at most a manifest.

    Raise ModelNotFoundError, ModelCorruptError for an invalid manifest, PluginConflictError.
    """
    verifications = VerificationCache(cache_dir / "llamacpp")
    if options.path is not None:
        path = Path(options.path).expanduser()
        if path.suffix.lower() == ".gguf" or path.is_file():
            return GgufModel(path.absolute(), options, verifications)
    manifest = find_manifest(GgufEmbedderManifest, options.model, options.path, cache_dir)
    return GgufModel(manifest.directory / manifest.model, options, verifications, manifest)
