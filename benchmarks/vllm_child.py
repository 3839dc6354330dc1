"""vLLM's side of `benchmarks.baselines`: run by a Python that has vLLM, which this project does not install.

One engine a process. It answers one line of JSON on its standard output for each line on its standard input: prompts as
token ids in, responses and the seconds they took out. The first line says that the engine stands.
"""

import argparse
import json
import os
import sys
import time

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # scheduler, model and sampler in this very thread

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt


def main() -> None:
    # vLLM prints to standard output; it goes where the log goes.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    args = arguments()
    llm = LLM(
        model=args.policy,
        dtype=args.precision,
        max_num_seqs=args.batch_size,
        max_model_len=args.max_model_len,
        enforce_eager=args.eager,
        skip_tokenizer_init=True,
        generation_config="vllm",
        enable_prefix_caching=False,  # training changes the weights between calls
        seed=0,
    )
    print(json.dumps({"ready": True}), file=replies)
    for line in sys.stdin:
        request = json.loads(line)
        params = SamplingParams(
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            max_tokens=request["max_new_tokens"],
            stop_token_ids=[request["eos_token_id"]],
            detokenize=False,
        )
        prompts = [TokensPrompt(prompt_token_ids=token_ids) for token_ids in request["prompts"]]
        started, started_cpu = time.perf_counter(), time.process_time()
        outputs = llm.generate(prompts, params, use_tqdm=False)
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
        responses = [list(output.outputs[0].token_ids) for output in outputs]
        print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "responses": responses}), file=replies)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--max-model-len", type=int, required=True)
    parser.add_argument("--eager", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
