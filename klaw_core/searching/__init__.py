"""The search flow: a question in, chunks out, each with its place and the reason it ranked."""
