"""One thread for the learners: they wait for each other longer than they work, and results do not depend on cores.

On a busy machine with two cores, Adult's scorecard took 35 seconds with two threads and 12 with one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_thread() -> AbstractContextManager[object]:
    """Keep numerical libraries to one thread for a while."""
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits
