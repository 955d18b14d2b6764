"""Packed postings: an inverted index in large blobs next to FTS5, so that a search does not scan FTS5's index."""
