"""The tokenizer neither pads nor truncates, takes special tokens for text, and takes any string."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from klaw_core import ModelCorruptError, RetrievalError
from klaw_models import CrossEncoderManifest
from klaw_models.onnx import encodable, load_tokenizer

MakeManifest = Callable[..., CrossEncoderManifest]


@pytest.fixture
def tokenizer(make_manifest: MakeManifest) -> Tokenizer:
    return load_tokenizer(make_manifest(), unavailable=RetrievalError)


def test_padding_and_truncation_of_the_file_are_turned_off(tokenizer: Tokenizer) -> None:
    short, long = tokenizer.encode_batch(["cat", "dog ran " * 20])
    assert short.tokens == ["[CLS]", "cat", "[SEP]"]
    assert len(long.ids) == 42


def test_a_special_token_in_a_text_is_text(tokenizer: Tokenizer) -> None:
    assert "[SEP]" not in tokenizer.encode("cat [SEP] dog", add_special_tokens=False).tokens


@pytest.mark.parametrize("content", [b"{}", b"", b"\xff"])
def test_a_file_that_cannot_be_parsed_is_corrupt(make_manifest: MakeManifest, content: bytes) -> None:
    manifest = make_manifest(tokenizer=content)
    with pytest.raises(ModelCorruptError, match=r"tokenizer\.json"):
        load_tokenizer(manifest, unavailable=RetrievalError)


def test_a_library_that_cannot_be_imported_is_unavailable(
    make_manifest: MakeManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def failing(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "tokenizers":
            raise ImportError("libthing.so.1: cannot open shared object file")
        return real_import(name, *rest, **keywords)

    manifest = make_manifest()
    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(RetrievalError, match="tokenizers cannot be imported: libthing") as caught:
        load_tokenizer(manifest, unavailable=RetrievalError)
    assert "tokenizers" in caught.value.hint


@given(st.text(st.characters(categories=None, exclude_categories=())))
def test_any_text_becomes_one_that_can_be_encoded(text: str) -> None:
    fit = encodable(text)
    fit.encode("utf-8")
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert fit == text


def test_the_two_halves_of_a_character_become_that_character() -> None:
    assert encodable("so \ud83d\ude00 glad") == "so 😀 glad"
    assert encodable("left \ud83d right") == "left \ufffd right"
