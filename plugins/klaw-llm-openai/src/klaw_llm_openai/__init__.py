"""Klaw language model `openai`: completions from OpenAI and servers with its protocol."""
