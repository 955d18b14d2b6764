"""Klaw store ``sqlite`` and retriever ``sqlite-vec``: rows and vectors in one SQLite file."""
