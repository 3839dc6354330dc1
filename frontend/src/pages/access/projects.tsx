import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { membersQuery, projectsQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { plural } from "../../format/number.ts";

type Project = Schemas["ProjectRead"];
type Member = Schemas["MemberRead"];
type Role = Member["role"];

const ROLES: { role: Role; words: string }[] = [
  { role: "viewer", words: "viewer: sees" },
  { role: "launcher", words: "launcher: also launches and stops" },
  { role: "admin", words: "admin: also gives roles" },
];

/** What runs belong to, and who may do what there. */
export function Projects({ isAdmin }: { isAdmin: boolean }) {
  const projects = useQuery(projectsQuery);
  if (projects.isPending) return <Waiting>Fetching the projects.</Waiting>;
  if (projects.error) return <ProblemNote error={projects.error} onRetry={() => projects.refetch()} />;
  return (
    <>
      {isAdmin && <NewProject />}
      {projects.data.length === 0 && (
        <Empty title="You have no role in any project.">
          <p>Who administers a project, or everything, can give you one.</p>
        </Empty>
      )}
      {projects.data.map((project) => (
        <ProjectCard key={project.id} project={project} mayChange={isAdmin && project.name !== "default"} />
      ))}
    </>
  );
}

/** A change of projects or their members, after which both are fetched anew. */
function useChange<Arguments>(change: (given: Arguments) => Promise<unknown>) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queryClient.invalidateQueries({ queryKey: projectsQuery.queryKey }),
  });
}

function NewProject() {
  const [name, setName] = useState("");
  const create = useChange((asked: string) =>
    unwrap(api.POST("/api/v1/projects", { body: { name: asked } })).then(() => setName("")),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(name);
  };
  return (
    <section className="card">
      <h2>New project</h2>
      <form className="row-form" onSubmit={submit}>
        <input
          className="input"
          aria-label="Name of the new project"
          value={name}
          placeholder="post-training"
          required
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit" className="button" disabled={create.isPending}>
          Make it
        </button>
      </form>
      {create.error && <ProblemNote error={create.error} />}
    </section>
  );
}

function ProjectCard({ project, mayChange }: { project: Project; mayChange: boolean }) {
  const [isAsking, setAsking] = useState(false);
  const [isRenaming, setRenaming] = useState(false);
  const members = useQuery(membersQuery(project.name));
  const remove = useChange(() =>
    unwrap(api.DELETE("/api/v1/projects/{project}", { params: { path: { project: project.name } } })),
  );
  const isManaged = project.role === "admin";
  return (
    <section className="card" aria-label={project.name}>
      <div className="card-head">
        <h2>{project.name}</h2>
        <span className="muted small">
          {plural(project.num_runs, "run")} · you: {project.role}
        </span>
      </div>
      {members.isPending && <Waiting>Fetching its members.</Waiting>}
      {members.error && <ProblemNote error={members.error} onRetry={() => members.refetch()} />}
      {members.data?.length === 0 && <p className="muted">Nobody but those who administer everything.</p>}
      {members.data && members.data.length > 0 && (
        <ul className="access-list">
          {members.data.map((member) => (
            <MemberRow key={member.user} project={project.name} member={member} isManaged={isManaged} />
          ))}
        </ul>
      )}
      {isManaged && <NewMember project={project.name} />}
      {mayChange && (
        <div className="actions">
          <button type="button" className="button" onClick={() => setRenaming(true)} disabled={isRenaming}>
            Rename
          </button>
          {project.num_runs === 0 && (
            <button
              type="button"
              className="button"
              onClick={() => setAsking(true)}
              disabled={remove.isPending}
            >
              Remove the project
            </button>
          )}
        </div>
      )}
      {isRenaming && <NewName project={project.name} onClose={() => setRenaming(false)} />}
      {remove.error && <ProblemNote error={remove.error} />}
      {isAsking && (
        <Confirm
          title={`Remove “${project.name}”?`}
          action="Remove"
          onConfirm={() => {
            setAsking(false);
            remove.mutate(undefined);
          }}
          onCancel={() => setAsking(false)}
        >
          <p>Roles in it and tokens for it go, too.</p>
        </Confirm>
      )}
    </section>
  );
}

