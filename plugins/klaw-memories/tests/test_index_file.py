"""One file becomes a document under its name; again after a change, the same one."""

import pytest

from klaw_core import Memory, NewDocument, RecordError, load_config


@pytest.fixture
def memory(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as opened:
        yield opened


def test_a_file_is_found_under_its_label_and_replaced(memory, tmp_path):
    file = tmp_path / "crocodile.md"
    file.write_text("# Zoo\n\nThe crocodile sleeps.\n", "utf-8")
    documents = memory.extension("documents")
    documents.index_file(file, "MEMORY.md")
    (result,) = memory.search("crocodile sleeps")
    assert (result.path, result.source) == ("documents/crocodile.md", "MEMORY.md")
    file.write_text("# Zoo\n\nThe crocodile swims.\n", "utf-8")
    documents.index_file(str(file))
    assert [result.content for result in memory.search("crocodile swims")] == ["# Zoo\n\nThe crocodile swims."]
    assert len(memory.documents(prefix="documents/")) == 1


def test_a_document_can_have_another_id(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("text", "utf-8")
    assert NewDocument.of_file(file, id="zoo/a").path == "documents/zoo/a"
    assert NewDocument.of_file(file).trust == "foreign"


@pytest.mark.parametrize("content", [None, b"\xff\xfe", "directory"])
def test_what_is_no_text_file_is_refused(memory, tmp_path, content):
    file = tmp_path / "a.md"
    if content == "directory":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    with pytest.raises(RecordError) as error:
        memory.extension("documents").index_file(file)
    assert "a.md" in error.value.message
    assert error.value.hint
