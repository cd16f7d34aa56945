"""Tools of the repository: not installed with the package."""
