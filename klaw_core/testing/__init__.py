"""The conformance kit: one contract class a Protocol, to be inherited by the tests of whatever implements it.

    embedder    EmbedderContract
    chunker     ChunkerContract, MarkdownChunkerContract, and strategies for Markdown
    retriever   RetrieverContract, and chunks to ask about
    index       IndexContract
    fusion      FusionContract, and a strategy for rankings
    reranker    RerankerContract
    source      SourceContract
    converter   ConverterContract
    store       StoreContract, PersistentStoreContract, StoreMachine, and MessagesContract for conversations

A subclass gives the fixture that its contract names. Needs the extra ``klaw[testing]`` (pytest, hypothesis).
"""
