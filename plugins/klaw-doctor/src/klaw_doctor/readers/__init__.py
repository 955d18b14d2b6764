"""Importers: convert the exports of other programs to records of Klaw."""
