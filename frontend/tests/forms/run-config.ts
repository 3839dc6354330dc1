import document from "../../openapi.json";
import { type JsonSchema, readSchema } from "../../src/forms/schema.ts";

/** The real schema of a run configuration, as the server gives it. */
export function runConfigSchema(): JsonSchema {
  const { schemas } = JSON.parse(
    JSON.stringify(document.components).replaceAll("#/components/schemas/", "#/$defs/"),
  );
  return { ...schemas.RunConfig, $defs: schemas };
}

export const root = readSchema(runConfigSchema());
