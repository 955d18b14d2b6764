"""``model.json``: what a model package tells the embedder about its model.

    {
      "format": 1,
      "name": "all-MiniLM-L6-v2",
      "revision": "53aa5117...",             identifies the weights: their SHA-256, or a commit
      "dimension": 384,
      "window_tokens": 256,                  the model's window, special tokens included
      "max_tokens": 254,                     tokens of text in a window, without special tokens and prefix
      "max_positions": 512,                  the longest input the graph accepts at all
      "pooling": "mean",                     or "cls": how the tokens' states become one vector
      "query_prefix": "", "document_prefix": "",
      "model": "model.onnx",
      "tokenizer": "tokenizer.json",
      "inputs": {"ids": "input_ids", "mask": "attention_mask"},   and "types", if the graph has it
      "output": "last_hidden_state",         float32 of shape (batch, tokens, dimension)
      "license": "Apache-2.0",
      "files": {"model.onnx": {"sha256": "...", "size": 23494235}, ...}
    }

Keys that are not listed are for people, or for later. Vectors always get unit length: Klaw's contract
says so, whatever the model's own recipe is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from attrs import Attribute, field, frozen, validators

from klaw_core import ModelCorruptError, VectorSpace

MANIFEST = "model.json"
FORMAT = 1

T = TypeVar("T")


def _plain_path(_instance: object, attribute: Attribute[str], value: str) -> None:
    path = PurePosixPath(value)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{attribute.name} {value!r} is not a path inside the model's directory")


_positive = validators.and_(validators.instance_of(int), validators.ge(1))
_text = validators.instance_of(str)
_name = validators.and_(_text, validators.min_len(1))


@frozen
class ModelManifest:
    """A model on this machine: where it is, and how it is to be used. Lengths are in tokens."""

    directory: Path
    name: str = field(validator=_name)
    revision: str = field(validator=_name)
    dimension: int = field(validator=_positive)
    window_tokens: int = field(validator=_positive)
    max_tokens: int = field(validator=_positive)
    pooling: str = field(validator=validators.in_(("mean", "cls")))
    query_prefix: str = field(validator=_text)
    document_prefix: str = field(validator=_text)
    model: str = field(validator=[_name, _plain_path])
    tokenizer: str = field(validator=[_name, _plain_path])
    ids_input: str = field(validator=_name)
    mask_input: str = field(validator=_name)
    types_input: str | None = field(validator=validators.optional(_name))
    output: str = field(validator=_name)
    sha256: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; the pooling names the window, because it decides a long text's vector."""
        pooling = f"{self.pooling}/{self.window_tokens}"
        return VectorSpace(self.name, self.revision, self.dimension, pooling=pooling)

    def read(self, name: str) -> bytes:
        """Return a file's bytes, checked against the manifest. Raise ModelCorruptError."""
        path = self.directory / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=self._mend()) from error
        found = sha256(content).hexdigest()
        if found != self.sha256[name]:
            raise ModelCorruptError(
                f"{path} is not the file its manifest names: SHA-256 {found}, expected {self.sha256[name]}",
                hint=self._mend(),
            )
        return content

    def _mend(self) -> str:
        return mending(self.directory)


def mending(directory: Path) -> str:
    """Return what puts a damaged model right: reinstall a package, or fetch the directory again."""
    if directory.parent.name in {"site-packages", "dist-packages"}:
        return f"pip install --force-reinstall --no-deps {directory.name.replace('_', '-')}"
    return f"delete {directory} and fetch the model again"


def read_manifest(directory: Path) -> ModelManifest:
    """Read ``model.json``, and nothing else of the model. Raise ModelCorruptError."""
    path = directory / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _parse(directory, content)
    except OSError as error:
        raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=mending(directory)) from error
    except KeyError as error:
        raise ModelCorruptError(f"{path} has no {error}", hint=mending(directory)) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
        raise ModelCorruptError(f"{path} is not a model manifest: {reason}", hint=mending(directory)) from error


def _parse(directory: Path, content: Mapping[str, Any]) -> ModelManifest:
    if content["format"] != FORMAT:
        raise ModelCorruptError(
            f"{directory / MANIFEST} has format {content['format']!r}, this version reads {FORMAT}",
            hint="pip install --upgrade klaw-embed-onnx",
        )
    manifest = ModelManifest(
        directory=directory,
        name=content["name"],
        revision=content["revision"],
        dimension=content["dimension"],
        window_tokens=content["window_tokens"],
        max_tokens=content["max_tokens"],
        pooling=content["pooling"],
        query_prefix=content["query_prefix"],
        document_prefix=content["document_prefix"],
        model=content["model"],
        tokenizer=content["tokenizer"],
        ids_input=content["inputs"]["ids"],
        mask_input=content["inputs"]["mask"],
        types_input=content["inputs"].get("types"),
        output=content["output"],
        sha256={name: described["sha256"] for name, described in content["files"].items()},
    )
    if missing := {manifest.model, manifest.tokenizer} - manifest.sha256.keys():
        raise ValueError(f"no SHA-256 of {', '.join(sorted(missing))}")
    if manifest.window_tokens > content["max_positions"] or manifest.max_tokens > manifest.window_tokens:
        raise ValueError("max_tokens <= window_tokens <= max_positions does not hold")
    return manifest
