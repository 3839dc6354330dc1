"""Real processes and their parents' ends."""

import subprocess
import sys

import psutil
import pytest

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline(), end="", flush=True)
time.sleep(60)
"""
CHILD = """
import sys, time
from workers.rewards.dying import die_with
die_with(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""
ORPHANS = """
import os, subprocess, sys
from workers.rewards.dying import adopt_orphans, kill_descendants
adopt_orphans()
code = "import os, time\\nif os.fork() == 0:\\n os.setsid()\\n if os.fork() == 0: time.sleep(60)\\n else: print(1)"
subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
import psutil
print(len(psutil.Process().children(recursive=True)) > 0)
kill_descendants(os.getpid())
print(len([p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")
def test_a_child_ends_with_its_parent():
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True) as parent:
        pid, word = parent.stdout.readline().split()
        assert word == "ready"
        child = psutil.Process(int(pid))
        parent.kill()
        psutil.wait_procs([child], timeout=10)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")
def test_descendants_that_left_their_session_are_found_and_killed():
    done = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["True", "0"]
