"""All threads of a server share two heaps of the C library."""

import subprocess
import sys

import pytest

# Prints how many heaps there are after twenty threads have each asked the C library for memory at the same time.
PROGRAM = """
import ctypes, re, sys, threading
from klaw_serve.heaps import limit_heaps

if sys.argv[1] == "limited":
    limit_heaps()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier(20)

def ask():
    together.wait()
    library.malloc(1000)
    together.wait()

threads = [threading.Thread(target=ask) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
library.malloc_info(0, out)
library.fflush(out)
"""


def heaps(how: str, **environment: str) -> int:
    words = [sys.executable, "-c", PROGRAM, how]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment, timeout=300)
    return done.stdout.count("<heap ")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc has these heaps")
def test_threads_share_two_heaps_unless_somebody_has_chosen():
    if heaps("as it is") <= 2:
        pytest.skip("not glibc")
    assert heaps("limited") <= 2
    assert heaps("limited", GLIBC_TUNABLES="glibc.malloc.arena_max=4") == 4
