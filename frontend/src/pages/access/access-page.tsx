import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { projectsQuery, sessionQuery } from "../../api/queries.ts";
import { Page } from "../../design/page.tsx";
import { TabPanel, Tabs } from "../../design/tabs.tsx";
import { AuditLog } from "./audit-log.tsx";
import { Projects } from "./projects.tsx";
import { Tokens } from "./tokens.tsx";
import { Users } from "./users.tsx";

/** Who may do what, and who did: as much of it as concerns the reader. */
export function AccessPage() {
  const isAdmin = useQuery(sessionQuery).data?.user.is_admin ?? false;
  const projects = useQuery(projectsQuery);
  const hasLog = isAdmin || projects.data?.some(({ role }) => role === "admin");
  const tabs = [
    { id: "tokens", name: "API tokens" },
    { id: "projects", name: "Projects" },
    ...(isAdmin ? [{ id: "users", name: "Users" }] : []),
    ...(hasLog ? [{ id: "audit", name: "Audit log" }] : []),
  ];
  const [params, setParams] = useSearchParams();
  const asked = params.get("tab");
  const open = tabs.find(({ id }) => id === asked)?.id ?? "tokens";
  return (
    <Page title="Access">
      <Tabs
        tabs={tabs}
        open={open}
        onOpen={(tab) => setParams({ tab }, { replace: true })}
        label="Parts of access"
      />
      <TabPanel id={open}>
        <div className="access">
          {open === "tokens" && <Tokens />}
          {open === "projects" && <Projects isAdmin={isAdmin} />}
          {open === "users" && <Users />}
          {open === "audit" && <AuditLog />}
        </div>
      </TabPanel>
    </Page>
  );
}
