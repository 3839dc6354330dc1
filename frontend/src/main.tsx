import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./design/base.css";
import "./design/shell.css";
import "./design/parts.css";
import "./charts/charts.css";
import "./forms/forms.css";
import "./pages/runs/runs.css";
import "./pages/run/run.css";
import "./pages/run/tabs.css";
import "./pages/launch/launch.css";
import "./pages/access/access.css";
import "./pages/settings/settings.css";
import "./pages/webhooks/webhooks.css";
import { App } from "./app.tsx";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root element");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
