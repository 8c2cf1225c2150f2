"""Does the arm still do its work? Narrow, and only ever read relative to the other arm.

An arm fails a probe where another arm passed it; what every arm fails says something about the model or the preset, and
nothing about the setting under test.
"""
