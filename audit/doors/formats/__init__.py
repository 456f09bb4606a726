"""Readers of foreign files: each turns one published format into records, or names the line that is wrong."""
