"""Embedding: calls, fallback embedders, and windows for long texts."""
