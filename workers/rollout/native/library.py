"""Compiles this folder's C for this very processor, once, where a compiler is there."""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

log = logging.getLogger(__name__)

_SOURCES = tuple(Path(__file__).with_name(name) for name in ("kernels.c", "suffix_index.c"))
_FLAGS = (
    *("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fassociative-math", "-fno-signed-zeros"),
    *("-fno-trapping-math", "-shared", "-fPIC", "-w"),
)
WITHOUT_TILES = ("-mno-amx-tile", "-mno-amx-bf16")
_COMPILE_TIMEOUT_S = 120

_POINTER, _SIZE, _REAL, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_double
_SIGNATURES: dict[str, list[type]] = {
    "add_norm": [*[_POINTER] * 4, *[_SIZE] * 3, _REAL],
    "attend": [*[_POINTER] * 10, *[_SIZE] * 6, _REAL],
    "attend_scratch_bytes": [_SIZE] * 2,
    "copy_rows": [*([_POINTER] * 2 + [_SIZE] * 2) * 2, *[_SIZE] * 4],
    "prefer_large_pages": [_POINTER, _SIZE],
    "use_tiles": [],
    "embed": [*[_POINTER] * 4, *[_SIZE] * 3],
    "verify": [_POINTER, _SIZE, _SIZE, _POINTER, _SIZE, _SIZE, *[_POINTER] * 6, *[_SIZE] * 4, _POINTER],
    "product": [*[_POINTER] * 3, *[_SIZE] * 4],
    "pass_scratch_bytes": [_POINTER, _SIZE],
    "draft_scratch_bytes": [_POINTER, _POINTER, _SIZE, _SIZE],
    "draft": [
        *(*[_POINTER] * 4, _SIZE, _POINTER, _SIZE, *[_POINTER] * 2, _REAL),
        *(*[_POINTER] * 3, _SIZE, _SIZE, _POINTER),
    ],
    "run_layers": [_POINTER, _SIZE, *[_POINTER] * 6, *[_SIZE] * 3, _POINTER],
    "softmax": [*[_POINTER] * 2, *[_SIZE] * 2, _REAL],
    "draw": [*[_POINTER] * 3, *[_SIZE] * 2],
    "suffix_new": [],
    "suffix_copy": [_POINTER],
    "suffix_free": [_POINTER],
    "suffix_num_states": [_POINTER],
    "suffix_count": [*[_POINTER] * 2, _SIZE],
    "suffix_look_up": [*[_POINTER] * 4, *[_SIZE] * 5, _DOUBLE, *[_POINTER] * 2],
}
_RESULTS: dict[str, type] = {
    **dict.fromkeys(("attend_scratch_bytes", "pass_scratch_bytes", "draft_scratch_bytes", "use_tiles"), _SIZE),
    **dict.fromkeys(("suffix_num_states", "suffix_count"), _SIZE),
    **dict.fromkeys(("suffix_new", "suffix_copy"), _POINTER),
}
"""Of functions that return something."""


@functools.cache
def load() -> ctypes.CDLL | None:
    """The compiled kernels, from the cache where they were compiled before; None without a working compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        log.info("No C compiler found: generation uses PyTorch's operations alone, which is slower.")
        return None
    try:
        library = compile_with(compiler)
        return library if library.use_tiles() >= 0 else compile_with(compiler, *WITHOUT_TILES)
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stderr", None) or b""
        log.warning(
            "The generation kernels could not be compiled (%s), so PyTorch's operations are used, which is slower. %s",
            error,
            output.decode(errors="replace")[-500:],
        )
        return None


def compile_with(compiler: str, *more_flags: str) -> ctypes.CDLL:
    """The kernels, compiled now or before. Raises OSError or subprocess.SubprocessError."""
    library = ctypes.CDLL(str(_compiled(compiler, *more_flags)))
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = _RESULTS.get(name)
    return library


def _compiled(compiler: str, *more_flags: str) -> Path:
    flags = [*_FLAGS, *more_flags]
    inputs = [*(source.read_text() for source in _SOURCES), *flags, compiler, platform.platform(), _processor()]
    name = f"kernels-{hashlib.sha256(chr(0).join(inputs).encode()).hexdigest()[:16]}.so"
    target = _cache_dir() / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            part = Path(folder) / name
            command = [compiler, *flags, "-o", str(part), *map(str, _SOURCES), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=_COMPILE_TIMEOUT_S)
            part.replace(target)
    return target


def _cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foredeck"


def _processor() -> str:
    """What -march=native depends on, for a home folder may be shared by unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
