"""Run a model with OpenVINO on the CPU: rows of token ids in, the last hidden states out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError, ThreadLock, reinstall_command
from klaw_embed_openvino.processor import (
    BFLOAT16,
    CPUINFO,
    INT8,
    best_precision,
    computes_in_bfloat16,
    processor_flags,
)
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx import model_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from openvino import CompiledModel, InferRequest, Model

_OTHER = "set memory.embedding.type to 'onnx'"

#: The number of activations that share a scale: OpenVINO's default on x86, which supports multiples of 16. ARM supports
#: only one scale for a whole token.
GROUP, WHOLE_TOKEN = 32, 2**64 - 1

#: Rows are padded to a multiple of this number of tokens. OpenVINO generates code for each new shape, which takes a
#: third of a run. Its vectors and tiles have 16 lanes, so a length of 241 takes longer than 256.
ALIGNMENT = 16


_FIRST_CONVERSION = ThreadLock("the first tensor of openvino")


@frozen(eq=False)
class OpenVinoSession:
    """A compiled model. Safe to use from several threads; each has its own inference request.

    OpenVINO has threads, which do not exist in a forked process. There a run raises EmbedderUnavailableError, because
    OpenVINO would wait for them forever.
    """

    model: CompiledModel
    manifest: OnnxEmbedderManifest
    precision: str
    types_input: str | None
    output: str
    _requests: local = field(factory=local, init=False, repr=False)
    _process: int = field(factory=os.getpid, init=False, repr=False)

    @classmethod
    def load(
        cls, manifest: OnnxEmbedderManifest, *, precision: str, streams: int, cpuinfo: Path = CPUINFO
    ) -> OpenVinoSession:
        """Check and compile the model for ``streams`` parallel runs, on the processor that ``cpuinfo`` describes.

        Raise EmbedderUnavailableError if openvino cannot be imported or cannot load the graph, or if the processor does
        not support the precision; ModelCorruptError if a file does not match the manifest or the graph lacks an input
        or output.
        """
        # Its import would write an identifier for Google Analytics to the home directory, and report from a process of
        # its own. No variable switches that off; without the package for it, openvino takes a stub.
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None: it cannot be imported
        try:
            import openvino
        except (ImportError, OSError) as error:
            hint = reinstall_command("openvino")
            raise EmbedderUnavailableError(f"openvino cannot be imported: {error}", hint=hint) from error
        path = _checked(manifest)
        flags = processor_flags(cpuinfo)
        if precision == "auto":
            precision = best_precision(flags)
            if precision == INT8 and manifest.weight_only is None:
                precision = "float32"  # OpenVINO computes in 8 bits if the weights have 8 bits
        if precision == BFLOAT16 and not computes_in_bfloat16(flags):
            raise _no_bfloat16()
        _convert_first()
        try:
            core = openvino.Core()
            model = core.read_model(path)
            types_input, output = _names(manifest, model)
            _require_computable(manifest, model)
            if precision != INT8:
                _unpack_weights(model)
            compiled = core.compile_model(model, "CPU", _settings(precision, streams, flags))
            got = compiled.get_property("INFERENCE_PRECISION_HINT")
        except RuntimeError as error:  # openvino raises it for every error
            message = f"openvino {openvino.__version__} cannot load {manifest.name}: {error}"
            raise EmbedderUnavailableError(message, hint=reinstall_command("openvino")) from error
        if precision == BFLOAT16 and got != openvino.Type.bf16:
            raise _no_bfloat16()
        return cls(compiled, manifest, precision, types_input, output)

    def run(self, rows: Sequence[Sequence[int]], /) -> NDArray[Any]:
        """Return the output for rows of token ids, which are padded to the longest row: one output row per row.

        Raise EmbeddingError, or EmbedderUnavailableError in a forked process.
        """
        if os.getpid() != self._process:
            raise EmbedderUnavailableError(
                "openvino was loaded before this process was forked",
                hint="start worker processes with the method 'spawn' or 'forkserver'",
            )
        request: InferRequest | None = getattr(self._requests, "own", None)
        try:
            if request is None:
                request = self._requests.own = self.model.create_infer_request()
            longest = max(map(len, rows))
            width = aligned(longest, self.manifest.window_tokens)
            outputs = request.infer(model_inputs(self.manifest, self.types_input, rows, width=width))
        except RuntimeError as error:
            raise EmbeddingError(f"{self.manifest.name} failed: {error}") from error
        states: NDArray[Any] = outputs[self.output]
        return states[:, :longest] if states.shape[1:2] == (width,) else states


def aligned(tokens: int, most: int) -> int:
    """Return ``tokens`` rounded up to a multiple of :data:`ALIGNMENT`, but at most ``most``, the model's window."""
    return max(tokens, min(-(-tokens // ALIGNMENT) * ALIGNMENT, most))


def _no_bfloat16() -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        "this processor does not compute in bfloat16", hint="set memory.embedding.precision to 'auto'"
    )


def _convert_first() -> None:
    """Convert a tensor to an array before several threads do.

    The first conversion runs Python code of numpy during the initialisation of a static variable of C++. If another
    thread converts at the same time, one thread waits for that variable while it holds the GIL, and the other waits for
    the GIL: a deadlock (observed with 2026.4).
    """
    import numpy as np
    import openvino

    with _FIRST_CONVERSION.hold():
        _ = openvino.Tensor(np.zeros(1, np.int64)).data


def _checked(manifest: OnnxEmbedderManifest) -> Path:
    """Return the path of the graph, after checking it and the file with its weights against the manifest.

    Links are resolved, because openvino loads weights only from the real directory of the graph.
    """
    path = manifest.check(manifest.model)
    return (path if manifest.weight_only is None else manifest.check(manifest.weight_only)).resolve()


def _names(manifest: OnnxEmbedderManifest, model: Model) -> tuple[str | None, str]:
    """Return the name of the input for token types, if the graph has it, and of the output."""
    inputs = {name for value in model.inputs for name in value.names}
    outputs = {name for value in model.outputs for name in value.names}
    output = manifest.output or model.outputs[0].any_name
    missing = ({manifest.ids_input, manifest.mask_input} - inputs) | ({output} - outputs)
    if missing:
        raise manifest.corrupt(f"the graph of {manifest.name} has no {', '.join(sorted(missing))}")
    return (manifest.types_input if manifest.types_input in inputs else None), output


def _require_computable(manifest: OnnxEmbedderManifest, model: Model) -> None:
    """Raise EmbedderUnavailableError for a graph with one scale per token, which OpenVINO computes incorrectly.

    Its FakeQuantize applies the scales to the other axis. That fails for some shapes, and gives wrong results for
    others.
    """
    for node in model.get_ops():
        if node.get_type_name() == "FakeQuantize" and any(
            value.get_node().get_type_name() != "Constant" for value in node.input_values()[1:]
        ):
            raise EmbedderUnavailableError(
                f"openvino cannot compute {manifest.directory / manifest.model}, whose activations have a scale "
                "per token, and the model has no weight-only graph",
                hint=f"{reinstall_command('klaw-model-minilm', dependencies=False)}, or {_OTHER}",
            )


def _unpack_weights(model: Model) -> None:
    """Convert 8-bit weights to floats once, instead of in each run."""
    from openvino.passes import ConstantFolding, Manager

    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)


def _settings(precision: str, streams: int, flags: frozenset[str]) -> dict[str, str | int]:
    """Return the properties for compilation. A stream is one thread that computes a batch, as with ONNX Runtime."""
    group = (WHOLE_TOKEN if "asimddp" in flags else GROUP) if precision == INT8 else 0
    return {
        "INFERENCE_PRECISION_HINT": "bf16" if precision == BFLOAT16 else "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": group,
        "NUM_STREAMS": streams,
        "INFERENCE_NUM_THREADS": streams,
        "ENABLE_CPU_PINNING": "NO",  # other programs use these processors too, and the process may be forked
    }
