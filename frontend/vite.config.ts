import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  // plotly.js names Node's `global` in a few places.
  define: { global: "globalThis" },
  server: { proxy: { "/api": "http://127.0.0.1:8600" } },
  build: { target: "es2022", chunkSizeWarningLimit: 1400, assetsInlineLimit: 0 },
  test: {
    include: ["tests/**/*.test.{ts,tsx}"],
    environment: "node",
    setupFiles: ["tests/setup.ts"],
    testTimeout: 60_000,
  },
});
