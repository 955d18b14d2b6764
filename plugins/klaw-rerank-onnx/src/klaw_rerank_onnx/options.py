"""The options of the reranker ``onnx``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class OnnxRerankerOptions:
    """Options of the reranker ``onnx``.

    ``model``: the name of an installed or added cross-encoder (``klaw models list``).
    ``path``: a directory with a model and its ``model.json``; used instead of ``model``.
    ``max_tokens``: the maximum number of tokens of question and chunk together, limited by the model's window.
    ``max_candidates``: the number of best chunks that the model scores.
    ``top_n``: the number of chunks that are put first, in the model's order.
    ``batch``: the number of chunks per run of the model.
    ``threads``: the number of parallel batches; 0 means one for each processor that this process may use.
    ``bypass``: whether the model is not run if a result is clearly the best.
    """

    model: str = field(default="ms-marco-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    max_tokens: int = field(default=512, validator=validators.ge(16))
    max_candidates: int = field(default=20, validator=validators.ge(1))
    top_n: int = field(default=8, validator=validators.ge(1))
    batch: int = field(default=4, validator=validators.ge(1))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    bypass: bool = True
