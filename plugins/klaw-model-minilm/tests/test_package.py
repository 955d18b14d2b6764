"""The installed package holds what its manifest says, and nothing that runs."""

from __future__ import annotations

import ast
import json
from hashlib import sha256
from importlib.metadata import distribution, entry_points
from importlib.resources import files
from typing import Any

import pytest

OFFICIAL_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
OFFICIAL_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

PACKAGE = files("klaw_model_minilm")


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((PACKAGE / "model.json").read_text(encoding="utf-8"))
    return content


def test_every_file_has_the_size_and_the_hash_of_the_manifest(manifest: dict[str, Any]) -> None:
    assert manifest["files"].keys() >= {"model.onnx", "weight-only.onnx", "tokenizer.json", "LICENSE", "NOTICE"}
    for name, described in manifest["files"].items():
        content = (PACKAGE / name).read_bytes()
        assert len(content) == described["size"], name
        assert sha256(content).hexdigest() == described["sha256"], name


def test_the_manifest_names_the_official_model(manifest: dict[str, Any]) -> None:
    assert manifest["name"] == "all-MiniLM-L6-v2"
    assert manifest["revision"] == OFFICIAL_WEIGHTS
    assert manifest["files"]["tokenizer.json"]["sha256"] == OFFICIAL_TOKENIZER


def test_the_manifest_has_the_settings_of_the_model(manifest: dict[str, Any]) -> None:
    assert (manifest["dimension"], manifest["window_tokens"], manifest["max_positions"]) == (384, 256, 512)
    assert (manifest["max_tokens"], manifest["pooling"]) == (254, "mean")
    assert (manifest["query_prefix"], manifest["document_prefix"]) == ("", "")
    assert manifest["inputs"] == {"ids": "input_ids", "mask": "attention_mask"}


def test_the_entry_point_leads_to_the_manifest() -> None:
    (point,) = entry_points(group="klaw.models", name="all-MiniLM-L6-v2")
    assert (files(point.module) / "model.json").is_file()


def test_licence_and_notice_are_included(manifest: dict[str, Any]) -> None:
    assert manifest["license"] == "Apache-2.0"
    assert "Apache License" in (PACKAGE / "LICENSE").read_text(encoding="utf-8")
    notice = (PACKAGE / "NOTICE").read_text(encoding="utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in notice
    assert "rounded to 8 bits" in notice


def test_the_package_contains_only_data() -> None:
    assert distribution("klaw-model-minilm").requires in (None, [])
    module = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assert [type(statement) for statement in module.body] == [ast.Expr], "more than a docstring"
