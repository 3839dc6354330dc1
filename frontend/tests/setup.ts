export {};

if (typeof document !== "undefined") {
  const { configure } = await import("@testing-library/dom");
  // What a test waits for comes at once, but for a busy machine.
  configure({ asyncUtilTimeout: 20_000 });
}
