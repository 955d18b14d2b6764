"""The environment of a child process that reads untrusted bytes: without the user's keys."""

from __future__ import annotations

import os
import re

# What Python and its libraries need: to find programs and libraries, and to decode text.
_NEEDED = r"PATH|TMPDIR|TZ|LANG|LANGUAGE|LC_\w+|(?:LD|DYLD)_LIBRARY_PATH|PYTHON\w*"


def child_environment(*also: str, **values: str) -> dict[str, str]:
    """Return the variables that a child process of Python needs, and no others, which may be secrets.

    ``also`` are prefixes of further variables, ``values`` those with another value.
    """
    needed = re.compile("|".join((_NEEDED, *(rf"{re.escape(prefix)}\w*" for prefix in also))))
    kept = {name: value for name, value in os.environ.items() if needed.fullmatch(name)}
    return {**kept, **values}
