export function App() {
  return <h1>Foredeck</h1>;
}
