"""Megatron-core's ranks against the PyTorch trainer, transformers and each other, in processes over gloo.

What was measured on the machine that this was written on: log-probabilities of different layouts differ by up to 4e-6,
losses and gradient norms by 1e-6 of their size, weights by 1.1e-5 after steps of 3e-3 (Adam divides gradients near 0
by their own size). Muon orthogonalises the draft's updates in bfloat16, so that drafts differ by 1e-3 after a step.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from contract.config.grpo import GrpoConfig
from contract.config.trainer import TorchTrainer
from tests.unit.workers.train.megatron import cases
from workers.data.batch import select_rows
from workers.model.draft_checkpoint import load_draft
from workers.model.hf_checkpoint import load_policy
from workers.train.megatron.micro_batches import cut
from workers.train.torch_trainer import TorchPolicyTrainer

LIMIT_S = 240
"""A hang of ranks ends by their own timeouts; this ends everything else."""
REPOSITORY = Path(__file__).parents[5]
MULTIPLE = [case for case in cases.CASES.values() if case.alone]
STEPPING = [case for case in cases.CASES.values() if case.name not in ("cut_scores", "miss_a_rank")]
RESUMED = [case for case in STEPPING if case.saves_after]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Everything that all cases gave, by file."""
    folder = tmp_path_factory.mktemp("ranks")
    cases.make_folders(folder)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ranks.py"), folder],
        env=environment,
        cwd=REPOSITORY,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said = f"killed after {LIMIT_S} s"
    logs = "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(folder.glob("rank-*.log")))
    assert process.wait() == 0, f"{said}\n{logs}"
    (folder / "outlived.json").write_text(json.dumps(_end_what_outlived(process.pid)))
    return folder


def _end_what_outlived(session: int) -> list[str]:
    """Commands of a session's processes that were still there; no longer."""
    outlived = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session:
                outlived.append(" ".join(process.cmdline()))
                process.kill()
        except (psutil.Error, OSError):
            continue  # gone already
    return outlived


@pytest.fixture(scope="module")
def result(root):
    seen = {}

    def get(name):
        if name not in seen:
            seen[name] = torch.load(root / f"{name}.pt", weights_only=False)
        return seen[name]

    return get


@pytest.fixture(scope="module")
def torch_steps(root):
    """What the PyTorch trainer does in the place of one rank."""

    def take(case):
        policy = load_policy(root / case.policy)
        trainer = TorchPolicyTrainer(
            policy,
            load_policy(root / case.policy) if case.grpo else None,
            load_draft(root / case.draft, policy.config, case.draft),
            trainer=TorchTrainer(
                precision="float32",
                micro_batch_size=2,
                max_grad_norm=0.5,
                optimizer=cases.trainer_config().optimizer,
            ),
            grpo=GrpoConfig(**case.grpo),
            online=cases.ONLINE,
            seed=11,
        )
        batch, steps = cases.make_batch(), []
        for _ in range(case.num_steps):
            logprobs = trainer.compute_logprobs(batch)
            trained = trainer.train_step(batch, logprobs, cases.ADVANTAGES)
            drafted = trainer.train_draft(batch)
            exported = ({n: t.clone() for n, t in trainer.export_weights(part)} for part in ("policy", "draft"))
            names = ("logprobs", "trained", "drafted", "weights", "draft")
            steps.append(dict(zip(names, (logprobs, trained, drafted, *exported), strict=True)))
        return steps

    return take


def assert_alike(steps, others, *, weights_atol=5e-5):
    """Every step of one is that of the other, but for rounding."""
    for number, (step, other) in enumerate(zip(steps, others, strict=False)):
        logprobs, expected = step["logprobs"], other["logprobs"]
        torch.testing.assert_close(logprobs.logprobs_BT, expected.logprobs_BT, atol=2e-5, rtol=0)
        assert logprobs.metrics == pytest.approx(expected.metrics, rel=2e-5)
        if expected.reference_logprobs_BT is not None:
            torch.testing.assert_close(
                logprobs.reference_logprobs_BT, expected.reference_logprobs_BT, atol=1e-5, rtol=0
            )
        assert step["trained"] == pytest.approx(other["trained"], rel=2e-5, abs=2e-6)
        assert step["weights"].keys() == other["weights"].keys()
        for name, weight in step["weights"].items():
            torch.testing.assert_close(weight, other["weights"][name], atol=weights_atol, rtol=0, msg=name)
        assert_alike_drafts(step, other, is_first=number == 0)


