"""Klaw retriever `fts5`: full-text search in SQLite, with BM25."""
