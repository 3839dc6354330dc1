// Runs before the first paint, so that a stored choice does not flash. A file of its own: inline scripts are refused.
try {
  const stored = localStorage.getItem("foredeck-theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
} catch {
  // Storage is blocked: the system's theme applies.
}
