"""swap A B: as `swap.c`, where there is no compiler."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

AT_FDCWD, EXCHANGE = -100, 2


def main(first: bytes, second: bytes) -> None:
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    swaps = 0
    while not stopped:
        if renameat2(AT_FDCWD, first, AT_FDCWD, second, EXCHANGE):
            sys.exit(os.strerror(ctypes.get_errno()))
        swaps += 1
        if swaps == 1:
            print("started", flush=True)
    print(swaps)


if __name__ == "__main__":
    main(os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]))
