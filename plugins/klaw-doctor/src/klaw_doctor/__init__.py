"""Checks and repair of a memory (``klaw doctor``), and its exports and imports."""
