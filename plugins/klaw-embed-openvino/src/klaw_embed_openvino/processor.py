"""What the processor is fast in, read from the system without loading anything.

The names are Linux's, in ``/proc/cpuinfo``. Another system says nothing here, and gets float32.
"""

from __future__ import annotations

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
BFLOAT16, INT8, FLOAT32 = PRECISIONS = ("bfloat16", "int8", "float32")

#: Matrix units that multiply bfloat16 (Intel AMX).
_AMX = {"amx_tile", "amx_bf16"}
#: Instructions that add products of 8 bits to 32 bits: x86's VNNI in its two encodings, and ARM's dot product.
_DOT_PRODUCTS = {"avx512_vnni", "avx_vnni", "asimddp"}
# The first processor's flags are in here; a machine with hundreds of processors has a file of megabytes.
_ENOUGH = 16_384


def processor_flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the names of the first processor's abilities; none where the system does not say."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_ENOUGH)
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return frozenset()


def best_precision(flags: frozenset[str]) -> str:
    """Return the precision that a processor with these flags is fast in."""
    if flags >= _AMX:
        return BFLOAT16
    return INT8 if flags & _DOT_PRODUCTS else FLOAT32


def is_faster_here(cpuinfo: Path = CPUINFO) -> bool:
    """Return whether OpenVINO is faster than ONNX Runtime with the 8-bit graph, as far as that was measured.

    With AMX it is, 1.4 times; with VNNI or none of these it is not (``docs/decisions/0054-openvino.md``). With ARM's
    dot product nobody has measured it, so the embedder that was there before stays the first.
    """
    return best_precision(processor_flags(cpuinfo)) == BFLOAT16
