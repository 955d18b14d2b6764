"""Klaw store ``postgres``, retrievers ``pgvector`` and ``pgwords``: rows, vectors, words, journals in PostgreSQL."""
