"""The contract of the extensions of klaw-memories."""

from klaw_journals import NewDocument
from klaw_testing.extension import KeepingExtensionContract


class MemoriesContract(KeepingExtensionContract):
    def fill(self, memory, directory):  # noqa: ARG002  # they need no files
        memory.save("The boat is red.")
        memory.core.update("user", "name", "Ada")
        memory.add([NewDocument("d1", "The door is green.", {"tags": ["a", "b"]})])


class TestCoreMemory(MemoriesContract):
    name = "core_memory"


class TestSaved(MemoriesContract):
    name = "saved"


class TestDocuments(MemoriesContract):
    name = "documents"
