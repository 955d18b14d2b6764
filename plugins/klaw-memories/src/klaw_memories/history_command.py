"""``klaw history``: the versions of a saved memory."""

from __future__ import annotations

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings


@click.command("history", short_help="Show every version of a saved memory.")
@click.argument("path")
@common_options
@pass_settings
def command(settings: Settings, *, path: str) -> None:
    """Show every version of the saved memory PATH, the oldest first, and which one is found now.

    PATH is the path of any version, or the beginning of it. `klaw get` prints one version; `klaw forget` removes it,
    and those before it, for good.
    """
    from klaw_memories.saved_extension import SavedExtension
    from klaw_memories.versions import replaced

    with settings.open_memory() as memory:
        saved = memory.extension(SavedExtension)
        found = saved.history(path)
        texts = [saved.redactor.text(each.text) for each in found]
        gone = replaced(saved.journal.replay().records)
    from klaw_core import to_json
    from klaw_core.cli.kit import StyledText, data, print_json, shown_moment

    if settings.json:
        print_json(
            [
                {**to_json(each), "text": text, "current": each.id not in gone}
                for each, text in zip(found, texts, strict=True)
            ]
        )
        return
    out = data()
    for each, text in zip(found, texts, strict=True):
        state = "replaced" if each.id in gone else "current"
        tags = f"  [{', '.join(each.tags)}]" if each.tags else ""
        out.line(StyledText(each.id, "bold cyan"), f"  {shown_moment(each.created_at)}  {state}{tags}")
        for line in text.splitlines():
            out.line(f"   {line}")
