"""mkcov: proves the wiring of Mirage megakernels from their generated artifacts."""

__version__ = "0.1.0"
