"""The tests that go with the plugins: of their contracts."""
