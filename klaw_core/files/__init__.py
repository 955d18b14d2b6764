"""The files that people own: their places, and reading and writing them."""
