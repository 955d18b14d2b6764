"""Klaw language model `openai`: completions from OpenAI and every server that speaks its protocol."""
