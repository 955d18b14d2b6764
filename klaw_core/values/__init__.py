"""The values that flow through Klaw: frozen, compared by content, free of behaviour that needs a store."""
