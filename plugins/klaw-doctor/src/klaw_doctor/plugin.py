"""The hook implementation of klaw-doctor: the extension ``doctor``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, NoOptions, hookimpl

if TYPE_CHECKING:
    from klaw_doctor.extension import DoctorExtension


@hookimpl
def klaw_extensions() -> Iterable[Component[NoOptions, DoctorExtension]]:
    """Yield the extension ``doctor``."""
    summary = "checks, repair, exports and imports"
    yield Component("doctor", NoOptions, _build, api=2, summary=summary, rank=60)


def _build(_options: NoOptions, _context: ComponentContext) -> DoctorExtension:
    from klaw_doctor.extension import DoctorExtension

    return DoctorExtension()
