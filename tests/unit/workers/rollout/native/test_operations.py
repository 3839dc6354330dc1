"""The compiled kernels against the same operations in PyTorch. Wherever the tests run, a C compiler is expected."""

import platform
from collections import Counter

import pytest
import torch
from scipy import stats

from workers.model.config import ModelConfig
from workers.rollout.native.library import WITHOUT_TILES, compile_with, load
from workers.rollout.native.operations import NativeOperations, pack_gated_product, pack_product
from workers.rollout.operations import PackedLayer, Packing
from workers.rollout.torch_operations import TorchOperations

EPS = 1e-6
BFLOAT16_STEP = 2**-8


def config(heads=4, key_heads=2, head_dim=64):
    return ModelConfig(
        vocab_size=50,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        head_dim=head_dim,
        max_position_embeddings=256,
    )


def operations(*flags):
    """By kernels for this machine or, with flags, for a lesser one."""
    library = compile_with("cc", *flags) if flags else load()
    assert library is not None, "no C compiler, or kernels.c does not compile"
    return NativeOperations(library, EPS)


LESSER_MACHINES = {"no tiles": WITHOUT_TILES, "no AVX-512": ("-march=x86-64-v3",), "no AVX": ("-march=x86-64",)}
if platform.machine() != "x86_64":
    LESSER_MACHINES = {}


@pytest.fixture(scope="module")
def native():
    return operations()


@pytest.fixture(scope="module", params=["this machine", *LESSER_MACHINES])
def any_native(request):
    return operations(*LESSER_MACHINES.get(request.param, ()))


@pytest.fixture(scope="module")
def reference():
    return TorchOperations(EPS, torch.float32, torch.device("cpu"))


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def close(actual, expected):
    torch.testing.assert_close(actual.float(), expected.float(), rtol=2 * BFLOAT16_STEP, atol=2.5e-2)


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 7)])
def test_residual_and_norm(any_native, reference, shape):
    x, delta = random(*shape, 64).float(), random(*shape, 64, seed=1)
    features, expected_x = torch.zeros(*shape, 128, dtype=torch.bfloat16), x.clone()
    normed = any_native.add_norm(x, delta, features[..., 64:])
    expected = reference.add_norm(expected_x, delta.float())
    torch.testing.assert_close(x, expected_x)
    close(normed, expected)
    assert torch.equal(features[..., 64:], x.bfloat16())
    assert features[..., :64].count_nonzero() == 0
    close(any_native.add_norm(x, None), expected)


@pytest.mark.parametrize("num_rows", [1, 20, 70])
def test_gated_unit(num_rows):
    gate, up, x = random(96, 64), random(96, 64, seed=1), 3 * random(num_rows, 64, seed=2)
    product = pack_gated_product(gate, up)
    if product is None:
        pytest.skip("this processor has no matrix tiles")
    expected = torch.nn.functional.silu(x.float() @ gate.float().T) * (x.float() @ up.float().T)
    torch.testing.assert_close(product(x).float(), expected, rtol=2 * BFLOAT16_STEP, atol=1e-3)


def test_gates_far_from_zero():
    gate, up = torch.eye(32).bfloat16(), torch.eye(32).roll(1, 0).bfloat16()
    product = pack_gated_product(gate, up)
    if product is None:
        pytest.skip("this processor has no matrix tiles")
    x = torch.tensor([-1e4, -100, -20, -3, 0, 3, 20, 100, 1e4]).bfloat16()
    rows = torch.zeros(9, 32, dtype=torch.bfloat16)
    rows[:, 1], rows[:, 0] = x, 1
    expected = torch.nn.functional.silu(x.float())
    torch.testing.assert_close(product(rows)[:, 1].float(), expected, rtol=2 * BFLOAT16_STEP, atol=1e-6)


