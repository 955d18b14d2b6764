"""Vectors, and the space in which two of them may be compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # shape (d,), unit length
    Matrix: TypeAlias = NDArray[np.float32]  # shape (n, d), rows of unit length
    Keys: TypeAlias = NDArray[np.int64]  # shape (n,), ascending, distinct
else:
    Vector = Matrix = Keys = Any  # so that `Matrix | None` can be evaluated without importing numpy

# A revision of this form may be shown by its first characters; any other, such as a server's address, may not.
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{32,}")


@frozen
class VectorSpace:
    """Identifies vectors that can be compared: all fields must be equal.

    ``revision`` identifies the weights, ``pooling`` how tokens become one vector (``mean/256``: mean over
    windows of 256 tokens). ``metric`` is ``"cosine"``: vectors have unit length.
    """

    model: str
    revision: str
    dimension: int
    metric: str = "cosine"
    pooling: str = "mean"

    def __str__(self) -> str:
        revision = self.revision[:12] if _DIGEST.fullmatch(self.revision) else self.revision
        return f"{self.model}@{revision} ({self.dimension}-d, {self.metric}, {self.pooling})"

    @property
    def identity(self) -> str:
        """One line that equals another space's exactly when the spaces are equal."""
        return "\t".join((self.model, self.revision, str(self.dimension), self.metric, self.pooling))


@frozen
class SpaceRecord:
    """The vector space of a collection, and the probe sentence's vector that proves it."""

    space: VectorSpace
    probe: Vector = field(eq=False, repr=False)
