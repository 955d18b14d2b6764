"""Packed postings: who holds which word, in large blobs beside FTS5, so that a question costs no scan of its index."""
