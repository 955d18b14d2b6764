"""The errors of test sets and results."""

from klaw_core import KlawError


class DatasetError(KlawError):
    """A test set cannot be read, or does not fit the index."""


class BelowThresholdError(KlawError):
    """A figure is below the threshold of ``--fail-under``."""
