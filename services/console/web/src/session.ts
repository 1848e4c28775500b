// The session: a project and an API key for it. It lives in this tab's session storage and in memory, nowhere else.
import { signal } from "@preact/signals";
import { address, go, here } from "./router.ts";

export interface Session {
  project: string;
  key: string;
}

const stored = "lectern.session";

function read(): Session | null {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(stored) ?? "null");
    if (value && typeof value === "object" && "project" in value && "key" in value) {
      const { project, key } = value;
      if (typeof project === "string" && project && typeof key === "string" && key) return { project, key };
    }
  } catch {
    // Storage is blocked, or something else wrote to it: there is no session.
  }
  return null;
}

/** session is the current session, or null. */
export const session = signal<Session | null>(read());

/** signIn starts a session. It replaces the one before it. */
export function signIn(project: string, key: string): void {
  session.value = { project, key };
  try {
    sessionStorage.setItem(stored, JSON.stringify(session.value));
  } catch {
    // Storage is blocked: the session ends when the page is closed.
  }
}

/** signOut forgets the session and all preferences, and loads the page again so that nothing stays in memory. */
export function signOut(): void {
  try {
    sessionStorage.clear();
    localStorage.clear();
  } catch {
    // Storage is blocked: there is nothing in it.
  }
  location.replace("/console/");
}

/**
 * takeSignInLink signs in by an address such as /console/#project=pr_1&key=rk_1 and takes the fragment out of the address
 * and the history. It does nothing for other addresses.
 */
export function takeSignInLink(): void {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const key = fragment.get("key");
  if (key === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  const project = fragment.get("project") ?? here.peek().project;
  if (!project || !key) return;
  signIn(project, key);
  if (here.peek().project !== project) go(address(project, "overview"), { replace: true });
}
