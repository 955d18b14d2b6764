"""What can be wrong with a test set, and with a result."""

from klaw_core import KlawError


class DatasetError(KlawError):
    """A test set cannot be read, or does not fit the index."""


class BelowThresholdError(KlawError):
    """A figure is below what ``--fail-under`` demands."""
