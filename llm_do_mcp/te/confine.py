"""Confines a thread, and the processes it starts, to reading a few folders: Landlock, where the kernel has it.

ripgrep opens files by path, so a folder that is swapped for a link while it searches leads it out of its root;
nothing that is checked before or after in user space can prevent that, and the kernel can. A restriction belongs
to the thread that asked for it and is inherited: a short-lived thread restricts itself and starts ripgrep, the rest
of the process stays free, and no `preexec_fn` (slow, and unsafe among threads) is needed.

Linux only, by system calls through `ctypes`, since Python has no binding.
"""

from __future__ import annotations

import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures that have Landlock
_ASK_VERSION = 1
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVILEGES = 38
_WORKING_FOLDER = 0x200
"""What threads of a process share, and one of them can have for itself: `CLONE_FS`."""
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_OF_VERSION_1 = (1 << 13) - 1
_OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
"""Read by jemalloc, which ripgrep's static builds use; denied, it allocates in a way that no memory limit meets."""
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")

_available: bool | None = None


def available() -> bool:
    """Whether this kernel has Landlock and lets us use it."""
    global _available
    if _available is None:
        _available = sys.platform == "linux" and _version() >= 1
    return _available


def restrict(folders: Iterable[int], program: str) -> None:
    """Let this thread, and what it starts from now on, only read these folders and run one program.

    There is no way back: call it in a thread that ends soon.

    Args:
        folders: Handles of the folders that may be read, with all that lies below.
        program: The path of the program that may be run; its shared libraries may be read.

    Raises:
        OSError: The kernel refused. The thread must then not start the program.
    """
    libc = _libc()
    ruleset = _call(_CREATE_RULESET, struct.pack("=Q", _ALL_OF_VERSION_1), 8, 0)
    try:
        for folder in folders:
            _allow(ruleset, folder, _READ_FILE | _READ_FOLDER)
        _allow_path(ruleset, os.devnull, _READ_FILE | _WRITE_FILE)
        if os.path.exists(_OVERCOMMIT):
            _allow_path(ruleset, _OVERCOMMIT, _READ_FILE)
        for path in (program, *_libraries(program)):
            _allow_path(ruleset, path, _EXECUTE | _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0))
        if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError("no_new_privs was refused")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def enter(folder: str) -> None:
    """Work in a folder from now on, this thread alone; nothing changes where the kernel does not let it.

    What a thread starts in its own folder the system can start, in a third of the time.
    """
    if _libc().unshare(_WORKING_FOLDER) == 0:
        os.chdir(folder)


def _libraries(program: str) -> list[str]:
    """What a dynamically linked program needs beside itself; a static one, as in ripgrep's wheel, needs nothing."""
    with open(program, "rb") as file:
        head = file.read(4096)
    if b"/ld-" not in head and b"/ld64" not in head:
        return []
    return [path for path in _LIBRARIES if os.path.exists(path)]


def _allow(ruleset: int, handle: int, rights: int) -> None:
    _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, handle), 0)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, getattr(os, "O_PATH", 0))
    try:
        _allow(ruleset, handle, rights)
    finally:
        os.close(handle)


def _version() -> int:
    try:
        return _call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except (OSError, AttributeError, ImportError):
        return 0


def _call(number: int, *arguments: object) -> int:
    import ctypes

    longs = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc().syscall(ctypes.c_long(number), *longs)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result


def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


if TYPE_CHECKING:
    import ctypes
