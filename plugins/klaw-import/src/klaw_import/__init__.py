"""Importers: what other programs export, as records of Klaw."""
