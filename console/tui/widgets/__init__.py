"""Dumb widgets: text in, at most an event out; none knows a source."""
