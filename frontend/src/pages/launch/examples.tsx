import { Link } from "react-router";
import type { Schemas } from "../../api/client.ts";
import { type Example, groupExamples } from "./example-groups.ts";

interface ExamplesProps {
  examples: Schemas["ConfigExample"][];
  chosen: Example | null;
}

/** Ready configurations to start from, and what the chosen one is. What was typed from another start is kept there. */
export function Examples({ examples, chosen }: ExamplesProps) {
  if (examples.length === 0) return null;
  return (
    <nav className="card examples" aria-label="Start from">
      <h2>Start from</h2>
      {groupExamples(examples).map(({ title, examples: of }, index) => (
        <section key={title} aria-label={title}>
          <h3>{title}</h3>
          <ul>
            {index === 0 && <Choice to="/launch" title="Defaults" isChosen={chosen === null} />}
            {of.map((example) => (
              <Choice
                key={example.name}
                to={`/launch?example=${encodeURIComponent(example.name)}`}
                title={example.title}
                words={example.description}
                isChosen={chosen?.name === example.name}
              />
            ))}
          </ul>
        </section>
      ))}
      <p className="muted small">{chosen?.description ?? "Every setting at its default."}</p>
    </nav>
  );
}

interface ChoiceProps {
  to: string;
  title: string;
  words?: string;
  isChosen: boolean;
}

function Choice({ to, title, words, isChosen }: ChoiceProps) {
  return (
    <li>
      <Link to={to} className="example" aria-current={isChosen || undefined} title={words} replace>
        {title}
      </Link>
    </li>
  );
}