@pytest.mark.parametrize("num_tokens", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("shape", [(4, 2, 64), (3, 3, 32), (8, 1, 32), (2, 2, 128)])
def test_attention_over_what_was_written_before(any_native, reference, shape, num_tokens):
    """Rows of unlike lengths, grown piece by piece; a stale key behind a row's end must not be seen."""
    shape_config = config(*shape)
    heads, key_heads, head_dim = shape
    width = (heads + 2 * key_heads) * head_dim
    norm = torch.rand(heads + key_heads, head_dim, generator=torch.Generator().manual_seed(2)) + 0.5
    norm[:heads] *= head_dim**-0.5
    caches = [o.allocate_cache(shape_config, 1, 3, 90, is_verified=True) for o in (any_native, reference)]
    start = torch.tensor([0, 5, 17])
    for seed, num_new in enumerate([17, num_tokens, num_tokens]):
        qkv = random(3, num_new, width, seed=seed)
        begin = torch.zeros_like(start) if seed == 0 else start
        results = [
            cache.attend(0, part, norm, cache.place(begin, num_new, 17 + num_new))
            for cache, part in zip(caches, (qkv, qkv.float()), strict=True)
        ]
        close(*results)
    small = (0.3 * qkv[:, :1].float()).bfloat16()
    close(
        *(
            c.attend(0, part, None, c.place(start, 1, 18))
            for c, part in zip(caches, (small, small.float()), strict=True)
        )
    )


def test_rows_are_copied_and_moved_whole(native):
    source, target = (native.allocate_cache(config(), 2, 3, 40, is_verified=True) for _ in range(2))
    qkv = random(3, 30, 8 * 64)
    source.write(1, qkv, None, source.place(torch.zeros(3, dtype=torch.int64), 30, 30))
    target.copy_rows(torch.tensor([2, 0]), source, torch.tensor([0, 1]), 30)
    target.move_row(2, 1)
    start = torch.tensor([30, 30])
    new = random(2, 1, 8 * 64, seed=1)
    expected = source.attend(1, new, None, source.place(start, 1, 31))
    moved = torch.cat([new[1:], new[:1]])
    assert torch.equal(target.attend(1, moved, None, target.place(start, 1, 31)), expected.flip(0))


def test_positions_beyond_the_cache_are_refused(native):
    cache = native.allocate_cache(config(), 1, 1, 40, is_verified=True)
    with pytest.raises(ValueError, match="room for 64 positions"):
        cache.place(torch.zeros(1, dtype=torch.int64), 1, 65)


@pytest.mark.parametrize("size", [1, 5, 16, 48, 50])
@pytest.mark.parametrize("temperature", [0.0, 0.6, 1.0])
def test_probabilities(any_native, reference, size, temperature):
    logits = 5 * random(4, 3, size)
    torch.testing.assert_close(any_native.softmax(logits, temperature), reference.softmax(logits, temperature))


def test_the_first_of_equal_logits_is_the_largest(native):
    logits = torch.zeros(1, 48).bfloat16()
    logits[0, [7, 40]] = 3
    assert native.softmax(logits, 0.0).argmax().item() == 7


def test_draws_follow_the_weights_and_the_seed(native):
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 6.0, 0.0]).expand(30_000, -1)
    drawn = native.draw(weights, torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=6) / 30_000
    assert shares.tolist() == pytest.approx([0, 0.3, 0, 0.1, 0.6, 0], abs=0.012)  # four standard errors
    assert torch.equal(drawn, native.draw(weights, torch.Generator().manual_seed(0)))
    assert not torch.equal(drawn, native.draw(weights, torch.Generator().manual_seed(1)))


def two_layers():
    layers = tuple(
        PackedLayer(
            qkv=pack_product(0.2 * random(512, 64, seed=index)),
            qk_norm_HE=torch.rand(6, 64, generator=torch.Generator().manual_seed(index)) if index else None,
            output=pack_product(0.2 * random(64, 256, seed=index + 2)),
            gated=pack_gated_product(*(0.2 * random(96, 64, seed=index + seed) for seed in (4, 6))),
            down=pack_product(0.2 * random(64, 96, seed=index + 8)),
        )
        for index in range(2)
    )
    if None in (layers[0].qkv, layers[0].down):
        pytest.skip("this processor has no matrix tiles")
    return layers


