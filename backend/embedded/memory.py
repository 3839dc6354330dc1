"""How much memory processes take."""

import psutil


def proportional_bytes(processes: list[psutil.Process]) -> int:
    """Sum of proportional set sizes: pages that processes share are counted once, in parts. Resident size elsewhere."""
    return sum(_proportional(process) for process in processes)


def _proportional(process: psutil.Process) -> int:
    try:
        memory = process.memory_full_info()
        return int(getattr(memory, "pss", 0) or memory.rss)
    except psutil.NoSuchProcess:
        return 0
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
