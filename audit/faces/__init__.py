"""Faces: what a person or a script sees."""
