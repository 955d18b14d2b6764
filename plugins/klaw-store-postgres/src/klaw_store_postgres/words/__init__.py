"""The full-text index: postings in segments, and BM25 scores as FTS5 computes them."""
