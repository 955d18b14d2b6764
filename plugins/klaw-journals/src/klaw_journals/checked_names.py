"""Refuse names that contain a secret: others refer to a name, so it cannot be redacted."""

from klaw_core import RecordError
from klaw_redaction import Redactor


def secret_in_name(redactor: Redactor, what: str, name: str) -> str:
    """Return why a name is refused; empty if it contains no secret. ``what`` is the thing that has the name."""
    redacted = redactor.text(name)
    return f"{what} contains a secret: {redacted}" if redacted != name else ""


def check_name(redactor: Redactor, what: str, name: str) -> None:
    """Raise RecordError if a name contains a secret; parameters as for :func:`secret_in_name`."""
    if problem := secret_in_name(redactor, what, name):
        raise RecordError(problem, hint="names are stored unchanged; choose another")