def assert_alike_drafts(step, other, *, is_first):
    if step["drafted"] and other["drafted"]:
        assert step["drafted"] == pytest.approx(other["drafted"], rel=1e-4 if is_first else 1e-2)
        assert step["draft"].keys() == other["draft"].keys()
        for name, weight in step["draft"].items():
            torch.testing.assert_close(weight, other["draft"][name], atol=1e-2, rtol=0, msg=name)


@pytest.mark.parametrize("name", ["dense", "dense-reference"])
def test_one_rank_takes_the_steps_of_the_pytorch_trainer(result, torch_steps, name):
    assert_alike(result(name)["steps"], torch_steps(cases.CASES[name]))


@pytest.mark.parametrize("case", MULTIPLE, ids=lambda case: case.name)
def test_every_layout_takes_the_steps_of_one_rank(result, case):
    assert_alike(result(case.name)["steps"], result(case.alone)["steps"])


def test_a_rank_made_of_a_run_s_configuration_is_that_one(result):
    assert_alike(result("configured")["steps"], result("dense")["steps"])


@pytest.mark.parametrize("case", STEPPING, ids=lambda case: case.name)
def test_weights_go_in_and_out_unchanged(root, result, case):
    """Bit by bit, and in one order whatever the layout."""
    stored = load_file(root / case.policy / "model.safetensors")
    exported = result(case.name)["initial"]
    assert exported.keys() == stored.keys()
    expected = torch.bfloat16 if case.trainer.get("precision") == "bfloat16" else torch.float32
    assert all(torch.equal(tensor, stored[name].to(expected)) for name, tensor in exported.items())
    assert (
        list(exported) == list(result("mixture" if case.policy == "mixture" else "dense")["initial"])[: len(exported)]
    )


