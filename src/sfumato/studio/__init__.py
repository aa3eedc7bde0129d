"""The studio: a local page on which a holder goes from a file to a release, and an analyst explores one.

It is a thin face: what the studio does, the library does, and each screen shows the command and the Python for it.
"""

from sfumato.studio.server import serve

__all__ = ["serve"]
