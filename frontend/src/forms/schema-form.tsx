import { useEffect, useRef } from "react";
import { Field, FieldRow, fieldId } from "./field.tsx";
import { type Problems, pointerOf } from "./problems.ts";
import type { Node, ObjectNode, UnionNode } from "./schema.ts";
import { type FormState, getAt, kindOf, setAt, switchKind } from "./values.ts";
import { groupTitleOf, isEssential, isPartOfJob, kindLabelOf, labelOf } from "./words.ts";

interface FormProps {
  state: FormState;
  problems: Problems;
  onChange: (state: FormState) => void;
}

/** The run configuration as a form: one group per part, straight from its schema. */
export function SchemaForm({ root, ...form }: FormProps & { root: ObjectNode }) {
  const groups = root.fields.filter((field) => isPart(field));
  const others = root.fields.filter((field) => !isPart(field));
  const job = getAt(form.state.values, ["job"]);
  const shown = groups.filter((node) => isPartOfJob(job, node.key) || hasProblem(node, form.problems));
  return (
    <>
      {others.length > 0 && (
        <fieldset className="card group">
          <legend>General</legend>
          <p className="muted group-help">What the run does as a whole.</p>
          <Fields fields={others} {...form} />
        </fieldset>
      )}
      {shown.map((node) => isPart(node) && <Group key={node.key} node={node} {...form} />)}
    </>
  );
}

type Part = ObjectNode | UnionNode;

function isPart(node: Node): node is Part {
  return node.type === "object" || node.type === "union";
}

function Group({ node, ...form }: FormProps & { node: Part }) {
  const messages = node.type === "object" ? (form.problems[pointerOf(node.path)] ?? []) : [];
  return (
    <fieldset className="card group">
      <legend>{groupTitleOf(node.key)}</legend>
      <p className="muted group-help">{node.help}</p>
      {messages.map((message) => (
        <p key={message} className="field-problems">
          {message}
        </p>
      ))}
      <Body node={node} {...form} />
    </fieldset>
  );
}

/** The fields of a part, those that few launches touch folded. */
function Body({ node, ...form }: FormProps & { node: Part }) {
  const fields = node.type === "union" ? fieldsOfKind(node, form.state) : node.fields;
  const advanced = fields.filter((field) => !isEssential(field.path));
  return (
    <>
      {node.type === "union" && <KindChoice node={node} {...form} />}
      <Fields fields={fields.filter((field) => isEssential(field.path))} {...form} />
      {advanced.length > 0 && <Advanced fields={advanced} {...form} />}
    </>
  );
}

function fieldsOfKind(node: UnionNode, state: FormState): Node[] {
  const kind = kindOf(node, state.values);
  return node.variants.find((variant) => variant.kind === kind)?.fields ?? [];
}

function Advanced({ fields, ...form }: FormProps & { fields: Node[] }) {
  const numProblems = fields.filter((field) => hasProblem(field, form.problems)).length;
  const numChanged = fields.filter((field) => getAt(form.state.values, field.path) !== undefined).length;
  const fold = useRef<HTMLDetailsElement>(null);
  // A problem inside opens it; closing it is the reader's.
  useEffect(() => {
    if (numProblems > 0 && fold.current) fold.current.open = true;
  }, [numProblems]);
  const remarks = [
    numChanged > 0 && `${numChanged} changed`,
    numProblems > 0 && `${numProblems} to mend`,
  ].filter(Boolean);
  return (
    <details className="advanced" ref={fold}>
      <summary>
        Advanced
        {remarks.length > 0 && <span className="muted"> · {remarks.join(", ")}</span>}
      </summary>
      <Fields fields={fields} {...form} />
    </details>
  );
}

function hasProblem(node: Node, problems: Problems): boolean {
  const at = pointerOf(node.path);
  return Object.keys(problems).some((pointer) => pointer === at || pointer.startsWith(`${at}/`));
}

function Fields({ fields, ...form }: FormProps & { fields: Node[] }) {
  return fields.map((node) => <AnyField key={node.key} node={node} {...form} />);
}

function AnyField({ node, ...form }: FormProps & { node: Node }) {
  if (!isPart(node)) return <Leaf node={node} {...form} />;
  const fields = node.type === "union" ? fieldsOfKind(node, form.state) : node.fields;
  return (
    <fieldset className="subgroup">
      <legend>{labelOf(node.key)}</legend>
      {node.help && <p className="muted group-help">{node.help}</p>}
      {node.type === "union" && <KindChoice node={node} {...form} />}
      <Fields fields={fields} {...form} />
    </fieldset>
  );
}

function Leaf({ node, state, problems, onChange }: FormProps & { node: Exclude<Node, Part> }) {
  return (
    <Field
      node={node}
      value={getAt(state.values, node.path)}
      messages={problems[pointerOf(node.path)] ?? []}
      onChange={(value) => onChange({ ...state, values: setAt(state.values, node.path, value) })}
    />
  );
}

function KindChoice({ node, state, problems, onChange }: FormProps & { node: UnionNode }) {
  const kind = kindOf(node, state.values);
  const variant = node.variants.find((each) => each.kind === kind);
  const messages = problems[pointerOf(node.path)] ?? [];
  const id = fieldId(node.path);
  const isChanged = kind !== node.defaultKind;
  return (
    <FieldRow
      id={id}
      label="Kind"
      path={[...node.path, node.discriminator].join(".")}
      help={variant?.help ?? ""}
      messages={messages}
      reset={isChanged ? () => onChange(switchKind(state, node, node.defaultKind)) : undefined}
      resetTo={kindLabelOf(node.defaultKind)}
    >
      <select
        id={id}
        className="input wide"
        value={kind}
        aria-invalid={messages.length > 0}
        aria-describedby={`${id}-help ${id}-problems`}
        onChange={(event) => onChange(switchKind(state, node, event.target.value))}
      >
        {node.variants.map((each) => (
          <option key={each.kind} value={each.kind}>
            {kindLabelOf(each.kind)}
          </option>
        ))}
      </select>
    </FieldRow>
  );
}
