"""The commands, a module for each family; each is named NAME_command."""
