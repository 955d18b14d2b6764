"""The retriever ``lancedb``: vectors in LanceDB, in a directory or on object storage, beside the SQLite store."""
