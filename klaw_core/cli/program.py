"""The group ``klaw`` itself: its commands by name, and where each is to be found."""

import click

from klaw_core.cli.group import KlawGroup
from klaw_core.cli.settings import Settings, common_options

#: Every command: the module below ``klaw_core.cli`` that defines it, and its line in ``klaw --help``.
#: The line is repeated here so that the help needs no module; a test compares it with the command's own.
COMMANDS = {
    "init": ("init", "Create the data directory and a configuration file."),
    "index": ("index", "Index directories or files, or bring the index up to date."),
    "embed": ("embed", "Compute the vectors that are missing."),
    "search": ("search", "Find the chunks that answer a question."),
    "list": ("list", "List documents, saved memories, chats or workspaces."),
    "recent": ("recent", "Show the newest documents."),
    "get": ("get", "Print a note, or some of its lines."),
    "save": ("save", "Remember a text."),
    "logs": ("logs", "Print what was said in a chat."),
    "forget": ("forget", "Remove a memory, a note or a workspace from the index."),
    "restore": ("restore", "Take back a note that was forgotten."),
    "workspace": ("workspace", "List, rename, remove and restrict indexed directories."),
    "core": ("core", "Show and change core memory."),
    "status": ("status", "Show what is indexed, with what, and what does not work."),
    "reindex": ("reindex", "Build the index anew from the files, perhaps with another model."),
    "doctor": ("doctor", "Examine everything, and fix what is safe to fix."),
    "export": ("export", "Write everything that is yours to a file."),
    "import": ("import_", "Add what an export holds."),
    "plugins": ("plugins", "List the installed plugins and what they provide."),
    "config": ("config", "Show and change the configuration."),
    "demo": ("demo", "Index sample notes and search them, to see Klaw at work."),
}
ALIASES = {"add": "index", "ls": "list"}


@click.group(
    cls=KlawGroup,
    modules=COMMANDS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nBegin with: klaw init; klaw index DIR; klaw search QUESTION.\nTo see it at work: klaw demo.",
)
@click.version_option(package_name="klaw", prog_name="klaw", message="%(prog)s %(version)s")
@common_options
@click.pass_context
def cli(context: click.Context) -> None:
    """Search your notes by words and by meaning, all in one SQLite file."""
    context.ensure_object(Settings)