@pytest.mark.parametrize("policy", ["dense", "tied", "yarn", "mixture"])
def test_scores_are_those_of_transformers(root, result, policy):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(root / policy, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        expected = model(cases.make_batch().token_ids_BT).logits
    torch.testing.assert_close(result(policy)["logits"], expected, atol=2e-5, rtol=1e-5)


def test_yarn_matters(result):
    """The same weights without it score otherwise, so that what agrees above is YaRN itself."""
    weights = result("yarn")["initial"]
    policy = load_policy_like(weights)
    with torch.no_grad():
        plain = policy(cases.make_batch().token_ids_BT).logits_BTV
    assert (result("yarn")["logits"] - plain).abs().max() > 0.05


def load_policy_like(weights):
    from workers.model.config import ModelConfig
    from workers.model.qwen3 import Qwen3Policy

    policy = Qwen3Policy(ModelConfig.from_hf_json(cases.DENSE))
    policy.load_state_dict(weights)
    return policy


def test_bfloat16_is_near_float32(result):
    near, exact = (result(name)["steps"][0] for name in ("bfloat16", "dense"))
    difference = near["logprobs"].logprobs_BT - exact["logprobs"].logprobs_BT
    assert 0 < difference.abs().max() < 0.2
    assert near["trained"]["policy/grad_norm"] == pytest.approx(exact["trained"]["policy/grad_norm"], rel=0.05)
    assert all(weight.dtype == torch.bfloat16 for weight in near["weights"].values())


@pytest.mark.parametrize("case", RESUMED, ids=lambda case: case.name)
def test_a_loaded_trainer_takes_the_steps_that_would_have_followed(result, case):
    """Two of them: a step count shared among parameters would only show in the second."""
    seen = result(case.name)
    for went_on, resumed in zip(seen["went on"], seen["resumed"], strict=True):
        assert went_on["trained"] == resumed["trained"]
        assert went_on["drafted"] == resumed["drafted"]
        assert torch.equal(went_on["logprobs"].audit.pit_N, resumed["logprobs"].audit.pit_N)
        for part in ("weights", "draft"):
            assert went_on[part].keys() == resumed[part].keys()
            assert all(torch.equal(went_on[part][name], resumed[part][name]) for name in went_on[part])
    first, second = (step["weights"] for step in seen["went on"])
    assert not torch.equal(first["model.norm.weight"], second["model.norm.weight"])


def test_a_saved_policy_and_draft_are_for_everyone(root, result):
    saved = root / "data-resumed.saved"
    policy = load_policy(saved / "policy")
    exported = result("data-resumed")["saved"]
    assert all(torch.equal(tensor, exported[name].float()) for name, tensor in policy.state_dict().items())
    draft = load_draft(saved / "draft", policy.config, "eagle3")
    packed = result("data-resumed")["steps"][0]["draft"]
    assert all(torch.equal(tensor, packed[name]) for name, tensor in draft.state_dict().items())


@pytest.mark.parametrize("name", ["dense", "tensor", "pipeline", "data", "packed"])
def test_the_audit_sees_each_token_under_the_whole_distribution(root, result, name):
    """Transforms lie between the mass before the token and that with it, as the PyTorch policy has them."""
    seen, batch, case = result(name)["steps"][0]["logprobs"].audit, cases.make_batch(), cases.CASES[name]
    with torch.no_grad():
        probs = (load_policy(root / "dense")(batch.token_ids_BT).logits_BTV / batch.temperature).softmax(-1)
    num_shares = 2 if name == "data" else 1
    cuts = cut(batch, torch.arange(7), 2, num_shares)
    order = [row for share in range(num_shares) for shares in cuts for row in shares[share].tolist()]
    at = 0
    for row in order:
        for column in select_rows(batch, torch.tensor([row])).response_mask_BT[0].nonzero()[:, 0].tolist():
            p, token = probs[row, column - 1], batch.token_ids_BT[row, column]
            below = p[p > p[token]].sum().item()
            assert below - 1e-5 <= seen.pit_N[at].item() <= below + p[token].item() + 1e-5
            at += 1
    assert at == len(seen.pit_N) == batch.response_mask_BT.sum()
    assert (len(seen.acceptance_probs_M), seen.num_contradictions) == (4, 0)
    expected = result("dense")["steps"][0]["logprobs"].audit.acceptance_probs_M
    torch.testing.assert_close(seen.acceptance_probs_M.sort()[0], expected.sort()[0], atol=1e-5, rtol=0)
    assert case.draft == "eagle3"


def test_a_gradient_that_is_not_finite_changes_nothing(result):
    seen = result("dense")
    before, spoiled = seen["steps"][-1], seen["spoiled"]
    assert not torch.tensor(spoiled["trained"]["policy/grad_norm"]).isfinite()
    assert all(torch.equal(before["weights"][name], weight) for name, weight in spoiled["weights"].items())


def test_log_probabilities_of_cut_vocabularies_are_those_of_whole_ones(result):
    seen, batch = result("cut_scores"), cases.make_batch()
    scores, gradient = cases.scores()
    scores.requires_grad_()
    log_p = (scores / 0.9).log_softmax(-1)
    mask = batch.response_mask_BT
    chosen = torch.nn.functional.pad(log_p[:, :-1].gather(2, batch.token_ids_BT[:, 1:, None])[..., 0], (1, 0)) * mask
    (chosen * gradient).sum().backward()
    torch.testing.assert_close(seen["logprobs"], chosen.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(seen["gradient"][:, :-1].view_as(scores), scores.grad, atol=1e-6, rtol=1e-5)
    assert seen["gradient"][:, -1].eq(0).all()  # padding
    rows, columns = (mask > 0).nonzero().unbind(1)
    log_p = log_p.detach()[rows, columns - 1]
    torch.testing.assert_close(seen["distributions"], log_p, atol=1e-5, rtol=1e-5)
    assert seen["entropy"] == pytest.approx(-(log_p.exp() * log_p).sum().item(), rel=1e-5)


def test_no_process_outlives_the_ranks(root):
    assert json.loads((root / "outlived.json").read_text()) == []


def test_a_rank_that_waits_in_vain_says_so(result):
    message = result("miss_a_rank")["message"]
    assert message.startswith("rank 0 of 2 lost another rank while waiting")
    assert "its own log says why" in message
