"""Klaw reranker `http`: a reranking model on a server with the endpoint /rerank."""
