"""The platform's directories for a user's files."""

import os
import sys
from pathlib import Path
from typing import Literal

_XDG = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "data": ("XDG_DATA_HOME", ".local/share"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
}


def user_directory(kind: Literal["config", "data", "cache"]) -> Path:
    """Return Klaw's directory of a kind, the same as platformdirs does.

    On Linux this follows the XDG Base Directory Specification without importing platformdirs: the import costs 5% of
    a keyword search. A test compares both results.
    """
    variable, default = _XDG[kind]
    home, base = os.environ.get("HOME", ""), os.environ.get(variable, "")
    plain = sys.platform == "linux" and "ANDROID_DATA" not in os.environ
    if plain and home.startswith("/") and (not base or base.startswith("/")):
        return Path(base or f"{home.rstrip('/')}/{default}", "klaw")
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_dir")("klaw"))
