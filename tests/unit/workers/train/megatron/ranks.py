"""Runs the cases of cases.py in groups of ranks, and writes what rank 0 of each saw.

Usage: python ranks.py FOLDER [CASE ...]. One process loads the libraries and forks the ranks, which then need not.
"""

import os
import sys
import time
import traceback
from datetime import timedelta
from functools import partial
from pathlib import Path

TIMEOUT = timedelta(seconds=60)


def main(root: Path, chosen: list[str]) -> int:
    """Exit code: 0 where no rank failed."""
    groups = {size: [c for c in members if not chosen or c.name in chosen] for size, members in cases.GROUPS.items()}
    children = {}
    for size, members in groups.items():
        for rank in range(size if members else 0):
            if (child := os.fork()) == 0:
                os._exit(run_rank(root, members, rank, size))
            children[child] = f"rank {rank} of {size}"
    if not chosen:
        if (child := os.fork()) == 0:
            os._exit(run_configured(root))
        children[child] = "the configured rank"
    codes = {name: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, name in children.items()}
    print("failed:", [name for name, code in codes.items() if code])
    return max(abs(code) for code in codes.values())


def write_log(root: Path, name: str) -> None:
    """What this process prints from now on."""
    log = (root / f"rank-{name}.log").open("w", buffering=1)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)


def run_configured(root: Path) -> int:
    """One rank made as a run's actors make it."""
    write_log(root, "configured")
    try:
        place = RankProcess(0, 1, f"file://{root}/meet-configured", timeout=TIMEOUT)
        config = cases.run_config(root)
        trainer = make_rank(config.model_dump_json(), place, str(root / "dense"), str(root / "eagle3"))
        batch = cases.make_batch()
        torch.save({"steps": [take_step(trainer, batch) for _ in range(3)]}, root / "configured.pt")
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_rank(root: Path, members: list, rank: int, size: int) -> int:
    """All cases of a group on one rank."""
    write_log(root, f"{size}-{rank}")
    try:
        layout.join(rank, size, f"file://{root}/meet-{size}", TIMEOUT)
        for case in members:
            started = time.perf_counter()
            result = CHECKS.get(case.name, run_steps)(root, case)
            print(f"{case.name}: {time.perf_counter() - started:.2f} s")
            if rank == 0:
                torch.save(result, root / f"{case.name}.pt")
        dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_steps(root: Path, case) -> dict:
    """A trainer's steps."""
    ranks = layout.RankLayout(cases.trainer_config(**case.trainer), TIMEOUT)
    try:
        make = partial(make_trainer, root, case, ranks)
        trainer, batch = make(), cases.make_batch()
        result = {"initial": exported(trainer, "policy"), "logits": logits(trainer, batch, ranks), "steps": []}
        for step in range(case.num_steps):
            if step == case.saves_after:
                result |= gone_on_and_resumed(trainer, make, batch, root / f"{case.name}.saved")
            result["steps"].append(take_step(trainer, batch))
        if case.is_spoiled:
            result["spoiled"] = spoiled_step(trainer, batch)
        return result
    finally:
        ranks.close()


def make_trainer(root: Path, case, ranks):
    return MegatronPolicyTrainer(
        root / case.policy,
        (root / case.draft, case.draft) if case.draft else None,
        trainer=cases.trainer_config(**case.trainer),
        grpo=GrpoConfig(**case.grpo),
        online=cases.ONLINE,
        layout=ranks,
        seed=11,
    )


def take_step(trainer, batch) -> dict:
    """As the loop does it: every rank gets rank 0's answer."""
    logprobs = totals.share(trainer.compute_logprobs(batch), trainer._layout)
    trained = trainer.train_step(batch, logprobs, cases.ADVANTAGES)
    return {
        "logprobs": logprobs,
        "trained": trained,
        "drafted": trainer.train_draft(batch),
        "weights": exported(trainer, "policy"),
        "draft": exported(trainer, "draft"),
    }


def spoiled_step(trainer, batch) -> dict:
    """A step whose gradient is not finite."""
    hooks = [p.register_hook(lambda gradient: gradient * float("inf")) for p in trainer.policy.parameters()]
    step = take_step(trainer, batch)
    for hook in hooks:
        hook.remove()
    return step


def gone_on_and_resumed(trainer, make, batch, folder: Path) -> dict:
    """Two steps each of the trainer that saved and of one that loaded."""
    trainer.save(folder)
    other = make()
    other.load(folder)
    return {"saved": exported(trainer, "policy")} | {
        name: [take_step(member, batch) for _ in range(2)]
        for name, member in (("went on", trainer), ("resumed", other))
    }


def logits(trainer, batch, ranks):
    """[B, T, V] of the whole batch where one rank has all of the model."""
    if len(ranks.places) > 1:
        return None
    with torch.no_grad(), ranks.together("scoring"):
        positions = torch.arange(batch.token_ids_BT.shape[1]).expand_as(batch.token_ids_BT)
        return trainer.policy(batch.token_ids_BT, positions, None).float()


def exported(trainer, part: str) -> dict:
    return {name: tensor.clone() for name, tensor in trainer.export_weights(part)}


def cut_scores(root: Path, case) -> dict:
    """What two ranks make of scores of which each has half of the columns, with one column of padding."""
    ranks = layout.RankLayout(cases.trainer_config(**case.trainer), TIMEOUT)
    try:
        logits, gradient = cases.scores()
        half = (cases.VOCABULARY + 1) // 2
        padded = torch.nn.functional.pad(logits, (0, 1), value=100.0)
        own = padded[..., ranks.place.tensor * half :][..., :half].clone().requires_grad_()
        batch = cases.make_batch()
        micro = arrange(batch, torch.arange(7), pack=False, multiple=1, device=torch.device("cpu"))
        scores = ResponseScores(own, micro, 0.9, cases.VOCABULARY, ranks)
        logprobs = scores.logprobs_BT()
        (logprobs * gradient).sum().backward()
        rows, columns = (batch.response_mask_BT > 0).nonzero().unbind(1)
        return {
            "logprobs": logprobs.detach(),
            "gradient": gather_columns(own.grad.flatten(0, 1), ranks),
            "entropy": scores.entropy_sum(),
            "distributions": scores.distributions()[rows, columns - 1],
        }
    finally:
        ranks.close()


def miss_a_rank(root: Path, case) -> dict:
    """One of two ranks waits for the other, which does something else."""
    ranks = layout.RankLayout(cases.trainer_config(**case.trainer), timedelta(seconds=1))
    message = ""
    if ranks.place.rank == 0:
        try:
            with ranks.guarded("waiting"):
                totals.add_up([1.0], ranks)
        except layout.RanksLostError as error:
            message = str(error)
    dist.barrier()
    ranks.close()
    return {"message": message}


if __name__ == "__main__":
    import torch
    import torch.distributed as dist

    from contract.config.grpo import GrpoConfig
    from tests.unit.workers.train.megatron import cases
    from workers.train.megatron import layout, totals
    from workers.train.megatron.micro_batches import arrange
    from workers.train.megatron.process import RankProcess, make_rank
    from workers.train.megatron.scores import ResponseScores, gather_columns
    from workers.train.megatron.trainer import MegatronPolicyTrainer

    torch.set_num_threads(1)
    CHECKS = {"cut_scores": cut_scores, "miss_a_rank": miss_a_rank}
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
