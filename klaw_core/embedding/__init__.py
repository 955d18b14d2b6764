"""Texts become vectors: call by call, with fallbacks, long texts in windows."""
