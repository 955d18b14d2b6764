"""The retriever ``lancedb``: vectors in LanceDB, in a directory or on object storage, next to the SQLite store."""
