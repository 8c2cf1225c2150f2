"""What of this machine a server depends on, each with a verdict."""

from console.server.doctor.check import Check
from console.server.doctor.examine import examine

__all__ = ["Check", "examine"]
