"""A command and all its processes on Windows: a job, which the system ends as a whole when its handle is closed.

The handle is closed to stop the command, when the command has ended, and by the system when the server dies.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

_SUSPENDED = 0x4
_KILL_ON_CLOSE = 0x2000
_EXTENDED_LIMITS = 9


def start(
    program: str, words: Sequence[str], folder: str, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Job]:
    """Start a command in a job of its own; it begins to run when it is in it.

    Raises:
        OSError: It cannot be started.
    """
    job = Job()
    try:
        popen = subprocess.Popen(
            [*words],
            executable=program,
            bufsize=0,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=_SUSPENDED | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        try:
            job.take(popen)
        except OSError:
            popen.kill()
            raise
    except OSError:
        job.close()
        raise
    return popen, job


class Job:
    """A job object, closed with all that runs in it."""

    def __init__(self) -> None:
        if sys.platform != "win32":
            raise OSError("jobs are of Windows")
        import ctypes

        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        self._kernel.CreateJobObjectW.restype = ctypes.c_void_p
        self._handle = self._kernel.CreateJobObjectW(None, None)
        if not self._handle:
            raise ctypes.WinError(ctypes.get_last_error())
        # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: LimitFlags follow two 64-bit times; the rest stays zero.
        limits = (ctypes.c_uint32 * (144 // 4 if ctypes.sizeof(ctypes.c_void_p) == 8 else 112 // 4))()
        limits[4] = _KILL_ON_CLOSE
        handle = ctypes.c_void_p(self._handle)
        size = ctypes.sizeof(limits)
        if not self._kernel.SetInformationJobObject(handle, _EXTENDED_LIMITS, ctypes.byref(limits), size):
            self.close()
            raise ctypes.WinError(ctypes.get_last_error())

    def take(self, popen: subprocess.Popen[bytes]) -> None:
        """Take a suspended process into the job, and let it run.

        Raises:
            OSError: The system refused.
        """
        if sys.platform == "win32":
            import ctypes

            process = ctypes.c_void_p(int(popen._handle))
            if not self._kernel.AssignProcessToJobObject(ctypes.c_void_p(self._handle), process):
                raise ctypes.WinError(ctypes.get_last_error())
            ctypes.WinDLL("ntdll").NtResumeProcess(process)

    def close(self) -> None:
        """End whatever runs in the job."""
        if sys.platform == "win32" and self._handle:
            import ctypes

            handle, self._handle = self._handle, None
            self._kernel.CloseHandle(ctypes.c_void_p(handle))
