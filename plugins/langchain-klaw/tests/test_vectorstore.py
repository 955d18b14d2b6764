"""What LangChain's tests do not ask of the vector store: filters, words, diversity, long documents, any metadata."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from klaw_core import Memory
from langchain_klaw import KlawEmbeddings, KlawVectorStore


@pytest.fixture
def store(words_only):
    return KlawVectorStore(memory=words_only)


class TestFilters:
    @pytest.fixture
    def boats(self, store):
        texts = ["A red boat.", "A blue boat.", "A boat without a colour."]
        metadatas = [{"colour": "red", "year": 2024, "tags": ["a", "b"]}, {"colour": "blue", "year": 2026}, {}]
        store.add_texts(texts, metadatas, ids=["red", "blue", "none"])
        return store

    @pytest.mark.parametrize(
        ("where", "names"),
        [
            ({"colour": "red"}, {"red"}),
            ({"colour": {"$ne": "red"}}, {"blue", "none"}),
            ({"year": {"$gte": 2025}}, {"blue"}),
            ({"year": {"$gt": 2023, "$lt": 2025}}, {"red"}),
            ({"colour": {"$in": ["red", "blue"]}}, {"red", "blue"}),
            ({"tags": "a"}, {"red"}),
            ({"$and": [{"colour": "blue"}, {"year": 2026}]}, {"blue"}),
            ({"colour": "blue", "year": 2024}, set()),
        ],
    )
    def test_filters_restrict_the_results(self, boats, where, names):
        assert {document.id for document in boats.similarity_search("boat", filter=where)} == names

    def test_filters_apply_before_the_limit(self, store):
        store.add_texts(["boat"] * 50, [{"n": number} for number in range(50)], ids=list(map(str, range(50))))
        assert [document.id for document in store.similarity_search("boat", k=1, filter={"n": 37})] == ["37"]

    @pytest.mark.parametrize("where", [{"$or": []}, {"year": {"$regex": "2"}}])
    def test_an_unknown_operator_is_rejected(self, boats, where):
        with pytest.raises(ValueError, match=r"\$"):
            boats.similarity_search("boat", filter=where)


def test_equal_texts_are_separate_documents(store):
    store.add_texts(["The same."] * 2, ids=["a", "b"])
    assert {document.id for document in store.similarity_search("same")} == {"a", "b"}


def test_any_metadata_is_read_back(store):
    metadata = {"none": None, "nested": {"list": [1, {"x": 2.5}]}, "text": "y", "flag": True}
    store.add_documents([Document("A kept text.", metadata=metadata, id="a")])
    assert store.similarity_search("kept") == [Document("A kept text.", metadata=metadata, id="a")]


def test_a_long_document_is_found_whole_and_once(store):
    text = "\n\n".join(f"Paragraph {number} speaks of the lighthouse and more of it." for number in range(200))
    store.add_texts([text, "A short lighthouse."], ids=["long", "short"])
    found = store.similarity_search("lighthouse", k=4)
    assert {document.id for document in found} == {"long", "short"}
    assert next(document for document in found if document.id == "long").page_content == text


def test_everything_can_be_deleted(store):
    store.add_texts([f"Text {number}." for number in range(700)])
    assert store.similarity_search("text")
    store.delete()
    assert store.similarity_search("text") == []
    assert store.memory.documents(collection="langchain") == ()


def test_a_store_opens_again(tmp_path):
    with KlawVectorStore(DeterministicFakeEmbedding(size=8), data_dir=tmp_path) as store:
        store.add_texts(["The ferry leaves at seven."], ids=["a"])
    with KlawVectorStore(DeterministicFakeEmbedding(size=8), data_dir=tmp_path) as store:
        assert store.similarity_search("ferry")[0].id == "a"


def test_relevance_is_between_0_and_1(store):
    store.add_texts(["The ferry leaves at seven.", "Bread is baked at night."])
    found = store.similarity_search_with_relevance_scores("when does the ferry leave", k=2)
    assert found
    assert all(0 <= score <= 1 for _, score in found)


def test_diverse_results_are_not_similar_to_each_other(tmp_path):
    """With Klaw's own model: of three questions about ferries and one about bread, two must differ."""
    with Memory.open(data_dir=tmp_path) as memory:
        store = KlawVectorStore(memory=memory, mode="vector")
        texts = [
            "The ferry leaves at 7.",
            "The ferry leaves at seven.",
            "The ferry goes at 7.",
            "Bread is sold on board.",
        ]
        store.add_texts(texts, ids=["1", "2", "3", "bread"])
        found = store.max_marginal_relevance_search("when does the ferry leave", k=2, fetch_k=4, lambda_mult=0.1)
        assert [document.id for document in found][1] == "bread"
        nearest = store.similarity_search_by_vector(KlawEmbeddings(memory).embed_query("bread"), k=1)
        assert [document.id for document in nearest] == ["bread"]


def test_words_answer_if_the_model_fails(tmp_path, caplog):
    class Broken(DeterministicFakeEmbedding):
        def embed_documents(self, _texts):
            raise RuntimeError("out of order")

    with KlawVectorStore(Broken(size=8), data_dir=tmp_path) as store:
        store.add_texts(["The ferry leaves at seven."], ids=["a"])
        assert "out of order" in caplog.text
        assert store.similarity_search("ferry")[0].id == "a"
