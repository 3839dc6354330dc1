import { Link } from "react-router";
import { Page } from "../design/page.tsx";
import { Empty } from "../design/states.tsx";

export function NotFoundPage() {
  return (
    <Page title="Not here">
      <Empty title="There is no page at this address.">
        <p>
          <Link to="/runs">See the runs</Link>
        </p>
      </Empty>
    </Page>
  );
}
