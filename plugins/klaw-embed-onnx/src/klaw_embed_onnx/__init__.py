"""Klaw embedder `onnx`: sentence embeddings on the CPU with ONNX Runtime."""
