"""The all-MiniLM-L6-v2 sentence embedding model as a package, for Klaw."""
