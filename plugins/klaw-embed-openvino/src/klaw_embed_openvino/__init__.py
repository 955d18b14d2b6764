"""Klaw embedder `openvino`: sentence embeddings on the CPU with OpenVINO."""
