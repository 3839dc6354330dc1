import { useEffect, useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { validateConfig } from "../../api/queries.ts";
import { type Problems, placeProblems } from "../../forms/problems.ts";
import type { ObjectNode } from "../../forms/schema.ts";

const TYPING_PAUSE_MS = 300;

interface Validation {
  problems: Problems;
  /** The last valid configuration with all defaults filled in. */
  resolved: unknown;
  /** What that takes of each GPU or process, where it can be told. */
  memory: Schemas["MemoryEstimate"] | null;
}

/** Asks the server whether a configuration is right, a moment after the last change. */
export function useValidation(root: ObjectNode, config: Record<string, unknown>): Validation {
  const [validation, setValidation] = useState<Validation>({ problems: {}, resolved: null, memory: null });
  const text = JSON.stringify(config);
  useEffect(() => {
    const controller = new AbortController();
    const check = async () => {
      try {
        const { config: resolved, memory } = await validateConfig(JSON.parse(text), controller.signal);
        setValidation({ problems: {}, resolved, memory });
      } catch (error) {
        if (!(error instanceof ApiProblem) || error.status !== 422) return;
        const problems = placeProblems(root, error.errors, "/config");
        setValidation((before) => ({ ...before, problems }));
      }
    };
    const timer = setTimeout(check, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [root, text]);
  return validation;
}
