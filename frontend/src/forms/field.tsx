import { type ReactNode, useState } from "react";
import { groupedText, numberText, parseNumber } from "./number.ts";
import { pointerOf } from "./problems.ts";
import type { LeafNode } from "./schema.ts";
import { kindLabelOf, labelOf, unitOf } from "./words.ts";

export interface FieldProps {
  node: LeafNode;
  /** Undefined while the default stands. */
  value: unknown;
  messages: string[];
  onChange: (value: unknown) => void;
}

/** One setting: its control with the unit, the default as placeholder, what it means, and what is wrong with it. */
export function Field({ node, value, messages, onChange }: FieldProps) {
  const id = fieldId(node.path);
  const isChanged = value !== undefined;
  return (
    <FieldRow
      id={id}
      label={labelOf(node.key)}
      path={node.path.join(".")}
      help={[node.help, node.limits && `Allowed: ${node.limits}.`].filter(Boolean).join(" ")}
      messages={messages}
      reset={isChanged && !node.isRequired ? () => onChange(undefined) : undefined}
      resetTo={shown(node)}
    >
      <Control node={node} value={value} id={id} isInvalid={messages.length > 0} onChange={onChange} />
      {unitOf(node.key) && <span className="unit">{unitOf(node.key)}</span>}
    </FieldRow>
  );
}

export function fieldId(path: string[]): string {
  return `field${pointerOf(path).replaceAll("/", "-")}`;
}

/** The default in words. */
function shown({ type, key, defaultValue }: LeafNode): string {
  if (defaultValue === null || defaultValue === undefined) return UNSET;
  if (typeof defaultValue === "boolean") return defaultValue ? "on" : "off";
  if (typeof defaultValue === "number") return groupedText(defaultValue);
  return type === "choice" ? kindLabelOf(String(defaultValue), key) : String(defaultValue);
}

/** What stands for a value that may be left out and has no default. */
const UNSET = "not set";

interface FieldRowProps {
  id: string;
  label: string;
  path?: string;
  help: string;
  messages: string[];
  reset?: () => void;
  resetTo?: string;
  children: ReactNode;
}

/** The frame of a setting: label, control, help and problems. */
export function FieldRow({ id, label, path, help, messages, reset, resetTo, children }: FieldRowProps) {
  return (
    <div className="field" data-changed={reset ? true : undefined}>
      <label htmlFor={id} title={path}>
        {label}
      </label>
      <div className="field-control">
        {children}
        {reset && (
          <button
            type="button"
            className="link-button"
            onClick={reset}
            aria-label={`Reset ${label} to ${resetTo}`}
          >
            reset to {resetTo}
          </button>
        )}
      </div>
      <p className="field-help" id={`${id}-help`}>
        {withCode(help)}
      </p>
      <div className="field-problems" id={`${id}-problems`} aria-live="polite">
        {messages.map((message) => (
          <p key={message}>{sentence(message)}</p>
        ))}
      </div>
    </div>
  );
}

/** What stands between backticks as code. */
function withCode(text: string): ReactNode {
  return text.split("`").map((part, index) => (index % 2 ? <code key={part}>{part}</code> : part));
}

/** With a capital and a stop. */
export function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

interface ControlProps {
  node: LeafNode;
  value: unknown;
  id: string;
  isInvalid: boolean;
  onChange: (value: unknown) => void;
}

function Control({ node, value, id, isInvalid, onChange }: ControlProps) {
  const common = { id, "aria-invalid": isInvalid, "aria-describedby": `${id}-help ${id}-problems` };
  if (node.type === "boolean") {
    const isOn = (value ?? node.defaultValue) === true;
    const toggle = (next: boolean) => onChange(next === node.defaultValue ? undefined : next);
    return (
      <input type="checkbox" {...common} checked={isOn} onChange={(event) => toggle(event.target.checked)} />
    );
  }
  if (node.type === "choice") {
    const choose = (text: string) => {
      const choice = node.choices.find((each) => String(each) === text);
      onChange(choice === node.defaultValue ? undefined : choice);
    };
    return (
      <select
        className="input"
        {...common}
        value={String(value ?? node.defaultValue ?? "")}
        onChange={(e) => choose(e.target.value)}
      >
        {node.isNullable && <option value="">{UNSET}</option>}
        {node.choices.map((choice) => (
          <option key={choice} value={choice}>
            {kindLabelOf(String(choice), node.key)}
          </option>
        ))}
      </select>
    );
  }
  if (node.type === "text") {
    const text = {
      ...common,
      className: "input wide",
      value: numberText(value),
      placeholder: numberText(node.defaultValue) || (node.example && `e.g. ${node.example}`) || UNSET,
      spellCheck: false,
      autoCapitalize: "off",
    };
    const set = (typed: string) => onChange(typed === "" ? undefined : typed);
    return node.isLong ? (
      <textarea {...text} rows={3} onChange={(event) => set(event.target.value)} />
    ) : (
      <input {...text} onChange={(event) => set(event.target.value)} />
    );
  }
  return (
    <NumberInput
      {...common}
      value={value}
      placeholder={numberText(node.defaultValue) || UNSET}
      onChange={onChange}
    />
  );
}

type NumberInputProps = Omit<React.ComponentProps<"input">, "value" | "onChange"> & {
  value: unknown;
  onChange: (value: unknown) => void;
};

/** Keeps the text as it is typed ("1." or "3e-"), which a number alone could not say. */
export function NumberInput({ value, onChange, ...rest }: NumberInputProps) {
  const [text, setText] = useState(numberText(value));
  if (parseNumber(text) !== value) setText(numberText(value));
  const change = (typed: string) => {
    setText(typed);
    onChange(parseNumber(typed));
  };
  return (
    <input
      className="input number-input"
      inputMode="decimal"
      autoComplete="off"
      {...rest}
      value={text}
      onChange={(event) => change(event.target.value)}
    />
  );
}
