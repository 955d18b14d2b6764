"""Klaw reranker `onnx`: a cross-encoder on the CPU with ONNX Runtime."""
