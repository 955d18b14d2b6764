"""The conformance kit: one contract class per Protocol, for the tests of its implementations to inherit.

    embedder    EmbedderContract
    chunker     ChunkerContract, MarkdownChunkerContract, and strategies for Markdown
    retriever   RetrieverContract, and chunks to ask about
    index       IndexContract
    fusion      FusionContract, and a strategy for rankings
    reranker    RerankerContract
    source      SourceContract
    converter   ConverterContract
    store       StoreContract, PersistentStoreContract, StoreMachine, and MessagesContract for conversations

A subclass supplies the fixture that its contract names. Needs the extra ``klaw[testing]`` (pytest, hypothesis).
"""
