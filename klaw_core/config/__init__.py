"""Read the configuration: TOML files and the environment, checked strictly, every problem at once."""
