import os
import socket
import subprocess
import sys

from workers.process_log import NUM_LINES, Process

SCRIPT = """
import sys
from workers.process_log import Process
print("first words", file=sys.stderr)
for number in range(100):
    print("line", number, file=sys.stderr)
print(repr(Process.this("10.0.0.1")))
"""


def test_a_process_knows_its_log_and_another_reads_its_end(tmp_path):
    log = tmp_path / "worker.err"
    with log.open("w") as errors:
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": "2,3", "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            stderr=errors,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=environment,
        )
    process = eval(done.stdout, {"Process": Process})
    assert (process.log, process.devices, process.address) == (str(log), ("2", "3"), "10.0.0.1")
    lines = process.last_words().splitlines()
    assert lines[0] == f"It was process {process.pid} on {socket.gethostname()}. Its log, {log}, ends with:"
    assert lines[1:] == [f"line {number}" for number in range(100 - NUM_LINES, 100)]


def test_of_a_long_line_the_end_is_told(tmp_path):
    (tmp_path / "log").write_text("x" * 100_000 + "\nlast\n")
    words = Process(socket.gethostname(), "10.0.0.1", 7, str(tmp_path / "log")).last_words()
    assert words.endswith("x\nlast")
    assert len(words) < 20_000


def test_a_log_that_cannot_be_read_is_named_all_the_same(tmp_path):
    assert Process("elsewhere", "10.0.0.2", 7, "/tmp/ray/log").last_words() == (
        "It was process 7 on elsewhere; its log is /tmp/ray/log there."
    )
    here = socket.gethostname()
    assert Process(here, "10.0.0.1", 7, str(tmp_path / "none")).last_words().endswith(f"on {here}. It wrote no log.")
    assert Process(here, "10.0.0.1", 7, None).last_words() == f"It was process 7 on {here}."
