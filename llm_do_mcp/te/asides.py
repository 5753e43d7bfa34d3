"""Which files are beside the matter: tests, fixtures, generated, vendored and explaining ones, told by their paths.

What is asked for by its name is most often wanted where it is made and used in earnest. Hits in other files come in a
section of their own behind it, and are counted like all others.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KINDS = ("tests", "fixtures", "docs", "generated", "vendored")
"""In the order in which they are shown."""

_FOLDERS = {
    "tests": "test tests testing __tests__ testcases spec specs e2e testdata selftests",
    "fixtures": "fixtures fixture __mocks__ mocks __snapshots__ snapshots golden baselines",
    "docs": "doc docs documentation examples example samples demo demos tutorial tutorials",
    "generated": "dist build target generated __generated__ clinic migrations locale",
    "vendored": "vendor vendored third_party third-party thirdparty node_modules external deps bower_components "
    "site-packages _vendor",
}
_KIND_OF_FOLDER = {name.encode(): KINDS.index(kind) for kind, names in _FOLDERS.items() for name in names.split()}
_TESTS, _DOCS, _GENERATED = KINDS.index("tests"), KINDS.index("docs"), KINDS.index("generated")
_TEST_STARTS = (b"test_", b"test-", b"conftest.", b"tests.")
_TEST_PARTS = (b"_test.", b".test.", b".spec.", b"_spec.", b"-test.", b"_tests.", b"tests.", b"test.java", b"test.kt")
_GENERATED_PARTS = (b".min.", b"_pb2.", b".pb.", b".generated.", b"_generated.", b".gen.", b"-lock.")
_GENERATED_ENDS = (b".lock", b".map")
_TEST_ENDS = (b"_test", b"_tests", b"-test", b"-tests")
_DOCS_ENDS = (b".md", b".rst", b".adoc", b".tex")


class Asides:
    """Tells for each path of which kind of aside it is; remembers folders, of which there are fewer than files.

    Args:
        roots: The folders above which nothing says anything; asked for with the first path.
    """

    def __init__(self, roots: Callable[[], Iterable[bytes]]) -> None:
        self._roots = roots
        self._folders: dict[bytes, int] = {}

    def kind(self, folder: bytes, name: bytes) -> int:
        """An index of `KINDS`, or -1 for a file that is not aside; `folder` is its path up to the last `/`."""
        kind = self._folders.get(folder)
        if kind is None:
            kind = self._of(folder)
        return kind if kind >= 0 else _of_name(name.lower())

    def _of(self, folder: bytes) -> int:
        """What a folder says by its own name, or by those of the folders above it."""
        folders = self._folders = self._folders or dict.fromkeys((b"", *self._roots()), -1)
        new: list[bytes] = []
        while folder not in folders:
            new.append(folder)
            folder = folder.rpartition(b"/")[0]
        kind = folders[folder]
        for folder in reversed(new):
            kind = folders[folder] = max(kind, _of_folder(folder[folder.rfind(b"/") + 1 :].lower()))
        return kind


def _of_folder(name: bytes) -> int:
    if name in _KIND_OF_FOLDER:
        return _KIND_OF_FOLDER[name]
    if b"test" in name and (name.startswith(_TEST_STARTS) or name.endswith(_TEST_ENDS)):
        return _TESTS
    return -1


def _of_name(name: bytes) -> int:
    if (b"test" in name or b"spec" in name) and (
        name.startswith(_TEST_STARTS) or any(part in name for part in _TEST_PARTS)
    ):
        return _TESTS
    if name.endswith(_DOCS_ENDS):
        return _DOCS
    for part in _GENERATED_PARTS:
        if part in name:
            return _GENERATED
    return _GENERATED if name.endswith(_GENERATED_ENDS) else -1
