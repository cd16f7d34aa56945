"""What the builder refuses."""

from __future__ import annotations


class BuilderError(ValueError):
    """A graph that the builder cannot express; the message says which part and why."""
