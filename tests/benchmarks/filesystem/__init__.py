"""Policies and prefetch against a real file system, warm and cold. `python -m tests.benchmarks.filesystem`."""
