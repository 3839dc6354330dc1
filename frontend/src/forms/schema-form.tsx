import { type ReactNode, useEffect, useRef } from "react";
import { Field, FieldRow, fieldId, sentence } from "./field.tsx";
import { type Problems, pointerOf } from "./problems.ts";
import type { Node, ObjectNode, UnionNode } from "./schema.ts";
import { type FormState, getAt, kindOf, setAt, switchKind } from "./values.ts";
import {
  byImportance,
  groupTitleOf,
  isEssential,
  isInFront,
  isPartOfJob,
  kindLabelOf,
  labelOf,
} from "./words.ts";

interface FormProps {
  state: FormState;
  problems: Problems;
  onChange: (state: FormState) => void;
}

interface SchemaFormProps extends FormProps {
  root: ObjectNode;
  /** What else stands at the end of a part's group, by the part. */
  asides?: Record<string, ReactNode>;
}

/** The run configuration as a form, straight from its schema: the parts in front as groups, the others a line each. */
export function SchemaForm({ root, asides = {}, ...form }: SchemaFormProps) {
  const others = root.fields.filter((field) => !isPart(field));
  const job = getAt(form.state.values, ["job"]);
  const shown = root.fields
    .filter((node) => isPart(node))
    .filter((node) => isPartOfJob(job, node.key) || hasProblem(node, form.problems))
    .sort(byImportance);
  const folded = shown.filter(({ key }) => !isInFront(key));
  return (
    <>
      {others.length > 0 && (
        <fieldset className="card group">
          <legend>General</legend>
          <p className="muted group-help">What the run does as a whole.</p>
          <Fields fields={others} {...form} />
        </fieldset>
      )}
      {shown
        .filter(({ key }) => isInFront(key))
        .map((node) => (
          <Group key={node.key} node={node} {...form}>
            {asides[node.key]}
          </Group>
        ))}
      {folded.length > 0 && (
        <div className="card folds">
          {folded.map((node) => (
            <FoldedGroup key={node.key} node={node} {...form} />
          ))}
        </div>
      )}
    </>
  );
}

type Part = ObjectNode | UnionNode;

function isPart(node: Node): node is Part {
  return node.type === "object" || node.type === "union";
}

function Group({ node, children, ...form }: FormProps & { node: Part; children: ReactNode }) {
  return (
    <fieldset className="card group">
      <legend>{groupTitleOf(node.key)}</legend>
      <p className="muted group-help">{node.help}</p>
      <Body node={node} {...form} />
      {children}
    </fieldset>
  );
}

/** A part that few launches touch: its title and purpose, and its fields once it is unfolded. */
function FoldedGroup({ node, ...form }: FormProps & { node: Part }) {
  const fields = fieldsOf(node, form.state);
  const title = groupTitleOf(node.key);
  return (
    <fieldset className="folded-group">
      <legend className="visually-hidden">{title}</legend>
      <Fold
        className="fold"
        fields={fields}
        hasOwnProblem={hasProblem(node, form.problems)}
        title={
          <>
            <strong>{title}</strong> <span className="muted">{node.help}</span>
          </>
        }
        {...form}
      >
        <Whole node={node} {...form} />
      </Fold>
    </fieldset>
  );
}

/** The fields of a part, those that few launches touch folded. */
function Body({ node, ...form }: FormProps & { node: Part }) {
  const fields = fieldsOf(node, form.state);
  const advanced = fields.filter((field) => !isInSight(field));
  return (
    <>
      <Start node={node} {...form} />
      {fields.filter(isInSight).map((field) =>
        isPart(field) ? (
          <Subgroup key={field.key} node={field}>
            <Body node={field} {...form} />
          </Subgroup>
        ) : (
          <Leaf key={field.key} node={field} {...form} />
        ),
      )}
      {advanced.length > 0 && (
        <Fold className="advanced" title="Advanced" fields={advanced} {...form}>
          <Fields fields={advanced} {...form} />
        </Fold>
      )}
    </>
  );
}

/** All fields of a part, none folded. */
function Whole({ node, ...form }: FormProps & { node: Part }) {
  return (
    <>
      <Start node={node} {...form} />
      <Fields fields={fieldsOf(node, form.state)} {...form} />
    </>
  );
}

/** Which kind it is, or what is wrong with the whole. */
function Start({ node, ...form }: FormProps & { node: Part }) {
  if (node.type === "union") return <KindChoice node={node} {...form} />;
  const messages = form.problems[pointerOf(node.path)] ?? [];
  return messages.map((message) => (
    <p key={message} className="field-problems" role="alert">
      {sentence(message)}
    </p>
  ));
}

/** What must be given cannot be folded away. */
function isInSight(node: Node): boolean {
  return isEssential(node.path) || (node.type !== "object" && node.isRequired);
}

function fieldsOf(node: Part, state: FormState): Node[] {
  if (node.type === "object") return node.fields;
  const kind = kindOf(node, state.values);
  return node.variants.find((variant) => variant.kind === kind)?.fields ?? [];
}

interface FoldProps extends FormProps {
  title: ReactNode;
  className: string;
  /** What lies in it. */
  fields: Node[];
  hasOwnProblem?: boolean;
  children: ReactNode;
}

/** Something folded that says how much in it was changed or is wrong. */
function Fold({ title, className, fields, hasOwnProblem = false, children, ...form }: FoldProps) {
  const numFields = fields.filter((field) => hasProblem(field, form.problems)).length;
  const numProblems = numFields || Number(hasOwnProblem);
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
    <details className={className} ref={fold}>
      <summary>
        {title}
        {remarks.length > 0 && <span className="muted"> · {remarks.join(", ")}</span>}
      </summary>
      {children}
    </details>
  );
}

function hasProblem(node: Node, problems: Problems): boolean {
  const at = pointerOf(node.path);
  return Object.keys(problems).some((pointer) => pointer === at || pointer.startsWith(`${at}/`));
}

function Fields({ fields, ...form }: FormProps & { fields: Node[] }) {
  return fields.map((node) =>
    isPart(node) ? (
      <Subgroup key={node.key} node={node}>
        <Whole node={node} {...form} />
      </Subgroup>
    ) : (
      <Leaf key={node.key} node={node} {...form} />
    ),
  );
}

function Subgroup({ node, children }: { node: Part; children: ReactNode }) {
  return (
    <fieldset className="subgroup">
      <legend>{labelOf(node.key)}</legend>
      {node.help && <p className="muted group-help">{node.help}</p>}
      {children}
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
