"""The contract is affordable everywhere: it loads pydantic and the standard library, nothing else."""

import subprocess
import sys

PROBE = """
import sys
import contract.config, contract.gates.expression, contract.telemetry.events
loaded = {name.partition(".")[0] for name in sys.modules}
allowed = {"contract", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
print(sorted(name for name in loaded - allowed - sys.stdlib_module_names if not name.startswith("_")))
"""


def test_contract_loads_nothing_but_pydantic_and_the_standard_library() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
