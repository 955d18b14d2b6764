"""What campaigns share: how bytes are damaged, and children that may die."""

from __future__ import annotations

import os
import random
from collections.abc import Callable


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return bytes of which some are others, or gone, or too many; as a disk, a program or an enemy may leave them."""
    if not data:
        return dice.randbytes(dice.randrange(1, 64))
    raw = bytearray(data)
    start = dice.randrange(len(raw))
    length = dice.choice((1, 1, 4, 64, 4096))
    match dice.randrange(7):
        case 0:
            raw[start] ^= 1 << dice.randrange(8)
        case 1:
            raw[start : start + length] = dice.randbytes(min(length, len(raw) - start))
        case 2:
            raw[start : start + length] = bytes(min(length, len(raw) - start))
        case 3:
            del raw[start:]
        case 4:
            del raw[start : start + length]
        case 5:
            raw[start:start] = raw[start : start + length]
        case _:
            raw += dice.randbytes(length)
    return bytes(raw)


def in_child(work: Callable[[], None], seconds: int = 60) -> str:
    """Do some work in a child; return what went wrong, empty if nothing did. A child that hangs is killed."""
    import signal
    import traceback

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            work()
            code = 0
        except BaseException:  # noqa: BLE001  # a child must never go on as its parent
            os.write(writer, traceback.format_exc()[-3000:].encode())
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:  # noqa: PTH123  # a descriptor
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)} {said}"
    return said if os.WEXITSTATUS(status) else ""
