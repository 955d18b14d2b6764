"""Load the tokenizer of a model, without padding and truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klaw_core import KlawError
from klaw_models.onnx.session import OnnxManifest

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load_tokenizer(manifest: OnnxManifest, *, unavailable: type[KlawError]) -> Tokenizer:
    """Read and check ``tokenizer.json``. The tokenizer neither pads nor truncates, and reads "[SEP]" as plain text.

    Raise ``unavailable`` if tokenizers cannot be imported, ModelCorruptError if the file cannot be used.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        from klaw_core import reinstall_command

        hint = reinstall_command("tokenizers")
        raise unavailable(f"tokenizers cannot be imported: {error}", hint=hint) from error
    content = manifest.read(manifest.tokenizer)
    try:
        tokenizer = Tokenizer.from_buffer(content)
    except Exception as error:  # tokenizers raises bare Exception if it cannot parse the file
        raise manifest.corrupt(f"{manifest.directory / manifest.tokenizer}: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def encodable(text: str) -> str:
    """Replace lone surrogates, which no encoding allows and which tokenizers rejects."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
