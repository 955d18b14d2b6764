"""Load a model of sentence-transformers from this machine, never from the network."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core import EmbedderUnavailableError, VectorSpace
from klaw_embed_sentence_transformers.options import SentenceTransformersOptions
from klaw_models.onnx import TextTokenizer

if TYPE_CHECKING:
    import torch

_INSTALL = "install the build of PyTorch for your graphics card (https://pytorch.org), then klaw[torch]"
_TOKENIZER = "tokenizer.json"


@frozen(eq=False)
class LoadedModel:
    """A model on its device, its tokenizer, and the space of its vectors."""

    model: Any
    tokenizer: TextTokenizer
    space: VectorSpace
    device: torch.device
    padding: int


def load(options: SentenceTransformersOptions) -> LoadedModel:
    """Load the model. Raise EmbedderUnavailableError if the library, the device or the model is not here."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"  # read at the import of huggingface_hub
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except (ImportError, OSError) as error:
        raise EmbedderUnavailableError(f"sentence-transformers cannot be imported: {error}", hint=_INSTALL) from error
    with suppress(ImportError):  # in every version so far; a bar in the output of `klaw search` would be worse
        from transformers.utils import logging

        logging.disable_progress_bar()
    device = _device(options.device)
    precision = _precision(options.precision, device)
    directory = _directory(options)
    try:
        model = SentenceTransformer(
            str(directory),
            device=device.type,
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, precision)},
        ).eval()
        tokenizer, window = _tokenizer(directory, model)
        space = _space(options.model, directory, model, window)
    except EmbedderUnavailableError:
        raise
    except Exception as error:  # these libraries raise anything for a file that they do not understand
        raise EmbedderUnavailableError(f"sentence-transformers cannot load {directory}: {error}") from error
    padding = getattr(model.tokenizer, "pad_token_id", None)
    return LoadedModel(model, tokenizer, space, device, padding or 0)


def _device(wanted: str) -> torch.device:
    """Return the device. Raise EmbedderUnavailableError for one that is not here."""
    import torch

    here = {
        "cuda": torch.cuda.is_available(),
        "xpu": hasattr(torch, "xpu") and torch.xpu.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    found = next(name for name, is_here in here.items() if is_here) if wanted == "auto" else wanted
    if not here[found]:
        raise EmbedderUnavailableError(
            f"PyTorch {torch.__version__} finds no device {found!r}",
            hint=f"set memory.embedding.device to 'auto'; or {_INSTALL}",
        )
    return torch.device(found)


def _precision(wanted: str, device: torch.device) -> str:
    if wanted != "auto":
        return wanted
    return "float32" if device.type == "cpu" else "float16"


def _directory(options: SentenceTransformersOptions) -> Path:
    """Return where the model is on this machine. Raise EmbedderUnavailableError if it is not."""
    if options.path is not None:
        directory = Path(options.path).expanduser()
        if not directory.is_dir():
            raise EmbedderUnavailableError(
                f"{directory} is not a directory", hint="set memory.embedding.path to a directory with a model"
            )
        return directory
    from huggingface_hub import snapshot_download

    repository = options.model if "/" in options.model else f"sentence-transformers/{options.model}"
    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except Exception as error:
        raise EmbedderUnavailableError(
            f"the model {repository} is not on this machine", hint=f"hf download {repository}"
        ) from error


def _tokenizer(directory: Path, model: Any) -> tuple[TextTokenizer, int]:
    """Return the tokenizer, and the model's window in tokens. Raise EmbedderUnavailableError."""
    from tokenizers import Tokenizer

    if not (directory / _TOKENIZER).is_file():
        raise EmbedderUnavailableError(f"{directory} has no {_TOKENIZER}", hint="use a model with a fast tokenizer")
    tokenizer = Tokenizer.from_file(str(directory / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    prompts = model.prompts
    query, document = (prompts.get(name) or "" for name in ("query", "document"))
    window = int(model.max_seq_length)
    bare = TextTokenizer.of(tokenizer, query, document or prompts.get("passage") or "", window)
    if bare.added >= window:
        raise EmbedderUnavailableError(f"{directory}: prompts and special tokens fill the window of {window} tokens")
    return TextTokenizer.of(tokenizer, query, document or prompts.get("passage") or "", window - bare.added), window


def _space(name: str, directory: Path, model: Any, window: int) -> VectorSpace:
    """Return the vector space: that of the same weights in ONNX Runtime, if their pooling and prompts are the same."""
    poolings = [getattr(part, "pooling_mode", None) for part in model]
    pooling = next((str(getattr(found, "value", found)) for found in poolings if found), "other")
    kind = f"{pooling}/{window}"
    prompts = [model.prompts.get(name) or "" for name in ("query", "document")]
    prompts[1] = prompts[1] or model.prompts.get("passage") or ""
    if any(prompts):
        kind += "+" + sha256("\0".join(prompts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    dimension = int(_dimension(model))
    return VectorSpace(name.rpartition("/")[2], _revision(directory), dimension, pooling=kind)


def _dimension(model: Any) -> int:
    """Return the length of the vectors; the method was renamed in version 6."""
    method = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    found: int = method()
    return found


def _revision(directory: Path) -> str:
    """Return what identifies the weights: a SHA-256, as in the manifests of models."""
    weights = sorted(directory.rglob("*.safetensors")) or sorted(directory.rglob("pytorch_model*.bin"))
    if not weights:
        raise EmbedderUnavailableError(f"{directory} has no weights")
    digests = []
    for path in weights:
        with path.open("rb") as stream:
            digests.append(file_digest(stream, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else sha256(json.dumps(digests).encode()).hexdigest()
