"""Reporters: each renders a Report as text for one channel, escaped for that channel."""
