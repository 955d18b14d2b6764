"""What ``klaw doctor`` looks at, one module per part."""
