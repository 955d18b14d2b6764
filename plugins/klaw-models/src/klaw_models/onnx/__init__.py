"""Shared code of the plugins that run ONNX models. Importing it does not import onnxruntime or tokenizers."""

from klaw_models.onnx.batches import compute_batches, usable_processors
from klaw_models.onnx.embedder import GROUP_CHARACTERS, WindowEmbedder
from klaw_models.onnx.encoder import SentenceEncoder, Session, split_batches
from klaw_models.onnx.session import PROVIDERS, OnnxManifest, OnnxSession, model_inputs
from klaw_models.onnx.tokenizer import encodable, load_tokenizer
from klaw_models.onnx.windows import Ids, TextTokenizer, TextWindow, cut_tokens

__all__ = [
    "GROUP_CHARACTERS",
    "PROVIDERS",
    "Ids",
    "OnnxManifest",
    "OnnxSession",
    "SentenceEncoder",
    "Session",
    "TextTokenizer",
    "TextWindow",
    "WindowEmbedder",
    "compute_batches",
    "cut_tokens",
    "encodable",
    "load_tokenizer",
    "model_inputs",
    "split_batches",
    "usable_processors",
]
