"""The options of the embedder ``onnx``."""

from __future__ import annotations

from attrs import field, frozen, validators

#: As in ``klaw_models.onnx.PROVIDERS``, which is not imported here because it imports numpy.
PROVIDERS = ("cpu", "cuda", "rocm", "coreml", "directml")


def _known_providers(_options: object, _attribute: object, value: tuple[str, ...]) -> None:
    if not value:
        raise ValueError("names none; the default is ['cpu']")
    for name in value:
        if name not in PROVIDERS:
            raise ValueError(f"{name!r} is not one of {', '.join(PROVIDERS)}")


@frozen
class OnnxOptions:
    """Options of the embedder ``onnx``.

    ``model``: the name of an installed or added model (``klaw models list``).
    ``path``: a directory with a model and its ``model.json``; used instead of ``model``.
    ``threads``: the number of parallel batches; 0 means one for each processor that this process may use.
    ``providers``: what runs the model, the best first: ``cuda``, ``rocm``, ``coreml``, ``directml``, ``cpu``; what one
    does not support, the next runs. Each must work here.
    ``batch_tokens``: the maximum number of tokens per batch, including padding.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=256, validator=validators.ge(1))
    providers: tuple[str, ...] = field(default=("cpu",), validator=_known_providers)
