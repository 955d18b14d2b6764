"""A named step of a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import frozen

R = TypeVar("R")


@frozen
class Migration(Generic[R]):
    """One named step of a schema. Steps are append-only; a store records (owner, name) as it applies them."""

    name: str
    apply: Callable[[R], None]
