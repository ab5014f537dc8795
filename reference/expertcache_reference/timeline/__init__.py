"""Timelines: the schedules of real traces on stated hardware, as pictures, as Chrome traces, and as tokens a second."""
