"""The contract of the extension `workspaces`."""

from klaw_testing.extension import KeepingExtensionContract


class TestWorkspaces(KeepingExtensionContract):
    name = "workspaces"

    def fill(self, memory, directory):
        (directory / "notes").mkdir()
        (directory / "notes" / "a.md").write_text("# Kiln\n\nThe kiln is hot.\n", "utf-8")
        memory.index(directory / "notes")
