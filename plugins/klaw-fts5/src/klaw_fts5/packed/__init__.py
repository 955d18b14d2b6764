"""Packed postings: who holds which word, in large blobs next to FTS5, so that a question costs no scan of its index."""
