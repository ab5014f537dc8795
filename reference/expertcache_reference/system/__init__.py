"""The one seam to the machine. Read `seam`: what is asked of it; `this_machine` answers for the computer at hand.

`simulated` is a machine of one's own: files in memory with every fault, virtual time, and threads in a chosen order.
"""

from __future__ import annotations

import sys

from expertcache_reference.system.seam import Machine


def this_machine() -> Machine:
    """The machine that runs this. Raises `NotImplementedError` where no module answers for its system."""
    if sys.platform == "darwin":
        from expertcache_reference.system.darwin import darwin_machine

        return darwin_machine()
    if sys.platform.startswith("linux"):
        from expertcache_reference.system.linux import LinuxMachine

        return LinuxMachine()
    raise NotImplementedError(f"no machine for {sys.platform!r}: Linux and Darwin are known")
