"""What Klaw's ONNX plugins share. Importing this imports neither onnxruntime nor tokenizers yet."""

from klaw_onnx.batches import compute_batches, usable_processors
from klaw_onnx.session import OnnxManifest, OnnxSession
from klaw_onnx.tokenizer import encodable, load_tokenizer

__all__ = [
    "OnnxManifest",
    "OnnxSession",
    "compute_batches",
    "encodable",
    "load_tokenizer",
    "usable_processors",
]
