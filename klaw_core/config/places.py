"""Where the platform keeps a user's files."""

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
    """Return Klaw's own directory among the user's, as platformdirs says where that is.

    On a plain Linux its answer is the XDG Base Directory Specification's, which is given here without it: to import
    platformdirs takes a twentieth of a search for words. A test compares the two.
    """
    variable, default = _XDG[kind]
    home, base = os.environ.get("HOME", ""), os.environ.get(variable, "")
    plain = sys.platform == "linux" and "ANDROID_DATA" not in os.environ
    if plain and home.startswith("/") and (not base or base.startswith("/")):
        return Path(base or f"{home.rstrip('/')}/{default}", "klaw")
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_dir")("klaw"))
