"""Klaw embedder `openai`: embeddings from OpenAI and every server that speaks its protocol."""
