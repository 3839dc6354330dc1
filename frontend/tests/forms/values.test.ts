import { expect, test } from "vitest";
import type { Node, UnionNode } from "../../src/forms/schema.ts";
import {
  type FormState,
  getAt,
  kindOf,
  setAt,
  switchKind,
  withKinds,
  withoutDefaults,
} from "../../src/forms/values.ts";
import { root } from "./run-config.ts";

const drafter = root.fields.find(({ key }) => key === "drafter") as UnionNode;
const policy = root.fields.find(({ key }) => key === "policy") as UnionNode;

test("setting a value makes the way to it; taking it back leaves nothing behind", () => {
  const values = setAt({}, ["trainer", "optimizer", "learning_rate"], 0.1);
  expect(values).toEqual({ trainer: { optimizer: { learning_rate: 0.1 } } });
  expect(getAt(values, ["trainer", "optimizer", "learning_rate"])).toBe(0.1);
  expect(setAt(values, ["trainer", "optimizer", "learning_rate"], undefined)).toEqual({});
});

test("values are copied, never changed", () => {
  const before = { grpo: { num_steps: 3 } };
  setAt(before, ["grpo", "num_steps"], 4);
  expect(before).toEqual({ grpo: { num_steps: 3 } });
});

test("switching the kind there and back keeps what was entered under each", () => {
  let state: FormState = { values: { drafter: { draft_length: 5, online: { batch_size: 4 } } }, memory: {} };
  state = switchKind(state, drafter, "none");
  expect(state.values).toEqual({ drafter: { kind: "none" } });
  expect(kindOf(drafter, state.values)).toBe("none");
  state = switchKind(state, drafter, "eagle3");
  expect(state.values).toEqual({ drafter: { kind: "eagle3", draft_length: 5, online: { batch_size: 4 } } });
});

test("another kind takes over what it knows too, but no folder, and loses nothing of its own", () => {
  const entered = { kind: "eagle3", draft_length: 5, draft_vocabulary_size: 20, path: "/drafts/a" };
  let state: FormState = switchKind({ values: { drafter: entered }, memory: {} }, drafter, "mtp");
  expect(state.values).toEqual({ drafter: { kind: "mtp", draft_length: 5 } });
  state = switchKind(
    { ...state, values: setAt(state.values, ["drafter", "draft_length"], 7) },
    drafter,
    "eagle3",
  );
  expect(state.values).toEqual({ drafter: entered });
  expect(switchKind(state, drafter, "mtp").values).toEqual({ drafter: { kind: "mtp", draft_length: 7 } });
});

test("a union inside goes along with its kind, whose default may be another there", () => {
  const trainer = root.fields.find(({ key }) => key === "trainer") as UnionNode;
  const values = { trainer: { optimizer: { learning_rate_matrices: 0.1 } } };
  const { values: switched } = switchKind({ values, memory: {} }, trainer, "megatron");
  expect(switched).toEqual({
    trainer: { kind: "megatron", optimizer: { kind: "muon", learning_rate_matrices: 0.1 } },
  });
});

test("a union that must be filled in is sent with its kind, so that the server names the field it lacks", () => {
  expect(withKinds(root, { task: { kind: "dataset" } })).toEqual({
    task: { kind: "dataset", train: { kind: "jsonl" } },
  });
  expect(withKinds(root, {})).toEqual({});
});

const unions = (node: Node): UnionNode[] => {
  if (node.type === "object") return node.fields.flatMap(unions);
  if (node.type !== "union") return [];
  return [node, ...node.variants.flatMap(({ fields }) => fields.flatMap(unions))];
};

test.each(unions(root).map((node) => [node.path.join("."), node] as const))(
  "no kind of %s is left with keys that it does not know",
  (_, node) => {
    for (const former of node.variants) {
      const whole = Object.fromEntries(former.fields.map(({ key }) => [key, 1]));
      const values = setAt({}, node.path, { [node.discriminator]: former.kind, ...whole });
      for (const chosen of node.variants) {
        const left = getAt(switchKind({ values, memory: {} }, node, chosen.kind).values, node.path) ?? {};
        const known = [node.discriminator, ...chosen.fields.map(({ key }) => key)];
        expect(known).toEqual(expect.arrayContaining(Object.keys(left)));
      }
    }
  },
);

test("switching to the default with nothing entered is no change at all", () => {
  const there = switchKind({ values: {}, memory: {} }, policy, "checkpoint");
  const typed = { ...there, values: setAt(there.values, ["policy", "path"], "/models/a") };
  const back = switchKind(typed, policy, "scratch");
  expect(back.values).toEqual({});
  expect(switchKind(back, policy, "checkpoint").values).toEqual({
    policy: { kind: "checkpoint", path: "/models/a" },
  });
});

test("a union with entries gets its tag, which the server needs; others are left alone", () => {
  expect(withKinds(root, { drafter: { draft_length: 5 }, grpo: { num_steps: 2 } })).toEqual({
    drafter: { kind: "eagle3", draft_length: 5 },
    grpo: { num_steps: 2 },
  });
  expect(withKinds(root, { trainer: { optimizer: { learning_rate_matrices: 0.1 } } })).toEqual({
    trainer: { kind: "torch", optimizer: { kind: "muon", learning_rate_matrices: 0.1 } },
  });
  const source = { path: "/data/a.jsonl" };
  expect(withKinds(root, { task: { kind: "dataset", train: source } })).toEqual({
    task: { kind: "dataset", train: { kind: "jsonl", ...source } },
  });
});

test("a resolved configuration becomes what was changed in it", () => {
  const changed = { drafter: { kind: "eagle3", draft_length: 5 }, grpo: { num_steps: 7 } };
  const resolved = {
    schema_version: 1,
    seed: 42,
    drafter: {
      kind: "eagle3",
      draft_length: 5,
      path: null,
      online: { num_updates_per_step: 1, batch_size: 16 },
    },
    grpo: { num_steps: 7, num_prompts_per_step: 16 },
    policy: { kind: "scratch", num_layers: 6 },
  };
  expect(withoutDefaults(root, resolved)).toEqual(changed);
  expect(withoutDefaults(root, changed)).toEqual(changed);
});

test("another kind than the default stays, also without entries", () => {
  expect(withoutDefaults(root, { drafter: { kind: "none" } })).toEqual({ drafter: { kind: "none" } });
});
