"""The commands ``doctor``, ``export`` and ``import``."""
