"""What a processor is said to be fast in, and when `auto` is told to prefer this embedder."""

from __future__ import annotations

from pathlib import Path

import pytest

from klaw_embed_openvino import plugin
from klaw_embed_openvino.processor import best_precision, computes_in_bfloat16, is_faster_here, processor_flags

SAPPHIRE_RAPIDS = "fma avx2 avx512f avx512_vnni avx512_bf16 amx_bf16 avx_vnni amx_tile amx_int8"
PROCESSORS = {
    "amx": (f"processor\t: 0\nmodel name\t: Xeon\nflags\t\t: fpu {SAPPHIRE_RAPIDS}\n\n", "bfloat16"),
    "tiles without bfloat16": ("flags\t\t: fpu avx2 amx_tile amx_int8\n", "float32"),
    "vnni": ("flags\t\t: fpu avx2 avx512f avx512_vnni\n", "int8"),
    "vnni in 256 bits": ("flags\t\t: fpu avx2 avx_vnni\n", "int8"),
    "bfloat16 without tiles": ("flags\t\t: fpu avx512_vnni avx512_bf16\n", "int8"),
    "avx2": ("flags\t\t: fpu avx avx2 fma\n", "float32"),
    "arm with dot products": ("processor\t: 0\nFeatures\t: fp asimd asimddp\n", "int8"),
    "arm": ("Features\t: fp asimd\n", "float32"),
    "unknown": ("cpu : POWER9\n", "float32"),
}


@pytest.mark.parametrize(("cpuinfo", "precision"), PROCESSORS.values(), ids=PROCESSORS)
def test_the_precision_depends_on_the_flags(tmp_path: Path, cpuinfo: str, precision: str) -> None:
    place = tmp_path / "cpuinfo"
    place.write_text(cpuinfo * 300, encoding="utf-8")
    assert best_precision(processor_flags(place)) == precision
    assert is_faster_here(place) == (precision == "bfloat16")
    assert computes_in_bfloat16(processor_flags(place)) == (precision == "bfloat16" or "avx512_bf16" in cpuinfo)


def test_an_unknown_processor_gets_float32(tmp_path: Path) -> None:
    assert processor_flags(tmp_path / "none") == frozenset()
    assert best_precision(frozenset()) == "float32"


@pytest.mark.parametrize(("faster", "first"), [(True, True), (False, False)])
def test_auto_prefers_it_only_where_it_is_faster(monkeypatch: pytest.MonkeyPatch, *, faster: bool, first: bool) -> None:
    embed_onnx = pytest.importorskip("klaw_embed_onnx.plugin")
    monkeypatch.setattr(plugin, "is_faster_here", lambda: faster)
    (own,), (onnx,) = plugin.klaw_embedders(), embed_onnx.klaw_embedders()
    assert (own.auto.rank < onnx.auto.rank) == first
