"""Run a model with ONNX Runtime on the CPU: rows of token ids in, the graph's output out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import frozen

from klaw_core import KlawError, Lazy
from klaw_models import CrossEncoderManifest, OnnxEmbedderManifest

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]  # it has no py.typed

OnnxManifest: TypeAlias = OnnxEmbedderManifest | CrossEncoderManifest

#: What can run a graph, by the name in the configuration: ONNX Runtime's name, and the package that contains it.
PROVIDERS = {
    "cpu": ("CPUExecutionProvider", "onnxruntime"),
    "cuda": ("CUDAExecutionProvider", "onnxruntime-gpu"),
    "rocm": ("ROCMExecutionProvider", "onnxruntime-rocm"),
    "coreml": ("CoreMLExecutionProvider", "onnxruntime"),
    "directml": ("DmlExecutionProvider", "onnxruntime-directml"),
}


@frozen(eq=False)
class OnnxSession:
    """A loaded model. Safe to use from several threads.

    A run uses only the calling thread. The session has no threads of its own, so the process may fork. ``types_input``
    is None if the graph has no input for token types (which of two texts a token belongs to). ``failed`` is the error
    class that a run raises.
    """

    session: InferenceSession
    manifest: OnnxManifest
    types_input: str | None
    output: str
    failed: type[KlawError]

    @classmethod
    def load(
        cls,
        manifest: OnnxManifest,
        *,
        unavailable: type[KlawError],
        failed: type[KlawError],
        providers: Sequence[str] = ("cpu",),
    ) -> OnnxSession:
        """Check and load the model, to be run by the first of ``providers`` that supports a part of the graph.

        Raise ``unavailable`` if onnxruntime cannot be imported or cannot load the graph, or if a provider does not work
        here; ModelCorruptError if the file does not match the manifest or the graph lacks an input or output.
        """
        session = _open(manifest, unavailable, providers)
        inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))
        types_input = manifest.types_input if manifest.types_input in inputs else None
        output = manifest.output or outputs[0]
        missing = ({manifest.ids_input, manifest.mask_input} - set(inputs)) | ({output} - set(outputs))
        if missing:
            raise manifest.corrupt(f"the graph of {manifest.name} has no {', '.join(sorted(missing))}")
        return cls(session, manifest, types_input, output, failed)

    def run(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] = ()) -> NDArray[Any]:
        """Return the output for rows of token ids, which are padded to the longest row: one output row per row.

        ``types`` contain for each token the text that it belongs to (default: the first). Raise ``failed``.
        """
        feed = model_inputs(self.manifest, self.types_input, rows, types)
        try:
            output: NDArray[Any] = self.session.run([self.output], feed)[0]
        except Exception as error:  # onnxruntime's errors have no common base below Exception
            raise self.failed(f"{self.manifest.name} failed: {error}") from error
        return output


def model_inputs(
    manifest: OnnxManifest,
    types_input: str | None,
    rows: Sequence[Sequence[int]],
    types: Sequence[Sequence[int]] = (),
    *,
    width: int = 0,
) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of a graph for rows of token ids: int64 of shape (rows, tokens), padded with zeros.

    ``tokens`` is the length of the longest row, or ``width`` if that is greater. ``types`` contain for each token the
    text that it belongs to (default: the first). They are an input only if ``types_input`` is a name.
    """
    ids = np.zeros((len(rows), max(width, *map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    feed = {manifest.ids_input: ids, manifest.mask_input: mask}
    if types_input:
        feed[types_input] = type_ids = np.zeros_like(ids)
        for number, row in enumerate(types):
            type_ids[number, : len(row)] = row
    return feed


def _reinstall() -> str:
    from klaw_core import reinstall_command

    return reinstall_command("onnxruntime")


def _open(manifest: OnnxManifest, unavailable: type[KlawError], providers: Sequence[str]) -> InferenceSession:
    """Open the graph.

    The file is read and hashed in another thread during the import of onnxruntime, which takes longer. The session is
    built from the checked bytes, so the file is not read again.
    """
    content = Lazy(lambda: manifest.read(manifest.model))
    content.preload()
    # Its import would write an identifier of this machine to the home directory, and report to Microsoft from a thread.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        raise unavailable(f"onnxruntime cannot be imported: {error}", hint=_reinstall()) from error
    model = content.get()
    wanted = [_provider(name, onnxruntime.get_available_providers(), unavailable) for name in providers]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # only errors; warnings would be printed to stderr
    # Planning which outputs share memory takes almost half of the loading time and saves none: the arena reuses memory.
    options.enable_mem_reuse = False
    try:
        session = onnxruntime.InferenceSession(model, options, providers=wanted)
    except Exception as error:  # onnxruntime's errors have no common base below Exception
        raise unavailable(
            f"onnxruntime {onnxruntime.__version__} cannot load {manifest.name}: {error}",
            hint=_reinstall(),
        ) from error
    # onnxruntime leaves a provider out, with a warning in its log, if a driver or a library of it does not load.
    left_out = [name for name, own in zip(providers, wanted, strict=True) if own not in session.get_providers()]
    if left_out:
        raise unavailable(
            f"onnxruntime {onnxruntime.__version__} has {left_out[0]}, but it does not start here",
            hint=f"check its driver and libraries, or leave {left_out[0]!r} out of memory.embedding.providers",
        )
    return session


def _provider(name: str, available: Sequence[str], unavailable: type[KlawError]) -> str:
    """Return ONNX Runtime's name of a provider. Raise ``unavailable`` if this build of it has none."""
    own, package = PROVIDERS[name]
    if own not in available:
        from klaw_core import reinstall_command, uninstall_command

        known = ", ".join(known for known, (found, _) in PROVIDERS.items() if found in available)
        # Packages of different names contain the same module, so that only one of them may be installed.
        hint = f"{uninstall_command('onnxruntime')}, then {reinstall_command(package)}"
        raise unavailable(
            f"the installed onnxruntime has no {name}; it has: {known}",
            hint=f"{hint}, or leave {name!r} out of memory.embedding.providers",
        )
    return own
