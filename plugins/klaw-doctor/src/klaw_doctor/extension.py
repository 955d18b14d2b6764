"""The extension ``doctor``: what ``Memory.doctor``, ``Memory.export`` and ``Memory.import_`` call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from attrs import define, evolve

from klaw_core import AttachedExtension, Extension

if TYPE_CHECKING:
    from klaw_core import Host
    from klaw_core.assembly import Assembly
    from klaw_core.extensions.host import Extensions
    from klaw_core.sources.catalogue import Sources
    from klaw_doctor.diagnosis import Diagnosis
    from klaw_journals.records import ExportReport, ImportReport


@define(eq=False)
class DoctorExtension(AttachedExtension):
    """Examines and repairs a memory; writes and reads exports. It keeps nothing of its own."""

    name = "doctor"
    _host: Host | None = None

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    def diagnose(self, assembly: Assembly, sources: Sources, extensions: Extensions, *, fix: bool) -> Diagnosis:
        """Run all checks of a memory; with ``fix`` fix what is safe to fix."""
        from klaw_doctor.doctor import Doctor

        return Doctor(assembly, sources, extensions).run(fix=fix)

    def export(self, extensions: Mapping[str, Extension], target: Path | BinaryIO) -> ExportReport:
        """Write the records of all extensions, and all other journals. Raise StoreError."""
        from klaw_doctor.export import export
        from klaw_journals import journals_of

        assert self._host is not None
        return export(extensions, self._host.data_dir, target, journals_of(self._host))

    def import_(
        self,
        extensions: Mapping[str, Extension],
        source: Path,
        importer: str | None,
        *,
        workspaces: bool,
        dry_run: bool,
        trust: str | None,
    ) -> ImportReport:
        """Add the records of an export, which ``importer`` makes of another program's. Raise KlawError.

        They have the class ``trust``; None leaves each its own, and makes those of another program foreign.
        """
        from klaw_doctor.importing import import_
        from klaw_journals import journals_of
        from klaw_journals.trust import FOREIGN

        assert self._host is not None
        journals = journals_of(self._host)
        add = partial(import_, extensions, journals=journals, workspaces=workspaces, dry_run=dry_run)
        add = partial(add, trust=trust if importer is None else trust or FOREIGN)
        if importer is None:
            return add(source)
        from klaw_doctor.importers import converted

        with converted(importer, source) as (path, skipped):
            return evolve(add(path), skipped=skipped)
