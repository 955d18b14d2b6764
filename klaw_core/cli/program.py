"""The command group ``klaw``, and the modules of its commands."""

import click

from klaw_core.cli.group import KlawGroup
from klaw_core.cli.settings import Settings, common_options

#: Every command: its module in ``klaw_core.cli``, and its line in ``klaw --help``.
#: The line is repeated here so that the help imports no command; a test compares it with the command's own line.
COMMANDS = {
    "init": ("init", "Create the data directory and a configuration file."),
    "index": ("index", "Index directories or files, or bring the index up to date."),
    "embed": ("embed", "Compute the vectors that are missing."),
    "search": ("search", "Find the chunks that answer a question."),
    "links": ("klaw_notes.links.command", "Show what a note links to, what links to it, and broken links."),
    "list": ("list", "List documents, saved memories, chats or workspaces."),
    "recent": ("recent", "Show the newest documents."),
    "get": ("get", "Print notes, or some of their lines."),
    "open": ("open", "Open a result of the last search in an editor."),
    "save": ("klaw_memories.save_command", "Save a text as a memory."),
    "history": ("klaw_memories.history_command", "Show every version of a saved memory."),
    "logs": ("klaw_conversations.logs_command", "Print the messages of a chat."),
    "forget": ("forget", "Remove a memory, a note or a workspace from the index."),
    "restore": ("klaw_notes.restore_command", "Restore a forgotten note."),
    "workspace": ("klaw_notes.workspace_command", "List, rename, share, describe and restrict indexed directories."),
    "core": ("klaw_memories.core_command", "Show and change core memory."),
    "context": ("klaw_tools.context_command", "Print the context for a message, as a model would get it."),
    "ask": ("klaw_tools.ask_command", "Answer a question from memory, with its sources."),
    "status": ("status", "Show what is indexed, the model in use, and any problems."),
    "reindex": ("reindex", "Rebuild the index from the files, optionally with another model."),
    "doctor": ("klaw_doctor.commands.doctor", "Check everything, and fix what is safe to fix."),
    "export": ("klaw_doctor.commands.export", "Export saved memories, conversations and other records."),
    "import": ("klaw_doctor.commands.import_", "Import the records of an export."),
    "plugins": ("plugins", "List the installed plugins and what they provide."),
    "config": ("config", "Show and change the configuration."),
    "demo": ("demo", "Try Klaw: index sample notes and search them."),
}
ALIASES = {"add": "index", "ls": "list"}
#: The groups of the help, by what people do. A command that no group names is shown in the last one.
GROUPS = {
    "Start": "init index demo",
    "Find and read": "search ask get open links list recent logs",
    "Remember and forget": "save history core remember facts people forget restore",
    "Agents": "mcp serve hook context compact",
    "Upkeep": "status doctor watch sync embed reindex compress workspace export import migrate",
    "Configure and measure": "config plugins models eval",
}


def _show_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if not value or context.resilient_parsing:
        return
    from klaw_core.cli.newest import version_lines
    from klaw_core.cli.output import data

    for line in version_lines(check=context.params["check"]):
        data().line(line)
    context.exit()


@click.group(
    cls=KlawGroup,
    modules=COMMANDS,
    aliases=ALIASES,
    groups=GROUPS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nTo start: klaw init; klaw index DIR; klaw search QUESTION.\nTo try it on sample notes: klaw demo.\n"
    "Commands that are not installed name what installs them.",
)
@click.option("--version", is_flag=True, expose_value=False, callback=_show_version, help="Show the version and exit.")
@click.option("--check", is_flag=True, is_eager=True, help="With --version: also ask PyPI for the newest version.")
@common_options
@click.pass_context
def cli(context: click.Context, *, check: bool) -> None:
    """Search your notes by words and by meaning, all in one SQLite file."""
    if check:
        raise click.UsageError("--check needs --version", context)
    context.ensure_object(Settings)
