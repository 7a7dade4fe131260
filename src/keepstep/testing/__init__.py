"""For users' own tests: a clock they can turn, a store that fails or dies where they say, and a pytest fixture.

    from keepstep.testing import Clock, FaultyStore, SimulatedCrash, crash_everywhere

The fixture `memory_store` is in `keepstep.testing.fixtures`; it is imported only there because it needs pytest.
"""

from keepstep.testing.clock import Clock
from keepstep.testing.crashes import crash_everywhere
from keepstep.testing.faults import FaultyStore, SimulatedCrash

__all__ = ["Clock", "FaultyStore", "SimulatedCrash", "crash_everywhere"]
