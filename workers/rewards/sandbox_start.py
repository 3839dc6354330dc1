"""What runs first in a sandbox: it gives up what a program must not have, and then runs the program.

Started as a script, with the standard library alone, and told in its first argument as JSON: `program`, a file; `work`,
the one folder to write into; `limits`, values by names of the module resource; `parent`, the process that starts it;
`status_fd`, where its reports go; `token`, which the last of them repeats; `tests`, pieces of Python run after the
program, or null where what it prints is the test.
"""

import builtins
import ctypes
import json
import os
import resource
import signal
import sys

_NOBODY = 65_534
_CLONE_NEWUSER, _CLONE_NEWIPC, _CLONE_NEWNET, _CLONE_THREAD = 0x1000_0000, 0x0800_0000, 0x4000_0000, 0x1_0000
_NO_NETWORK = _CLONE_NEWIPC | _CLONE_NEWNET
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_PR_SET_SECCOMP, _SECCOMP_FILTER = 22, 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
"""Numbers of system calls, the same on every architecture."""
_READABLE = ("/usr/lib", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_READ, _WRITE_FILE, _READ_FILE = 0b1101, 0b10, 0b100
"""Rights to execute, read files and list folders; to write to a file; to read it."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def main() -> None:
    told = json.loads(sys.argv[1])
    with open(told["program"], encoding="utf-8") as file:
        source = file.read()
    enforced = confine(told)
    status = os.fdopen(told["status_fd"], "w")
    _write(status, {"enforced": enforced})
    builtins.exit = builtins.quit = sys.exit  # what site, which is not loaded, would have put there
    space = {"__name__": "__main__"}
    program = compile(source, "program.py", "exec")
    if told["tests"] is None:
        exec(program, space)  # noqa: S102 (this is what the sandbox is for)
        return
    exec(program, space)  # noqa: S102
    passed = [_passes(test, space) for test in told["tests"]]
    _write(status, {"passed": passed, "token": told["token"]})


def _write(status, content) -> None:  # noqa: ANN001
    status.write(json.dumps(content) + "\n")
    status.flush()


def _passes(test: str, space: dict) -> bool:
    try:
        exec(compile(test, "test.py", "exec"), space)  # noqa: S102
    except BaseException:  # a program that exits in a test has not passed it
        return False
    return True


def confine(told: dict) -> dict:
    """Returns what of {"user", "memory", "network", "processes", "files"} could be limited or taken away."""
    is_linux = sys.platform == "linux"
    libc = ctypes.CDLL(None, use_errno=True)
    is_alone = is_linux and libc.unshare(_NO_NETWORK) == 0  # which root may, also without user namespaces
    is_other_user = _become_nobody(told["work"])
    if is_linux:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)  # after the user changed, which clears it
    if os.getppid() != told["parent"]:
        os._exit(1)
    has_no_network = is_alone or (is_linux and libc.unshare(_CLONE_NEWUSER | _NO_NETWORK) == 0)
    has_limits = [_limit(getattr(resource, name), value) for name, value in told["limits"].items()]
    if is_linux:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return {
        "user": is_other_user,
        "memory": all(has_limits),
        "network": has_no_network,
        "files": is_linux and _hide_files(libc, told["work"]),
        "processes": is_linux and _forbid_processes(libc),
    }


def _limit(what: int, value: int) -> bool:
    try:
        resource.setrlimit(what, (value, value))
    except (ValueError, OSError):  # not every system has every limit
        return False
    return True


def _become_nobody(work: str) -> bool:
    """Whether the program runs as a user without rights: one that was none before, or nobody in place of root."""
    if os.geteuid() != 0:
        return True
    library, folders = os.path.dirname(os.__file__), []
    while library not in folders:
        folders.append(library)
        library = os.path.dirname(library)
    if not all(os.stat(folder).st_mode & 0o001 for folder in folders):
        return False  # nobody could not read the standard library, below /root for instance
    try:
        os.chown(work, _NOBODY, _NOBODY)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    except OSError:
        return False
    return True


def _hide_files(libc: ctypes.CDLL, work: str) -> bool:
    """Landlock: from now on only Python's library can be read and only the folder written, whoever the user is."""
    abi = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if abi < 1:
        return False
    num_rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)
    everything = (1 << num_rights) - 1
    rules = _Ruleset(everything, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 8 * (1 + (abi >= 4) + (abi >= 6))
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return False
    rights = dict.fromkeys((*_READABLE, os.path.dirname(os.__file__), *_shared_libraries()), _READ)
    rights |= dict.fromkeys(_DEVICES, _READ_FILE | _WRITE_FILE) | {work: everything}
    for path, allowed in rights.items():
        _allow(libc, ruleset, path, allowed)
    return libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0


def _shared_libraries() -> list:
    """Where the interpreter's own library may lie."""
    return [os.path.join(prefix, "lib") for prefix in {sys.base_prefix, sys.base_exec_prefix}]


def _forbid_processes(libc: ctypes.CDLL) -> bool:
    """seccomp: threads may be started, processes may not, whoever the user is."""
    if os.uname().machine == "x86_64":
        architecture, clone, forks = 0xC000_003E, 56, (57, 58)
    elif os.uname().machine == "aarch64":
        architecture, clone, forks = 0xC000_00B7, 220, ()
    else:
        return False
    load, equals, at_least, has_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill, refuse, unknown = 0x7FFF_0000, 0, 0x0005_0001, 0x0005_0026
    """The last two answer EPERM and, to clone3, ENOSYS, upon which the C library takes clone."""
    lines = [
        (load, 0, 0, 4),  # the architecture
        (equals, 1, 0, architecture),
        (answer, 0, 0, kill),
        (load, 0, 0, 0),  # the call's number
        (at_least, 0, 1, 0x4000_0000),  # x32, a second set of numbers
        (answer, 0, 0, kill),
        *(line for fork in forks for line in ((equals, 0, 1, fork), (answer, 0, 0, refuse))),
        (equals, 0, 1, 435),
        (answer, 0, 0, unknown),
        (equals, 1, 0, clone),
        (answer, 0, 0, allow),
        (load, 0, 0, 16),  # its first argument, the flags
        (has_bit, 1, 0, _CLONE_THREAD),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]
    program = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    told = _Filter(len(lines), program)
    return libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(told), 0, 0) == 0


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine, so nothing is there to be read
    if not os.path.isdir(path):
        allowed &= ~0b1000
    libc.syscall(_LANDLOCK_ADD, ruleset, 1, ctypes.byref(_PathRule(allowed, place)), 0)
    os.close(place)


if __name__ == "__main__":
    main()
