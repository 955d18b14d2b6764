"""The conformance kit: one contract class per Protocol. The tests of an implementation inherit from its contract.

    embedder    EmbedderContract
    chunker     ChunkerContract, MarkdownChunkerContract, and strategies for Markdown
    retriever   RetrieverContract, and chunks to search
    index       IndexContract
    fusion      FusionContract, and a strategy for rankings
    reranker    RerankerContract
    source      SourceContract
    converter   ConverterContract
    store       StoreContract, PersistentStoreContract, StoreMachine, and MessagesContract for conversations

A subclass defines the fixtures that its contract names. This requires the extra ``klaw[testing]`` (pytest, hypothesis).
"""
