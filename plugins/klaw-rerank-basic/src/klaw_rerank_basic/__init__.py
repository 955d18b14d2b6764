"""The rerankers ``recency``, ``importance`` and ``mmr``, which need no model."""
