"""The retriever ``qdrant``: vectors on a Qdrant server, next to the SQLite store."""
