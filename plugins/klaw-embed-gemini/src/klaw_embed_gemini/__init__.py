"""Klaw embedder `gemini`: embeddings from the Gemini API."""
