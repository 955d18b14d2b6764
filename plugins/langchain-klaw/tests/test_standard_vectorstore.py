"""LangChain's own tests of every vector store and retriever (``langchain-tests``)."""

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from klaw_core import Memory
from langchain_klaw import KlawRetriever, KlawVectorStore


class StoreLaws(VectorStoreIntegrationTests):
    mode = "hybrid"

    @pytest.fixture
    def vectorstore(self, tmp_path):
        with KlawVectorStore(self.get_embeddings(), data_dir=tmp_path, mode=self.mode) as store:
            yield store


class TestHybrid(StoreLaws):
    pass


class TestVectors(StoreLaws):
    mode = "vector"


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    notes = tmp_path_factory.mktemp("notes")
    for number in range(6):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nThis note is a test query of number {number}.\n")
    with Memory.open(data_dir=tmp_path_factory.mktemp("data")) as memory:
        memory.index(notes)
        yield memory


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _use(self, memory):
        type(self).memory = memory

    @property
    def retriever_constructor(self):
        return KlawRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.memory}

    @property
    def retriever_query_example(self):
        return "test query"
