"""Klaw store `sqlite` and retriever `sqlite-vec`: everything in one SQLite file."""
