"""``klaw doctor``: check a memory, and fix problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_doctor.diagnosis import Diagnosis

_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


@click.command("doctor", short_help="Check everything, and fix what is safe to fix.")
@click.option("--fix", is_flag=True, help="Fix problems that can be fixed without loss of data, then check again.")
@common_options
@pass_settings
def command(settings: Settings, *, fix: bool) -> None:
    """Check the database, the indexes, the files and the plugins, and print a fix for each problem.

    The exit status is 1 if an error remains. Nothing is changed without --fix.
    """
    diagnosis = _diagnose(settings, fix=fix)
    from klaw_core import to_json
    from klaw_core.cli.kit import print_json

    if settings.json:
        print_json({"healthy": diagnosis.healthy, "findings": to_json(diagnosis.findings)})
    else:
        _show(settings, diagnosis)
    if not diagnosis.healthy:
        raise click.exceptions.Exit(1)


def _diagnose(settings: Settings, *, fix: bool) -> Diagnosis:
    """Check the memory; if it cannot be opened, check what can be checked without it. Raise ConfigError."""
    from klaw_core import ConfigError, KlawError

    try:
        memory = settings.open_memory()
    except ConfigError:
        raise
    except KlawError as error:
        from klaw_core import discover
        from klaw_doctor.doctor import diagnose_unopened

        config = settings.load_config()
        return diagnose_unopened(config, discover(disabled=config.disabled_plugins), error)
    with memory:
        found: Diagnosis = memory.doctor(fix=fix)
        return found


def _show(settings: Settings, diagnosis: Diagnosis) -> None:
    from klaw_core.cli.kit import StyledText, data, tilde

    out = data()
    for finding in diagnosis.findings:
        head = (
            StyledText("fixed", "bold green")
            if finding.fixed
            else StyledText(finding.severity, _STYLES[finding.severity])
        )
        out.line(head, " ", StyledText(tilde(finding.where), "bold"), f": {finding.what}")
        if finding.hint and not finding.fixed:
            out.line(StyledText(f"→ {finding.hint}", "cyan"), indent=2)
        if settings.verbose:
            for item in finding.items:
                out.line(StyledText(item, "dim"), indent=4)
    if not settings.quiet:
        out.line(_verdict(diagnosis))


def _verdict(diagnosis: Diagnosis) -> str:
    from klaw_core.cli.kit import counted

    counts = [
        counted(number, name)
        for name in _STYLES
        if (number := sum(finding.severity == name for finding in diagnosis.remaining))
    ]
    fixed = len(diagnosis.findings) - len(diagnosis.remaining)
    also = f"; {counted(fixed, 'thing')} fixed" if fixed else ""
    return f"{', '.join(counts) if counts else 'no problems found'}{also}"
