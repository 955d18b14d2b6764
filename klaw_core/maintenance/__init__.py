"""Maintenance of a memory: ``status`` and ``reindex``."""
