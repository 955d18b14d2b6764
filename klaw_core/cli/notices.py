"""The notices of commands, which ``--quiet`` turns off."""

from __future__ import annotations

from klaw_core.cli.output import print_notices
from klaw_core.cli.settings import Settings


def notify(settings: Settings, *messages: str) -> None:
    """Print notices on stderr, one per line, unless ``--quiet`` is set."""
    if not settings.quiet:
        print_notices(*messages)
