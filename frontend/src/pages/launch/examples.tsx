import { Link } from "react-router";
import type { Schemas } from "../../api/client.ts";

type Example = Schemas["ConfigExample"];

/** Ready configurations to start from. What was typed from another start is kept there. */
export function Examples({ examples, chosen }: { examples: Example[]; chosen: Example | null }) {
  if (examples.length === 0) return null;
  return (
    <nav className="examples" aria-label="Start from">
      <h2>Start from</h2>
      <ul>
        <Choice
          to="/launch"
          title="Defaults"
          description="Every setting at its default."
          isChosen={chosen === null}
        />
        {examples.map(({ name, title, description }) => (
          <Choice
            key={name}
            to={`/launch?example=${encodeURIComponent(name)}`}
            title={title}
            description={description}
            isChosen={chosen?.name === name}
          />
        ))}
      </ul>
    </nav>
  );
}

interface ChoiceProps {
  to: string;
  title: string;
  description: string;
  isChosen: boolean;
}

function Choice({ to, title, description, isChosen }: ChoiceProps) {
  return (
    <li>
      <Link to={to} className="example" aria-current={isChosen || undefined} replace>
        <strong>{title}</strong>
        <span className="muted small example-words" title={description}>
          {description}
        </span>
      </Link>
    </li>
  );
}
