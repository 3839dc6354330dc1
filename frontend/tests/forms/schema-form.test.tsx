// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { useState } from "react";
import { afterEach, expect, test } from "vitest";
import type { Problems } from "../../src/forms/problems.ts";
import { SchemaForm } from "../../src/forms/schema-form.tsx";
import type { FormState } from "../../src/forms/values.ts";
import { root } from "./run-config.ts";

afterEach(cleanup);

let state: FormState;

function Host({ start, problems }: { start: FormState; problems: Problems }) {
  const [form, setForm] = useState(start);
  state = form;
  return <SchemaForm root={root} state={form} problems={problems} onChange={setForm} />;
}

function show(values: FormState["values"] = {}, problems: Problems = {}) {
  return render(<Host start={{ values, memory: {} }} problems={problems} />);
}

const group = (name: string) => within(screen.getByRole("group", { name }));
const type = (field: HTMLElement, text: string) => fireEvent.change(field, { target: { value: text } });

test("each part of the configuration is a group with its purpose", () => {
  show();
  for (const name of ["Task", "Policy", "Drafter", "GRPO", "Trainer", "Validation"]) {
    expect(screen.getByRole("group", { name })).toBeTruthy();
  }
  expect(group("GRPO").getByText("The algorithm.")).toBeTruthy();
});

test("draft training shows the parts that it reads, and any other that has a problem", () => {
  show({ job: "draft_training" });
  for (const name of ["Task", "Policy", "Rollout", "Drafter", "Trainer", "Resources"]) {
    expect(screen.getByRole("group", { name })).toBeTruthy();
  }
  expect(screen.queryByRole("group", { name: "GRPO" })).toBeNull();
  cleanup();
  show({ job: "draft_training" }, { "/grpo/num_steps": ["must be at least 1"] });
  expect(group("GRPO").getByText("Must be at least 1.")).toBeTruthy();
});

test.each([
  ["N-gram", ["Min match tokens", "Max match tokens"]],
  ["Suffix", ["Max stored tokens"]],
  ["Draft model", ["Path", "Hidden size"]],
  ["Multi-token prediction", ["Path"]],
])("the drafter %s has k, its control and settings of its own", (kind, labels) => {
  show();
  const drafter = group("Drafter");
  const choice = drafter.getByLabelText("Kind") as HTMLSelectElement;
  const option = [...choice.options].find(({ text }) => text === kind);
  type(choice, option?.value ?? "");
  for (const label of ["Draft length", "Draft length control", ...labels]) {
    expect(drafter.getByLabelText(label)).toBeTruthy();
  }
});

test("the default is a placeholder; a change can be reset", () => {
  show();
  const field = group("GRPO").getByLabelText("Steps") as HTMLInputElement;
  expect([field.value, field.placeholder]).toEqual(["", "40"]);
  type(field, "7");
  expect(state.values).toEqual({ grpo: { num_steps: 7 } });
  fireEvent.click(group("GRPO").getByRole("button", { name: "Reset Steps to 40" }));
  expect(state.values).toEqual({});
  expect(field.value).toBe("");
});

test("text that is no number stays in the field and in the values, for the server to refuse", () => {
  show();
  const field = group("GRPO").getByLabelText("Steps") as HTMLInputElement;
  type(field, "forty");
  expect(field.value).toBe("forty");
  expect(state.values).toEqual({ grpo: { num_steps: "forty" } });
});

test("a number is shown as it was typed", () => {
  show();
  const field = group("Trainer").getByLabelText("Learning rate matrices") as HTMLInputElement;
  type(field, "2.");
  expect(field.value).toBe("2.");
  type(field, "2.50");
  expect(field.value).toBe("2.50");
  expect(state.values).toMatchObject({ trainer: { optimizer: { learning_rate_matrices: 2.5 } } });
});

test("switching the drafter off and on again keeps its settings", () => {
  show();
  type(group("Drafter").getByLabelText("Draft length"), "5");
  type(group("Drafter").getByLabelText("Kind"), "none");
  expect(group("Drafter").queryByLabelText("Draft length")).toBeNull();
  expect(state.values).toEqual({ drafter: { kind: "none" } });
  type(group("Drafter").getByLabelText("Kind"), "eagle3");
  expect((group("Drafter").getByLabelText("Draft length") as HTMLInputElement).value).toBe("5");
});

test("a problem stands under its field, which is marked, and unfolds what hides it", () => {
  show({ policy: { num_key_value_heads: 3 } }, { "/policy/num_key_value_heads": ["must divide 4"] });
  const field = group("Policy").getByLabelText("Key value heads");
  expect(field.getAttribute("aria-invalid")).toBe("true");
  const described = field.getAttribute("aria-describedby")?.split(" ") ?? [];
  expect(described.some((id) => document.getElementById(id)?.textContent === "Must divide 4.")).toBe(true);
  expect(field.closest("details")?.open).toBe(true);
});

test("what few launches touch is folded, with a word on what was changed in it", () => {
  show({ grpo: { kl_penalty: 0.1 } });
  const fold = group("GRPO").getByLabelText("KL penalty").closest("details");
  expect(fold?.open).toBe(false);
  expect(fold?.querySelector("summary")?.textContent).toBe("Advanced · 1 changed");
});

test("a part in which few change anything is a line that a problem unfolds", () => {
  show({ audit: { min_distance: 0.1, false_alarm_rate: 0.2 } });
  const fold = group("Audit").getByLabelText("False alarm rate").closest("details");
  expect(fold?.open).toBe(false);
  expect(fold?.querySelector("summary")?.textContent).toMatch(/^Audit .* · 2 changed$/);
  cleanup();
  show({}, { "/audit": ["unknown key"] });
  expect(group("Audit").getByText("Unknown key.").closest("details")?.open).toBe(true);
});

test("what a dataset must have is in sight, below the kinds on the way to it", () => {
  show();
  const choose = (name: string, kind: string) =>
    type(group(name).getAllByLabelText("Kind")[0] as HTMLElement, kind);
  choose("Task", "dataset");
  choose("Training data", "hub");
  choose("Reward", "python");
  const name = group("Training data").getByLabelText("Name");
  expect(name.closest("details")).toBeNull();
  type(name, "org/data");
  expect(group("Reward").getByLabelText("Function").closest("details")).toBeNull();
  expect(group("Training data").getByLabelText("Split").closest("details")?.open).toBe(false);
  expect(state.values).toEqual({
    task: { kind: "dataset", train: { kind: "hub", name: "org/data" }, reward: { kind: "python" } },
  });
});

test("a choice that may be left out says so, and can be", () => {
  show({ policy: { kind: "checkpoint", path: "/models/a" } });
  const model = group("Policy").getByLabelText("Model") as HTMLSelectElement;
  expect(model.selectedOptions[0]?.text).toBe("not set");
  type(model, "Qwen3-8B");
  expect(state.values).toMatchObject({ policy: { model: "Qwen3-8B" } });
  type(model, "");
  expect(state.values).toEqual({ policy: { kind: "checkpoint", path: "/models/a" } });
});

test("a choice and a switch at their defaults set nothing", () => {
  show();
  const precision = group("Rollout").getByLabelText("Precision");
  type(precision, "float32");
  expect(state.values).toEqual({ rollout: { precision: "float32" } });
  type(precision, "bfloat16");
  fireEvent.click(group("GRPO").getByLabelText("Leave one out"));
  expect(state.values).toEqual({ grpo: { leave_one_out: true } });
  fireEvent.click(group("GRPO").getByLabelText("Leave one out"));
  expect(state.values).toEqual({});
});
