"""Messages as Ray 2.60 and pip write them, shortened."""

import pytest

from backend.launcher.job_message import MAX_LENGTH, MAX_NUM_LINES, details, short

HEAD = """runtime_env setup failed: Failed to set up runtime environment.
Could not create the actor because its associated runtime env failed to be created.
[Node 10.0.0.1] Traceback (most recent call last):
  File "pip.py", line 252, in _install_pip_packages
    await check_output_cmd(pip_install_cmd, logger=logger, cwd=cwd, env=pip_env)
"""
MISSING = """ray._private.runtime_env.utils.SubprocessCalledProcessError: Run cmd[22] failed with the following details.
Last 50 lines of stdout:
    Looking in indexes: https://pypi.org/simple
    ERROR: Could not find a version that satisfies the requirement our-rewards==1.0 (from versions: none)
    ERROR: No matching distribution found for our-rewards==1.0
"""
CUT_OFF = """Last 50 lines of stdout:
    WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'SomeError({why})': /simple/torch/
    ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
    ERROR: No matching distribution found for torch==2.13.0
"""
REFUSED = "'<pip._vendor.urllib3.HTTPSConnection object at 0x7faa>: [Errno 111] Connection refused'"
TIMED_OUT = "\"HTTPSConnection(host='pypi.org', port=443): Read timed out.\""
ARCHIVE = """    raise HTTPError(http_error_msg, response=self)
requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://builds.example.org/foredeck.zip

"""
PODMAN = """RuntimeError: Podman command failed: cmd=['podman', 'run', 'ours:1', 'python', '-c', "import x"], \
returncode=125, stdout=, stderr=Error: ours:1: image not known
"""
SLOW = """[Node 10.0.0.1] Failed to install runtime_env within the timeout of 600 seconds. Consider increasing it.
Traceback (most recent call last):
TimeoutError
"""
PREFIX = "what the cluster's code names could not be set up: "


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", ""),
        ("Job finished successfully.", "Job finished successfully."),
        ("The actor died.\n\tclass_name: JobSupervisor", "The actor died."),
        (HEAD + MISSING, f"{PREFIX}Could not find a version that satisfies the requirement our-rewards==1.0 "
         "(from versions: none)"),
        (HEAD + CUT_OFF.format(why=REFUSED), f"{PREFIX}no connection to the package index ([Errno 111] Connection "
         "refused): Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)"),
        (HEAD + CUT_OFF.format(why=TIMED_OUT), f"{PREFIX}no connection to the package index (HTTPSConnection("
         "host='pypi.org', port=443): Read timed out.): Could not find a version that satisfies the requirement "
         "torch==2.13.0 (from versions: none)"),
        (HEAD + ARCHIVE, f"{PREFIX}requests.exceptions.HTTPError: 404 Client Error: Not Found for url: "
         "https://builds.example.org/foredeck.zip"),
        (HEAD + PODMAN, f"{PREFIX}podman: Error: ours:1: image not known"),
        (HEAD + SLOW, f"{PREFIX}it took longer than 600 s"),
        ("runtime_env setup failed: no", f"{PREFIX}runtime_env setup failed: no"),
        (HEAD + "ERROR: " + "x" * 1000, (PREFIX + "x" * 1000)[:MAX_LENGTH]),
    ],
)  # fmt: skip
def test_a_message_in_one_line(message, reason):
    assert short(message) == reason


def test_the_end_of_a_long_message_is_kept():
    assert details("Job finished successfully.") == ()
    assert details(HEAD + MISSING)[-1].strip() == "ERROR: No matching distribution found for our-rewards==1.0"
    assert details("\n".join(map(str, range(100)))) == tuple(map(str, range(100 - MAX_NUM_LINES, 100)))
