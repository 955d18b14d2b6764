"""Read the configuration from TOML files and the environment, check it strictly, and report all problems at once."""
