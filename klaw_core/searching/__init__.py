"""The search flow: find the chunks for a question, each with its place and the reason for its rank."""
