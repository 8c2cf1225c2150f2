"""Will it fit: a model's shape and a preset's settings → bytes a card, tokens of KV cache, concurrency."""

from console.memory.model import ModelShape, UnknownShape, read_shape
from console.memory.plan import MemoryPlan, plan

__all__ = ["MemoryPlan", "ModelShape", "UnknownShape", "plan", "read_shape"]
