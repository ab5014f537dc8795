"""What the runtime costs, beside a plain loop in C in the same run. `python -m tests.benchmarks.runtime`."""
