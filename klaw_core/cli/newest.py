"""What ``klaw --version`` prints; with ``--check`` it asks PyPI which version is the newest one."""

from __future__ import annotations

import json
import os
from importlib.metadata import version

from klaw_core.config.load import is_offline
from klaw_core.errors import ConfigError, KlawError
from klaw_core.plugins.installing import update_command

PYPI = "https://pypi.org/pypi/klaw/json"
_SECONDS = 10
_MAX_BYTES = 50_000_000


def version_lines(*, check: bool) -> list[str]:
    """Return the installed version and, with ``check``, what is newer and installs it. Raise KlawError."""
    here = version("klaw")
    lines = [f"klaw {here}"]
    if not check:
        return lines
    if "git pull" in update_command():  # PyPI says nothing about a clone
        return [*lines, f"installed from a clone; to update it: {update_command()}"]
    newest = _newest()
    is_older = _numbers(here) < _numbers(newest)
    return [*lines, f"klaw {newest} is available: {update_command()}" if is_older else "this is the newest version"]


def _newest() -> str:
    """Return the newest version that PyPI has. Raise KlawError."""
    problems: list[str] = []
    offline = is_offline(os.environ, problems)
    if problems:
        raise ConfigError(problems)
    if offline:
        raise KlawError(
            "PyPI was not asked, because KLAW_OFFLINE is set", hint="unset KLAW_OFFLINE, or leave out --check"
        )
    from http.client import HTTPException  # these two here, because nothing else needs them
    from urllib.request import urlopen

    try:
        with urlopen(PYPI, timeout=_SECONDS) as answer:
            found = json.loads(answer.read(_MAX_BYTES))["info"]["version"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", None) or error
        raise KlawError(f"PyPI did not return the newest version: {reason}", hint="check the network") from error
    return str(found)


def _numbers(text: str) -> tuple[int, ...]:
    """Return a version as numbers; a part that is none ends it."""
    parts = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)
