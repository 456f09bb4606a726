"""Doors: one module for each outside thing. Nothing here decides what a figure means."""
