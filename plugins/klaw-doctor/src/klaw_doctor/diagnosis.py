"""What `klaw doctor` found."""

from attrs import frozen

from klaw_core import Finding


@frozen
class Diagnosis:
    """All findings, the most severe first; empty for a healthy memory."""

    findings: tuple[Finding, ...] = ()

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """The findings that were not fixed."""
        return tuple(finding for finding in self.findings if not finding.fixed)

    @property
    def healthy(self) -> bool:
        """Whether no error remains; warnings and notes may."""
        return all(finding.severity != "error" for finding in self.remaining)
