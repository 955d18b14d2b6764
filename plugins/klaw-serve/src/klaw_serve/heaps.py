"""How many heaps the C library keeps for the threads of a server."""

import os
import sys

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's <malloc.h>
_HEAPS = 2


def limit_heaps() -> None:
    """Let all threads share two heaps, before they begin. Without effect if the C library is not glibc.

    Otherwise glibc gives each thread of SQLite and numpy a heap, up to eight for each core. Each grows to the largest
    call that it has ever seen, and seldom shrinks. Somebody who has set the number keeps theirs.
    """
    chosen = "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    if chosen or not sys.platform.startswith("linux"):
        return
    import ctypes

    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_ARENA_MAX, _HEAPS)
