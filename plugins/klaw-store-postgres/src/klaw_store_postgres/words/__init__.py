"""Words: postings in segments, and BM25 over them as FTS5 computes it."""
