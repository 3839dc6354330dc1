import { useQuery } from "@tanstack/react-query";
import { projectsQuery } from "./queries.ts";

/** Whether the reader may change and stop what belongs to a project. Until that is known they may: the server decides. */
export function useMayChange(project: string): boolean {
  const projects = useQuery(projectsQuery).data;
  return !projects || projects.some(({ name, role }) => name === project && role !== "viewer");
}
