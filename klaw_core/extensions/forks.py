"""Replace locks in a forked child, before Klaw can be used in it."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from threading import RLock


def _renew_locks() -> None:
    """Replace the locks of cached properties, because a thread of the parent may have held one.

    Before Python 3.12, a cached property has one lock for all objects (https://github.com/python/cpython/issues/87634).
    """
    for module in [module for name, module in list(sys.modules.items()) if name.startswith("klaw_")]:
        for kind in [value for value in list(vars(module).values()) if isinstance(value, type)]:
            for value in list(vars(kind).values()):
                if isinstance(value, cached_property) and hasattr(value, "lock"):
                    value.lock = RLock()


os.register_at_fork(after_in_child=_renew_locks)
