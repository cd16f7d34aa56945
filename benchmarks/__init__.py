"""What is measured, against what, and the scripts that do it."""
