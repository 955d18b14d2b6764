"""Python looks for garbage at moments that depend on the seed only.

It does so after some number of new objects, at whatever place of the code that is; and garbage may be a cursor that
still reads an old snapshot. What a parent has made before it forks counts, and so do other threads, which go on as a
busy machine lets them. So a child begins with nothing counted, and while an operation uses threads, nobody looks.
"""

import gc
import threading
import time

#: For a thread of an event loop that has ended: it was told to end, too.
_LOOK_SECONDS, _LOOKS = 0.002, 5000
_sleep = time.sleep  # the real one
_bootstrap = threading.Thread._bootstrap  # type: ignore[attr-defined]


def begin() -> None:
    """Let nothing count that another process has made. (``collect`` empties the lists of free objects, too.)"""
    gc.freeze()
    gc.collect()


class _Starting:
    """What a thread begins with: it is asked for when the thread is about to start, so that no place is added."""

    def __get__(self, thread: threading.Thread, _: object) -> object:
        gc.disable()
        return _bootstrap.__get__(thread)


def install() -> None:
    """Look for no garbage from the moment on at which this process starts a thread, until :func:`go_on`."""
    threading.Thread._bootstrap = _Starting()  # type: ignore[attr-defined]


def go_on(threads: int = 1) -> None:
    """Look for garbage now, and again as usual, when no more threads are left than there were."""
    if gc.isenabled():
        return
    for _ in range(_LOOKS):
        if threading.active_count() <= threads:
            break
        _sleep(_LOOK_SECONDS)
    gc.collect()
    gc.enable()
