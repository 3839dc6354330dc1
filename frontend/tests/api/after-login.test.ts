// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import { rememberPlace, takePlace } from "../../src/api/after-login.ts";

beforeEach(() => sessionStorage.clear());

test("the login leads to where the reader was, once", () => {
  rememberPlace("/runs/1?tab=log");
  expect(takePlace()).toBe("/runs/1?tab=log");
  expect(takePlace()).toBe("/runs");
});

test.each(["//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example"])(
  "never to %s",
  (place) => {
    rememberPlace(place);
    expect(takePlace()).toBe("/runs");
  },
);
