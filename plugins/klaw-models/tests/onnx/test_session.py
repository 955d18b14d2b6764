"""A session feeds what its graph takes, and each way to fail is the error that the plugin asked for."""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelCorruptError
from klaw_models import CrossEncoderManifest
from klaw_models.onnx import PROVIDERS, OnnxSession

MakeManifest = Callable[..., CrossEncoderManifest]


def load(manifest: CrossEncoderManifest, providers: Sequence[str] = ("cpu",)) -> OnnxSession:
    return OnnxSession.load(manifest, unavailable=EmbedderUnavailableError, failed=EmbeddingError, providers=providers)


def test_rows_are_padded_and_masked(make_manifest: MakeManifest) -> None:
    ids, mask, types = np.moveaxis(load(make_manifest()).run([(4, 5, 6), (4,)], [(0, 1, 1), (1,)]), 2, 0)
    assert ids.tolist() == [[4, 5, 6], [4, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert types.tolist() == [[0, 1, 1], [1, 0, 0]]


def test_without_types_all_tokens_belong_to_the_first_text(make_manifest: MakeManifest) -> None:
    assert load(make_manifest()).run([(4, 5)])[:, :, 2].tolist() == [[0, 0]]


def test_types_are_left_out_if_the_graph_has_none(make_manifest: MakeManifest) -> None:
    session = load(make_manifest(types=False))
    assert session.types_input is None
    assert session.run([(4, 5)], [(0, 1)]).shape == (1, 2, 2)


def test_the_first_output_is_used_without_a_name(make_manifest: MakeManifest) -> None:
    assert load(make_manifest()).output == "fed"


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"inputs": {"ids": "words", "mask": "attention_mask"}}, "words"),
        ({"inputs": {"ids": "input_ids", "mask": "shown"}}, "shown"),
        ({"output": "scores"}, "scores"),
    ],
)
def test_an_unknown_output_is_an_error(make_manifest: MakeManifest, changes: dict[str, Any], missing: str) -> None:
    with pytest.raises(ModelCorruptError, match=f"the graph of tiny has no {missing}"):
        load(make_manifest(**changes))


def test_a_changed_file_is_not_loaded(make_manifest: MakeManifest) -> None:
    manifest = make_manifest()
    (manifest.directory / manifest.model).write_bytes(b"another graph")
    with pytest.raises(ModelCorruptError, match="does not match its manifest"):
        load(manifest)


def test_an_invalid_graph_is_unavailable(make_manifest: MakeManifest) -> None:
    with pytest.raises(EmbedderUnavailableError, match="cannot load tiny") as caught:
        load(make_manifest(graph=b"no graph"))
    assert "onnxruntime" in caught.value.hint


def test_a_failed_run_raises_the_error_of_the_plugin(make_manifest: MakeManifest) -> None:
    session = load(make_manifest(types=False))
    object.__setattr__(session, "types_input", "unknown")
    with pytest.raises(EmbeddingError, match="tiny failed: ") as caught:
        session.run([(4, 5)])
    assert type(caught.value) is EmbeddingError


def test_a_library_that_cannot_be_imported_is_unavailable(
    make_manifest: MakeManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def failing(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "onnxruntime":
            raise ImportError("libthing.so.1: cannot open shared object file")
        return real_import(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(EmbedderUnavailableError, match="onnxruntime cannot be imported: libthing") as caught:
        load(make_manifest())
    assert "onnxruntime" in caught.value.hint


@pytest.mark.parametrize("name", sorted(PROVIDERS.keys() - {"cpu"}))
def test_a_provider_that_is_not_installed_is_named_with_its_package(make_manifest: MakeManifest, name: str) -> None:
    import onnxruntime

    own, package = PROVIDERS[name]
    if own in onnxruntime.get_available_providers():
        pytest.skip(f"{name} is installed here")
    with pytest.raises(
        EmbedderUnavailableError, match=f"the installed onnxruntime has no {name}; it has: cpu"
    ) as caught:
        load(make_manifest(), providers=(name, "cpu"))
    assert package in caught.value.hint
    assert repr(name) in caught.value.hint


def test_a_provider_that_does_not_start_is_an_error(
    make_manifest: MakeManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime runs the graph on the CPU then, and says so only in its log."""
    import onnxruntime

    real = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [PROVIDERS["cuda"][0], PROVIDERS["cpu"][0]])
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda model, options, providers: real(model, options, providers=providers[1:]),
    )
    with pytest.raises(EmbedderUnavailableError, match="has cuda, but it does not start here"):
        load(make_manifest(), providers=("cuda", "cpu"))


def test_the_session_has_no_threads_of_its_own(make_manifest: MakeManifest) -> None:
    options = load(make_manifest()).session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_importing_the_library_imports_no_runtime() -> None:
    program = "import sys, klaw_models.onnx; print({'onnxruntime', 'tokenizers', 'httpx2'} & {*sys.modules} or 'none')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"
