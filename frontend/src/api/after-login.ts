const KEY = "foredeck-after-login";

/** Remembers, in this tab, where the reader was when the session ended. */
export function rememberPlace(place: string): void {
  try {
    sessionStorage.setItem(KEY, place);
  } catch {
    // Storage is blocked: the login leads to the runs.
  }
}

/** Where to go after the login; only ever a path of this site. */
export function takePlace(): string {
  try {
    const place = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    if (place && /^\/(?![/\\])/.test(place)) return place;
  } catch {
    // Storage is blocked.
  }
  return "/runs";
}
