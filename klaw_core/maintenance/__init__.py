"""Maintenance of a memory: checks and repair (``doctor``), ``status``, ``reindex``, ``export`` and ``import``."""
