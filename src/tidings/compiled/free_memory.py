"""Memory that was freed, but that the process still holds."""

import ctypes


def release_free_memory() -> bool:
    """Return what is free within the heap to the system; return whether there was anything.

    Columns and lists that exist only while a large index is built leave gaps below what stays, in
    all as much as the index itself takes. This looks at the free pieces of the heap only, and does
    nothing where the C library cannot do it, as outside of glibc.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    return bool(trim(0))
