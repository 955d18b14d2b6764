"""``klaw eval poison``: measure which attacks of strangers reach a context."""

from __future__ import annotations

import click

from klaw_core.cli.kit import Settings, common_options, data, pass_settings, print_json
from klaw_eval.attacks import PER_DOOR


@click.command("poison", short_help="Measure which attacks of strangers reach a context.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, PER_DOOR),
    default=PER_DOOR,
    show_default=True,
    metavar="N",
    help="Try only N attacks a door.",
)
@common_options
@pass_settings
def command(settings: Settings, /, *, limit: int) -> None:
    """Measure which attacks of strangers reach a context unasked, with your configuration; exit with 1 if any does.

    Instructions come into a memory of its own through every door of foreign text: notes, file names, tools, imported
    chats and others. The owner's notes say something about the same topics, which the contexts should contain.
    """
    from klaw_eval.attacks import DOORS
    from klaw_eval.poisoning import by_door, poison
    from klaw_eval.roots import index_root

    with index_root(None) as root:
        doors = by_door(poison(settings.load_config(), root, limit))
    total = {name: sum(counts[name] for counts in doors.values()) for name in doors["note"]}
    if settings.json:
        print_json({"doors": doors, "total": total})
    else:
        out = data()
        head = ["", "attacks", "found by a search", "in a context", "if asked for", "owner's note in the context"]
        rows = [[door, *map(str, counts.values())] for door, counts in (*doors.items(), ("all", total))]
        out.rows([head, *rows], right=(1, 2, 3, 4, 5))
        out.line("")
        out.rows([[door, what] for door, what in DOORS.items()])
    if total["injected"]:
        raise click.exceptions.Exit(1)
