"""Klaw embedder `ollama`: embeddings from an Ollama server."""
