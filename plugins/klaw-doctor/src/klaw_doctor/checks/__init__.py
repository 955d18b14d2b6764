"""The checks of ``klaw doctor``, one module per part of a memory."""
