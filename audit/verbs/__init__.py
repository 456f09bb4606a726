"""Verbs: pure functions of plain values. Nothing here opens anything."""
