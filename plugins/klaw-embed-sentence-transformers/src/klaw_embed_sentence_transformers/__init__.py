"""Klaw embedder `sentence-transformers`: sentence embeddings with PyTorch, on a graphics card where there is one."""
