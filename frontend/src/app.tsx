import { QueryCache, QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { createBrowserRouter, Navigate, Outlet, RouterProvider, useLocation } from "react-router";
import { rememberPlace } from "./api/after-login.ts";
import { ApiProblem } from "./api/problem.ts";
import { sessionQuery } from "./api/queries.ts";
import { Shell } from "./design/shell.tsx";
import { ProblemNote, Waiting } from "./design/states.tsx";
import { AccessPage } from "./pages/access/access-page.tsx";
import { ClustersPage } from "./pages/clusters.tsx";
import { LaunchPage } from "./pages/launch/launch-page.tsx";
import { LoginPage } from "./pages/login.tsx";
import { NotFoundPage } from "./pages/not-found.tsx";
import { RunPage } from "./pages/run/run-page.tsx";
import { RunsPage } from "./pages/runs/runs-page.tsx";
import { SettingsPage } from "./pages/settings/settings-page.tsx";
import { SweepPage } from "./pages/sweep/sweep-page.tsx";
import { SweepsPage } from "./pages/sweeps/sweeps-page.tsx";
import { WebhooksPage } from "./pages/webhooks/webhooks-page.tsx";

const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError(error, query) {
      // The session ended: asking for it again sends the reader to the login page. Its own refusal needs no second ask.
      const isOfSession = query.queryKey[0] === sessionQuery.queryKey[0];
      if (error instanceof ApiProblem && error.isUnauthenticated && !isOfSession) {
        void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
      }
    },
  }),
  defaultOptions: {
    queries: {
      // An answer with a status will not change by asking again; no answer may.
      retry: (count, error) => count < 2 && error instanceof ApiProblem && error.status === 0,
      refetchOnWindowFocus: false,
      staleTime: 5_000,
    },
  },
});

function RequireSession() {
  const session = useQuery({ ...sessionQuery, retry: false });
  const location = useLocation();
  if (session.error instanceof ApiProblem && session.error.isUnauthenticated) {
    rememberPlace(location.pathname + location.search);
    return <Navigate to="/login" replace />;
  }
  if (session.data) return <Outlet />;
  if (session.error) {
    return (
      <div className="alone">
        <ProblemNote error={session.error} onRetry={() => session.refetch()} />
      </div>
    );
  }
  return <Waiting>Asking the server who you are.</Waiting>;
}

const router = createBrowserRouter([
  { path: "/login", element: <LoginPage /> },
  {
    element: <RequireSession />,
    children: [
      {
        element: <Shell />,
        children: [
          { index: true, element: <Navigate to="/runs" replace /> },
          { path: "runs", element: <RunsPage /> },
          { path: "runs/:runId", element: <RunPage /> },
          { path: "sweeps", element: <SweepsPage /> },
          { path: "sweeps/:sweepId", element: <SweepPage /> },
          { path: "launch", element: <LaunchPage /> },
          { path: "clusters", element: <ClustersPage /> },
          { path: "access", element: <AccessPage /> },
          { path: "settings", element: <SettingsPage /> },
          { path: "webhooks", element: <WebhooksPage /> },
          { path: "*", element: <NotFoundPage /> },
        ],
      },
    ],
  },
]);

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
}
