"""Points at which a process kills itself, for tests of what its death leaves behind.

They are armed by TENURE_INVARIANTS=1 and TENURE_CRASH_AT=N, or N:M for the M-th time. The numbers are those of docs/share.md.
"""

from __future__ import annotations

import itertools
import os
import signal

INVARIANTS = os.environ.get("TENURE_INVARIANTS") == "1"


def _armed() -> tuple[int, int]:
    text = os.environ.get("TENURE_CRASH_AT", "") if INVARIANTS else ""
    if not text:
        return 0, 0
    point, _, time = text.partition(":")
    try:
        return int(point), int(time or "1")
    except ValueError:
        raise ValueError(f"TENURE_CRASH_AT: got {text!r}, want N or N:M") from None


POINT, TIME = _armed()
_passed = itertools.count(1)


def at(point: int) -> None:
    """Kills this process if point is the armed one and this is the time."""
    if point == POINT and next(_passed) == TIME:
        os.kill(os.getpid(), signal.SIGKILL)
