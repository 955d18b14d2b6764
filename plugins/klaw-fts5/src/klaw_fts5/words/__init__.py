"""Words: how texts are normalised before they are indexed, and how a question becomes search terms.

The full-text index and the store's index of messages share these rules, so that both find the same.
"""
