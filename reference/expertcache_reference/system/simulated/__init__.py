"""A machine of one's own, to test a runtime on.

`Simulation` says what it is made of, `run` runs a program on it once, `explore` by many
schedules, `exhaust` by all of them, `replay` by one that was printed.
"""

from expertcache_reference.system.simulated.disk import Device
from expertcache_reference.system.simulated.exploring import Exploration, exhaust, explore
from expertcache_reference.system.simulated.faults import DARWIN, Faults
from expertcache_reference.system.simulated.faulty import FaultyMachine
from expertcache_reference.system.simulated.machine import SimulatedMachine, Simulation
from expertcache_reference.system.simulated.running import Outcome, RunFailed, replay, run, simulated
from expertcache_reference.system.simulated.schedules import Chance, Preempting, Replay, Systematic, WrongSchedule
from expertcache_reference.system.simulated.tasks import Finding

__all__ = [
    "DARWIN", "Chance", "Device", "Exploration", "Faults", "FaultyMachine", "Finding", "Outcome", "Preempting",
    "Replay", "RunFailed", "SimulatedMachine", "Simulation", "Systematic", "WrongSchedule", "exhaust", "explore",
    "replay", "run", "simulated",
]  # fmt: skip
