import subprocess
import sys

import psutil

from backend.embedded.memory import proportional_bytes

FORKED = "import os, time; data = bytes(range(256)) * 400_000; os.fork(); os.write(1, b'u'); time.sleep(1000)"


def test_shared_pages_are_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKED], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.read(2) == b"uu"
        processes = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children()]
        resident = [process.memory_info().rss for process in processes]
        both = proportional_bytes(processes)
        for process in processes:
            process.kill()
    assert len(resident) == 2
    assert min(resident) > 100_000_000
    assert 100_000_000 < both < 1.3 * max(resident)


def test_a_process_that_is_gone_takes_none() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        assert proportional_bytes([process]) > 0
    assert proportional_bytes([process]) == 0
