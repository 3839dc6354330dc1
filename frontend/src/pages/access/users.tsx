import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { usersQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { CopyButton } from "../../design/copy.tsx";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { EditProblem } from "../../edits/conflict-note.tsx";
import { saveEdit } from "../../edits/editable.ts";
import { editableUser } from "../../edits/kinds.ts";
import { formatExact } from "../../format/time.ts";

type User = Schemas["UserRead"];

/** People who may log in; for those who administer everything. */
export function Users() {
  const users = useQuery(usersQuery);
  return (
    <section className="card">
      <h2>Users</h2>
      <p className="muted">A login link lets somebody in once. What they see is what they have a role in.</p>
      <NewUser />
      {users.isPending && <Waiting>Fetching the users.</Waiting>}
      {users.error && <ProblemNote error={users.error} onRetry={() => users.refetch()} />}
      {users.data && (
        <ul className="access-list">
          {users.data.map((user) => (
            <UserRow key={user.id} user={user} />
          ))}
        </ul>
      )}
    </section>
  );
}

function NewUser() {
  const [name, setName] = useState("");
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/users", { body: { name: name.trim() } })),
    onSuccess: () => {
      setName("");
      void queryClient.invalidateQueries({ queryKey: usersQuery.queryKey });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <form className="row-form" onSubmit={submit}>
      <input
        className="input"
        aria-label="Name of the new user"
        value={name}
        placeholder="grace"
        required
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="button" disabled={create.isPending}>
        Add
      </button>
      {create.error && <ProblemNote error={create.error} />}
    </form>
  );
}

function UserRow({ user }: { user: User }) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const at = { params: { path: { user: user.name } } };
  const update = useMutation({
    mutationFn: (body: Schemas["UserUpdate"]) => saveEdit(editableUser(user.name), user, body),
    onSettled: () => queryClient.invalidateQueries({ queryKey: usersQuery.queryKey }),
  });
  const link = useMutation({ mutationFn: () => unwrap(api.POST("/api/v1/users/{user}/login-links", at)) });
  const error = update.error ?? link.error;
  return (
    <li>
      <div>
        <strong>{user.name}</strong>{" "}
        {user.is_admin && <span className="badge tone-running">Administrator</span>}{" "}
        {!user.is_active && <span className="badge tone-stopped">Shut out</span>}
        {user.email && <p className="muted small">{user.email}</p>}
      </div>
      <div className="actions">
        {user.is_active && (
          <button
            type="button"
            className="button"
            onClick={() => link.mutate()}
            disabled={link.isPending}
            aria-label={`Make a login link for ${user.name}`}
          >
            Login link
          </button>
        )}
        <button
          type="button"
          className="button"
          disabled={update.isPending}
          onClick={() => update.mutate({ is_admin: !user.is_admin })}
        >
          {user.is_admin ? "Make ordinary user" : "Make administrator"}
        </button>
        <button
          type="button"
          className="button"
          disabled={update.isPending}
          onClick={() => (user.is_active ? setAsking(true) : update.mutate({ is_active: true }))}
        >
          {user.is_active ? "Shut out" : "Let in again"}
        </button>
      </div>
      {link.data && (
        <div className="note tone-running">
          <p>
            Logs in as {user.name}, once, until {formatExact(link.data.expires_at)}. It is shown this once:
          </p>
          <p className="mono secret">{link.data.url}</p>
          <CopyButton text={link.data.url} label="Copy the link" />
        </div>
      )}
      {error && <EditProblem error={error} />}
      {isAsking && (
        <Confirm
          title={`Shut “${user.name}” out?`}
          action="Shut out"
          onConfirm={() => {
            setAsking(false);
            update.mutate({ is_active: false });
          }}
          onCancel={() => setAsking(false)}
        >
          <p>Their tokens are refused from now on, and their browsers logged out. Their runs go on.</p>
        </Confirm>
      )}
    </li>
  );
}