@pytest.mark.parametrize("num_new", [1, 3, 20])
@pytest.mark.parametrize("has_own_qkv", [True, False])
def test_layers_in_one_call_are_the_operations_one_by_one(native, num_new, has_own_qkv):
    shape, layers = config(), two_layers()
    qkv = random(3, num_new, 512, seed=5) if has_own_qkv else None
    start, results = torch.tensor([0, 7, 30]), []
    for run in (native.run_layers, super(NativeOperations, native).run_layers):
        cache = native.allocate_cache(shape, 2, 3, 60, is_verified=True)
        x, tap = random(3, num_new, 64).float(), torch.zeros(3, num_new, 128, dtype=torch.bfloat16)
        placement = cache.place(start, num_new, 30 + num_new)
        normed = run(layers, x, cache, placement, {1: tap[..., 64:]}, qkv)
        again = run(layers, random(3, 1, 64, seed=8).float(), cache, cache.place(start + num_new, 1, 60), {}, None)
        results.append((normed, x, tap, again))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    assert results[0][2][..., :64].count_nonzero() == 0


@pytest.mark.parametrize("is_one_call", [True, False])
@pytest.mark.parametrize("counts", [[1, 20, 3], [4, 4, 4], [17, 1, 1]])
def test_packed_tokens_give_what_they_give_with_padding(native, counts, is_one_call):
    layers, start, count_R = two_layers(), torch.tensor([0, 7, 30]), torch.tensor(counts)
    run = native.run_layers if is_one_call else super(NativeOperations, native).run_layers
    run_packed = native.run_layers if is_one_call else native._run_one_by_one
    num_new, packing, results = max(counts), Packing.of(count_R), []
    is_new_RN = packing.is_new(num_new)
    x = random(3, num_new, 64).float()
    for packed in (None, packing):
        cache = native.allocate_cache(config(), 2, 3, 60, is_verified=True)
        tap = torch.zeros(3, num_new, 128, dtype=torch.bfloat16)
        inputs = (x.clone(), run) if packed is None else (x[is_new_RN], run_packed)
        placement = cache.place(start, num_new, 30 + num_new, packing=packed)
        normed = inputs[1](layers, inputs[0], cache, placement, {1: tap[..., 64:]}, None)
        again = run(layers, random(3, 1, 64, seed=8).float(), cache, cache.place(start + count_R, 1, 60), {}, None)
        results.append((normed if packed else normed[is_new_RN], tap[is_new_RN], again, tap))
    for one, other in zip(results[0][:3], results[1][:3], strict=True):
        assert torch.equal(one, other)
    assert results[1][3][~is_new_RN].count_nonzero() == 0


def test_packed_tokens_are_embedded_and_verified_like_others(native):
    count_R, generator = torch.tensor([3, 1, 2, 3]), torch.Generator().manual_seed(4)
    packing, embedding, token_ids = Packing.of(count_R), random(5, 64), torch.randint(5, (4, 3), generator=generator)
    is_new_RN = packing.is_new(3)
    whole = native.embed(token_ids, embedding)
    assert torch.equal(whole, embedding[token_ids].float())
    assert torch.equal(native.embed(token_ids, embedding, packing), whole[is_new_RN])
    probs = torch.rand(4, 3, 5, generator=generator).softmax(-1)
    for draft_probs in (None, torch.rand(4, 2, 5, generator=generator).softmax(-1)):
        one, other = (
            native.verify(token_ids[:, 1:], draft_probs, p, torch.Generator().manual_seed(9), count_R - 1, packed)
            for p, packed in ((probs, None), (probs[is_new_RN], packing))
        )
        assert torch.equal(one.num_accepted_R, other.num_accepted_R)
        assert torch.equal(one.token_ids_RJ, other.token_ids_RJ)
        assert torch.equal(one.logprobs_RJ[is_new_RN], other.logprobs_RJ[is_new_RN])
    assert torch.equal(packing.unpacked(probs[is_new_RN], 3), probs * is_new_RN.unsqueeze(2))


