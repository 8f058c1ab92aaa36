"""The commands: a module a command."""
