"""Haystack's own tests of a document store, and what they do not ask: search, pipelines, filters inside the index."""

import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseExtendedTests

from klaw_haystack import KlawDocumentStore, KlawHybridRetriever


@pytest.fixture
def store(tmp_path):
    store = KlawDocumentStore(tmp_path)
    yield store
    store.close()


class TestDocumentStore(DocumentStoreBaseExtendedTests):
    @pytest.fixture(autouse=True)
    def _words_only(self, monkeypatch):
        monkeypatch.setenv("KLAW_EMBEDDER", "none")

    @pytest.fixture
    def document_store(self, store):
        return store

    def test_write_documents(self, document_store):
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


def test_every_field_comes_back(store):
    documents = [
        Document(id="a", content="A text.", meta={"nested": {"x": [1, None]}, "none": None}, embedding=[0.5, 1.0]),
        Document(id="b", blob=ByteStream(b"\x00\xff", mime_type="image/png")),
        Document(id="c", content=""),
    ]
    store.write_documents(documents)
    assert store.filter_documents() == documents


class TestSearch:
    @pytest.fixture
    def filled(self, store):
        store.write_documents(
            [
                Document(id="red", content="A red ferry.", meta={"year": 2024, "tags": ["a"]}),
                Document(id="blue", content="A blue ferry.", meta={"year": 2026}),
                Document(id="bread", content="Bread is baked at night.", meta={"year": 2026}),
            ]
        )
        return store

    def test_the_best_is_first(self, filled):
        found = filled.search("which boat is blue", top_k=2)
        assert found[0].id == "blue"
        assert found[0].score > found[1].score

    @pytest.mark.parametrize(
        ("filters", "names"),
        [
            ({"field": "meta.year", "operator": ">", "value": 2025}, {"blue"}),
            ({"field": "meta.year", "operator": "!=", "value": 2026}, {"red"}),
            ({"field": "meta.year", "operator": "in", "value": [2024, 2025]}, {"red"}),
            (
                {
                    "operator": "OR",
                    "conditions": [
                        {"field": "meta.year", "operator": "==", "value": 2024},
                        {"field": "id", "operator": "==", "value": "blue"},
                    ],
                },
                {"red", "blue"},
            ),
            ({"operator": "NOT", "conditions": [{"field": "meta.year", "operator": "==", "value": 2024}]}, {"blue"}),
        ],
    )
    def test_filters_restrict_the_results(self, filled, filters, names):
        assert {document.id for document in filled.search("ferry", filters=filters, mode="fts")} == names

    def test_an_invalid_filter_is_rejected(self, filled):
        with pytest.raises(FilterError):
            filled.search("ferry", filters={"year": 2024})

    def test_filters_apply_before_the_limit(self, store):
        documents = [Document(id=str(number), content="ferry", meta={"n": number}) for number in range(60)]
        store.write_documents(documents)
        filters = {"operator": "AND", "conditions": [{"field": "meta.n", "operator": "==", "value": 41}]}
        assert [document.id for document in store.search("ferry", 1, filters)] == ["41"]


def test_a_pipeline_is_written_and_read(store):
    store.write_documents([Document(id="a", content="The ferry leaves at seven.")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", KlawHybridRetriever(store, top_k=3))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["klaw_haystack.*"])
    store.close()
    found = again.run({"retriever": {"query": "when does the ferry leave"}})["retriever"]["documents"]
    assert [document.id for document in found] == ["a"]
    again.get_component("retriever").document_store.close()


def test_the_retriever_returns_nothing_that_nobody_sees_and_the_store_what_was_written(store, monkeypatch):
    monkeypatch.setenv("KLAW_EMBEDDER", "none")
    written = Document(id="a", content="The fer\u00adry leaves.", meta={"by\u200b": "A\u200bda", "ports": ["x\u2060"]})
    store.write_documents([written])
    (found,) = KlawHybridRetriever(store).run("leaves")["documents"]
    assert (found.content, found.meta["by"], found.meta["ports"]) == ("The ferry leaves.", "Ada", ["x"])
    assert store.filter_documents() == [written]