def test_what_the_kernels_do_not_fit_is_left_to_pytorch():
    cpu = torch.device("cpu")
    assert NativeOperations.find(config(), torch.bfloat16, cpu) is not None
    assert NativeOperations.find(config(), torch.float32, cpu) is None
    assert NativeOperations.find(config(head_dim=8), torch.bfloat16, cpu) is None


@pytest.mark.parametrize("num_rows", [1, 2, 15, 16, 17, 32, 33, 70])
@pytest.mark.parametrize("shape", [(16, 32), (48, 64), (64, 96), (80, 256)])
def test_products_by_tiles(native, shape, num_rows):
    weight = random(*shape)
    x = random(num_rows, 2, shape[1], seed=1)
    product = pack_product(weight)
    if product is None:
        assert not native.library.use_tiles()
        pytest.skip("this processor has no matrix tiles")
    expected = x.float() @ weight.float().T
    torch.testing.assert_close(product(x).float(), expected, rtol=BFLOAT16_STEP, atol=1e-3)
    torch.testing.assert_close(product(x[:, 1:]).float(), expected[:, 1:], rtol=BFLOAT16_STEP, atol=1e-3)


def test_products_that_do_not_fill_tiles_are_left_to_others():
    assert pack_product(random(17, 32)) is None
    assert pack_product(random(16, 40)) is None


def outcomes(policy_probs, draft_probs, drafted):
    """P(emitted tokens) of one row by the definition: each drafted token tested in turn, then correction or bonus."""
    table, reached = {}, 1.0
    for position, token in enumerate(drafted):
        p, q = policy_probs[position], draft_probs[position]
        chance = min(1.0, (p[token] / q[token]).item())
        rest = (p - q).clamp_min(0)
        if rest.sum() > 0:
            for other, share in enumerate((rest / rest.sum()).tolist()):
                table[(*drafted[:position], other)] = reached * (1 - chance) * share
        reached *= chance
    for other, share in enumerate(policy_probs[len(drafted)].tolist()):
        table[(*drafted, other)] = reached * share
    return table


@pytest.mark.parametrize("is_drawn", [True, False])
@pytest.mark.parametrize("num_drafted", [None, 1, 0])
def test_verification_emits_what_the_rule_says(native, is_drawn, num_drafted):
    """A chi-square test over many rows of the same draft; the level is fixed beforehand."""
    num_rows, drafted = 60_000, [2, 0, 4]
    generator = torch.Generator().manual_seed(3)
    policy_probs = torch.rand(4, 5, generator=generator).softmax(-1)
    draft_probs = (2 * torch.rand(3, 5, generator=generator)).softmax(-1)
    if not is_drawn:
        draft_probs = torch.nn.functional.one_hot(torch.tensor(drafted), 5).float()
    kept = len(drafted) if num_drafted is None else num_drafted
    # Laid out as a draft made step by step is.
    drafted_RK = torch.tensor(drafted).unsqueeze(1).expand(3, num_rows).contiguous().T
    q_RKV = draft_probs.unsqueeze(1).expand(3, num_rows, 5).contiguous().transpose(0, 1) if is_drawn else None
    lengths = None if num_drafted is None else torch.full((num_rows,), num_drafted)
    p_RJV = policy_probs.expand(num_rows, -1, -1).contiguous()
    emitted = native.verify(drafted_RK, q_RKV, p_RJV, generator, lengths)
    counts = Counter(
        tuple(tokens[: accepted + 1])
        for tokens, accepted in zip(emitted.token_ids_RJ.tolist(), emitted.num_accepted_R.tolist(), strict=True)
    )
    expected = outcomes(policy_probs, draft_probs, drafted[:kept])
    assert sum(expected.values()) == pytest.approx(1)
    assert all(expected[tokens] > 1e-9 for tokens in counts)
    common = [tokens for tokens, chance in expected.items() if chance * num_rows >= 5]
    observed = [counts[tokens] for tokens in common]
    chances = [expected[tokens] * num_rows for tokens in common]
    assert stats.chisquare(observed, chances, sum_check=False).pvalue > 1e-4
    torch.testing.assert_close(emitted.logprobs_RJ, p_RJV.gather(2, emitted.token_ids_RJ.unsqueeze(2)).squeeze(2).log())
