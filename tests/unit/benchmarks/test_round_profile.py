import torch

from benchmarks.round_profile import Machine, Work, measure_machine, pass_work
from workers.model.config import ModelConfig
from workers.model.qwen3 import Qwen3Policy

CONFIG = ModelConfig(
    vocab_size=12,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=4,
    max_position_embeddings=64,
)


def test_a_pass_reads_every_matrix_once_and_multiplies_it_with_every_token():
    matrices = [p for name, p in Qwen3Policy(CONFIG).named_parameters() if p.ndim == 2 and "embed" not in name]
    num_weights = sum(p.numel() for p in matrices)
    assert num_weights == 2 * 16 * (32 + 16 + 96) + 16 * 12
    work = pass_work(CONFIG, 3, 5, 0, weight_bytes=2, cache_bytes=4)
    assert work == Work(2 * num_weights, 2 * num_weights * 15)


def test_attention_reads_positions_once_and_multiplies_them_with_every_new_token():
    without, with_past = (pass_work(CONFIG, 3, 5, n, weight_bytes=2, cache_bytes=4) for n in (0, 100))
    assert with_past.num_bytes - without.num_bytes == 2 * 2 * 4 * 2 * 100 * 4  # keys and values, K, E, layers, bytes
    assert with_past.num_operations - without.num_operations == 4 * 4 * 4 * 2 * 5 * 100


def test_the_bound_is_the_larger_of_two_times():
    machine = Machine(bytes_per_s=100, operations_per_s=1000)
    assert (machine.bound_s(Work(300, 1000)), machine.limit(Work(300, 1000))) == (3, "reading")
    assert (machine.bound_s(Work(300, 9000)), machine.limit(Work(300, 9000))) == (9, "products")


def test_rates_are_of_this_machine():
    machine = measure_machine(torch.device("cpu"), 1 << 16, torch.float32)
    assert 1e8 < machine.bytes_per_s < 1e14
    assert 1e8 < machine.operations_per_s < 1e16
