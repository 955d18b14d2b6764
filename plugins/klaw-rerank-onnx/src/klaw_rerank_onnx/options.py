"""The options of the reranker ``onnx``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class OnnxRerankerOptions:
    """Options of the reranker ``onnx``.

    ``model``: the name of an installed or downloaded cross-encoder.
    ``path``: a directory that holds one and its ``model.json``, instead of a name.
    ``max_tokens``: how many tokens of question and chunk together the model is given; never more than its window.
    ``max_candidates``: how many of the best chunks it reads.
    ``top_n``: how many of them are put in its order, in front of the others.
    ``batch``: how many chunks are read in one run of the model.
    ``threads``: how many batches are computed at once; 0 is one for each processor this process may use.
    ``bypass``: whether questions with a clear winner skip the model.
    """

    model: str = field(default="ms-marco-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    max_tokens: int = field(default=512, validator=validators.ge(16))
    max_candidates: int = field(default=20, validator=validators.ge(1))
    top_n: int = field(default=8, validator=validators.ge(1))
    batch: int = field(default=4, validator=validators.ge(1))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    bypass: bool = True
