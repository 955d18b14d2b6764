"""Choose the fastest precision for this processor, without loading a library.

The names of processor flags are those in Linux's ``/proc/cpuinfo``. On other systems the precision is float32.
"""

from __future__ import annotations

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
BFLOAT16, INT8, FLOAT32 = PRECISIONS = ("bfloat16", "int8", "float32")

#: The flags of matrix units for bfloat16 (Intel AMX).
_AMX = {"amx_tile", "amx_bf16"}
#: The flag of vector instructions for bfloat16, which are slower than ``int8`` but are no emulation.
_VECTORS = "avx512_bf16"
#: The flags of instructions for dot products of 8-bit integers: the two forms of x86's VNNI, and ARM's dot product.
_DOT_PRODUCTS = {"avx512_vnni", "avx_vnni", "asimddp"}
# Bytes to read, which contain the flags of the first processor. With hundreds of processors the file has megabytes.
_ENOUGH = 16_384


def processor_flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the flags of the first processor; none if the system does not provide them."""
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
    """Return the fastest precision for a processor with these flags."""
    if flags >= _AMX:
        return BFLOAT16
    return INT8 if flags & _DOT_PRODUCTS else FLOAT32


def computes_in_bfloat16(flags: frozenset[str]) -> bool:
    """Return whether a processor with these flags has instructions for bfloat16; OpenVINO emulates them elsewhere."""
    return flags >= _AMX or _VECTORS in flags


def is_faster_here(cpuinfo: Path = CPUINFO) -> bool:
    """Return whether OpenVINO is faster than ONNX Runtime with the 8-bit graph, as far as that was measured.

    It is 1.4 times as fast with AMX, and not faster with VNNI or without either (``docs/decisions/0054-openvino.md``).
    ARM's dot product was not measured, so ONNX Runtime stays the default there.
    """
    return best_precision(processor_flags(cpuinfo)) == BFLOAT16
