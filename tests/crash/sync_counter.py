"""Count the flushes of files to disk by SQLite in this process, without a tool that traces system calls.

SQLite accesses files through a table of functions, its VFS. The counter registers a copy of the system's VFS as the
default, in which the function that flushes a file also counts. Source: https://www.sqlite.org/vfs.html. The structs are
those of ``sqlite3.h``; SQLite's versions only add fields at their end.
"""

from __future__ import annotations

import _sqlite3
import ctypes
from collections import Counter

_OPEN_WRITE_AHEAD_LOG = 0x00080000
_MAKE_DEFAULT = 1

_Open = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _FileMethods(ctypes.Structure):
    """The struct ``sqlite3_io_methods``."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("before_sync", ctypes.c_void_p * 4),  # Close, read, write, truncate.
        ("sync", ctypes.c_void_p),
        ("after_sync", ctypes.c_void_p * 13),
    )


class _File(ctypes.Structure):
    """The struct ``sqlite3_file``."""

    _fields_ = (("methods", ctypes.POINTER(_FileMethods)),)


class _Vfs(ctypes.Structure):
    """The struct ``sqlite3_vfs``."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("after_open", ctypes.c_void_p * 15),
    )


class SyncCounter:
    """A counter of the flushes of all files that are opened after its creation; it must live as long as the process.

    Attributes:
        syncs: The number of successful flushes of write-ahead logs (``log``) and of all other files (``other``).
    """

    def __init__(self) -> None:
        self.syncs: Counter[str] = Counter()
        self._kinds: dict[int, str] = {}
        # The library that Python's sqlite3 module has loaded, not another SQLite of this machine.
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._found = library.sqlite3_vfs_find(None)
        system: _Vfs = self._found.contents
        self._system_open = _Open(system.open or 0)
        self._system_sync: dict[int, ctypes._CFunctionType] = {}
        self._methods: dict[int, _FileMethods] = {}
        self._open, self._sync = _Open(self._count_opened), _Sync(self._count_sync)
        self._vfs = _Vfs.from_buffer_copy(system)
        self._vfs.name = b"counting"
        self._vfs.open = ctypes.cast(self._open, ctypes.c_void_p).value
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), _MAKE_DEFAULT) == 0

    def _count_opened(
        self, vfs: int, path: int, address: int, flags: int, reported: ctypes._Pointer[ctypes.c_int]
    ) -> int:
        code: int = self._system_open(ctypes.addressof(self._found.contents), path, address, flags, reported)
        file = _File.from_address(address)
        if code == 0 and file.methods:
            system = file.methods.contents
            key = ctypes.addressof(system)
            if key not in self._methods:
                methods = self._methods[key] = _FileMethods.from_buffer_copy(system)
                methods.sync = ctypes.cast(self._sync, ctypes.c_void_p).value
            self._system_sync[address] = _Sync(system.sync or 0)
            self._kinds[address] = "log" if flags & _OPEN_WRITE_AHEAD_LOG else "other"
            file.methods = ctypes.pointer(self._methods[key])
        return code

    def _count_sync(self, address: int, flags: int) -> int:
        code: int = self._system_sync[address](address, flags)
        self.syncs[self._kinds[address]] += code == 0
        return code
