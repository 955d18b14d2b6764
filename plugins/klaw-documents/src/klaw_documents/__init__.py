"""Klaw reads documents and source code: PDF, Word, web pages, e-books, notebooks, Org, reStructuredText."""
