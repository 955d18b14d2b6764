"""What ``klaw plugins new`` writes: for each kind a small plugin, and the test of its contract."""
