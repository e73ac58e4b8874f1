from tiny import one_torch_thread

__all__ = ["one_torch_thread"]
