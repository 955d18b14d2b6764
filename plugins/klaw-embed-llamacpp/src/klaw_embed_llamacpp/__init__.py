"""Klaw embedder `llamacpp`: any GGUF embedding model, run by llama.cpp in this process."""
