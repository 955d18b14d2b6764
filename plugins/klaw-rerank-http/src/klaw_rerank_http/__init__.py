"""Klaw reranker `http`: a reranking model on a server that speaks /rerank."""
