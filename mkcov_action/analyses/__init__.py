"""Analyses: pure functions over one rank or one megakernel; they make no findings."""