/** Its name is its address: whoever was faster has moved it, and there is nothing at the former one. */
function NewName({ project, onClose }: { project: string; onClose: () => void }) {
  const [name, setName] = useState(project);
  const rename = useChange((asked: string) =>
    unwrap(
      api.PATCH("/api/v1/projects/{project}", { params: { path: { project } }, body: { name: asked } }),
    ).then(onClose),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rename.mutate(name.trim());
  };
  return (
    <form className="row-form" onSubmit={submit}>
      <input
        className="input"
        aria-label={`New name of ${project}`}
        value={name}
        required
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="button" disabled={rename.isPending}>
        Rename it
      </button>
      <button type="button" className="button" onClick={onClose}>
        Cancel
      </button>
      {rename.error && <ProblemNote error={rename.error} />}
    </form>
  );
}

const at = (project: string, user: string) => ({ params: { path: { project, user } } });

function setRole(project: string, user: string, role: Role) {
  return unwrap(
    api.PUT("/api/v1/projects/{project}/members/{user}", { ...at(project, user), body: { role } }),
  );
}

interface MemberRowProps {
  project: string;
  member: Member;
  isManaged: boolean;
}

function MemberRow({ project, member, isManaged }: MemberRowProps) {
  const change = useChange((role: Role) => setRole(project, member.user, role));
  const remove = useChange(() =>
    unwrap(api.DELETE("/api/v1/projects/{project}/members/{user}", at(project, member.user))),
  );
  const isBusy = change.isPending || remove.isPending;
  const error = change.error ?? remove.error;
  return (
    <li>
      <span>
        {member.user} {!member.is_active && <span className="badge tone-stopped">Shut out</span>}
      </span>
      {isManaged ? (
        <span className="row-form">
          <RoleSelect
            label={`Role of ${member.user}`}
            role={member.role}
            isDisabled={isBusy}
            onChange={(role) => change.mutate(role)}
          />
          <button
            type="button"
            className="button"
            disabled={isBusy}
            aria-label={`Remove ${member.user} from ${project}`}
            onClick={() => remove.mutate(undefined)}
          >
            Remove
          </button>
        </span>
      ) : (
        <span className="muted">{member.role}</span>
      )}
      {error && <ProblemNote error={error} />}
    </li>
  );
}

function NewMember({ project }: { project: string }) {
  const [user, setUser] = useState("");
  const [role, setNewRole] = useState<Role>("launcher");
  const add = useChange((name: string) => setRole(project, name, role).then(() => setUser("")));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate(user.trim());
  };
  return (
    <form className="row-form" onSubmit={submit}>
      <input
        className="input"
        aria-label={`User to add to ${project}`}
        value={user}
        placeholder="Name of a user"
        required
        onChange={(event) => setUser(event.target.value)}
      />
      <RoleSelect label={`Role in ${project}`} role={role} isDisabled={false} onChange={setNewRole} />
      <button type="submit" className="button" disabled={add.isPending}>
        Add
      </button>
      {add.error && <ProblemNote error={add.error} />}
    </form>
  );
}

interface RoleSelectProps {
  label: string;
  role: Role;
  isDisabled: boolean;
  onChange: (role: Role) => void;
}

function RoleSelect({ label, role, isDisabled, onChange }: RoleSelectProps) {
  return (
    <select
      className="input"
      aria-label={label}
      value={role}
      disabled={isDisabled}
      onChange={(event) => onChange(event.target.value as Role)}
    >
      {ROLES.map(({ role: each, words }) => (
        <option key={each} value={each}>
          {words}
        </option>
      ))}
    </select>
  );
}
