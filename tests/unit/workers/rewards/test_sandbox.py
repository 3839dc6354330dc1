"""What programs of responses cannot do, tried by programs that do it."""

import os
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from workers.rewards.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox(apart):
    """Runs a program, in a process that has a sandbox."""
    made = apart(Sandbox, memory_mib=256)
    return partial(apart, made.run)


def run(sandbox, program, **given):
    return sandbox(program, 5, **given)


def test_a_program_reads_and_prints_with_an_empty_environment_and_folder(sandbox):
    program = "import os\nprint(input().upper(), sorted(os.environ.keys() - {'LC_CTYPE'}), os.listdir('.'))"
    outcome = run(sandbox, program, stdin="grüße\n")
    assert (outcome.is_done, outcome.output) == (True, "GRÜSSE [] []\n")


def test_the_folder_is_gone_afterwards(sandbox):
    folder = run(sandbox, "import os; open('kept', 'w').write('x'); print(os.getcwd())").output.strip()
    assert folder
    assert not Path(folder).exists()


def test_memory_files_and_time_are_limited(sandbox):
    assert "MemoryError" in run(sandbox, "x = 'a' * (300 << 20)").errors
    assert "File too large" in run(sandbox, "open('a', 'wb').write(b'x' * (17 << 20))").errors
    assert "Too many open files" in run(sandbox, "x = [open('/dev/null') for _ in range(99)]").errors
    outcome = sandbox("print('begun', flush=True)\nwhile True: pass", 0.5)
    assert (outcome.is_done, outcome.output) == (False, "begun\n")


def test_no_limit_can_be_raised_again(sandbox):
    program = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999))"
    outcome = run(sandbox, program)
    assert not outcome.is_done
    assert "not allowed to raise maximum limit" in outcome.errors


def _enforced(sandbox, what):
    if not run(sandbox, "").enforced[what]:
        pytest.skip(f"this system does not let {what} be taken away")


def test_there_is_no_network(sandbox):
    _enforced(sandbox, "network")
    for program in (
        "import socket; socket.create_connection(('127.0.0.1', 22), timeout=1)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    ):
        outcome = run(sandbox, program)
        assert not outcome.is_done
        assert "PermissionError" in outcome.errors or "Network is unreachable" in outcome.errors


def test_other_files_and_processes_are_out_of_sight(sandbox, apart, tmp_path):
    _enforced(sandbox, "files")
    pid = apart(os.getpid)
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o666)
    for attempt in (
        f"open({str(secret)!r}).read()",
        f"open({str(secret)!r}, 'w')",
        f"open({str(secret)!r}, 'a')",
        "open('/etc/passwd').read()",
        f"open('/proc/{pid}/environ').read()",
        f"import os; os.kill({pid}, 0)",
        f"import os; os.chmod({str(secret)!r}, 0o600)" if os.geteuid() else "open('/proc/self/mem', 'wb')",
        "import os; os.mkdir('../more')",
    ):
        outcome = run(sandbox, attempt)
        assert not outcome.is_done, attempt
        assert "PermissionError" in outcome.errors, attempt
    assert secret.read_text() == "x"


def test_no_process_is_started_but_threads_are(sandbox):
    _enforced(sandbox, "processes")
    for program in ("import os; os.fork()", "import subprocess; subprocess.run(['/bin/true'])"):
        outcome = run(sandbox, program)
        assert "PermissionError" in outcome.errors, program
    threads = "import threading\nt = threading.Thread(target=print, args=('in it',))\nt.start(); t.join()"
    assert run(sandbox, threads).output == "in it\n"


def test_nothing_runs_on_after_a_program(sandbox):
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    sandbox("import time; time.sleep(60)", 0.2)
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


def test_tests_run_after_the_program_one_by_one(sandbox):
    outcome = run(sandbox, "def f(x): return x + 1", tests=["assert f(1) == 2", "assert f(1) == 3", "exit()", "f(0)"])
    assert outcome.passed == [True, False, False, True]
    assert run(sandbox, "exit()", tests=["assert False"]).passed is None


def test_a_program_cannot_claim_its_tests_by_the_pipe_alone(sandbox):
    claim = 'import os\nfor fd in range(3, 20):\n    try: os.write(fd, b\'{"passed": [true], "token": ""}\\n\')\n'
    outcome = run(sandbox, claim + "    except OSError: pass\nos._exit(0)", tests=["assert False"])
    assert outcome.passed is None


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")
def test_here_a_program_is_kept_from_files_network_and_processes(sandbox):
    """These need Linux 5.13 and user namespaces; a machine without them is told so in the run's log."""
    enforced = run(sandbox, "").enforced
    assert enforced.keys() == {"user", "memory", "network", "files", "processes"}
    assert enforced["memory"]
