"""Sources: where documents come from, and how a result leads back to its document."""
