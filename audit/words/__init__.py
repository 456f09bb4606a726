"""Words: what the tool speaks of. Nothing here reads a file, a database or a model."""
