// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import {
  EMPTY_DRAFT,
  forgetDraft,
  labelsText,
  loadDraft,
  parseLabels,
  saveDraft,
} from "../../src/pages/launch/draft.ts";

beforeEach(() => sessionStorage.clear());

test("labels are read from a line and written back", () => {
  const labels = { team: "post-training", smoke: "", url: "http://a" };
  expect(parseLabels("team: post-training, smoke,, url: http://a ")).toEqual(labels);
  expect(parseLabels(labelsText(labels))).toEqual(labels);
});

test("whatever a label says comes back as it was", () => {
  const labels = { note: "a, b", quote: 'a "b"', c: '"', path: "C:\\x, y", wide: " x ", last: "z" };
  expect(parseLabels(labelsText(labels))).toEqual(labels);
});

test("quotes within a value that was typed are nothing special", () => {
  expect(parseLabels('a: 5", b: 6", c: "d" e')).toEqual({ a: '5"', b: '6"', c: '"d" e' });
});

test("a draft is kept for its own start only, until it is launched", () => {
  const draft = { ...EMPTY_DRAFT, name: "k=5", form: { values: { grpo: { num_steps: 2 } }, memory: {} } };
  saveDraft("new", draft);
  expect(loadDraft("new")).toEqual(draft);
  expect(loadDraft("clone 1")).toBeNull();
  forgetDraft("new");
  expect(loadDraft("new")).toBeNull();
});

test("something else under the key is no draft", () => {
  sessionStorage.setItem("foredeck-launch new", "{broken");
  expect(loadDraft("new")).toBeNull();
});
