// The session: a project and an API key for it, or the tokens of a provider. It lives in a tab's session storage and in
// memory, nowhere else. A new tab of the same browser asks the open ones, so that a link can be opened in a tab of its own. A
// tab with a key answers with the key. Tokens stay in their tab: the new tab learns that the provider knows the visitor, and the
// provider gives it tokens of its own. A browser that duplicates a tab copies its storage, so the duplicate forgets the tokens:
// many providers end all sessions if two tabs renew with one refresh token.
import { signal } from "@preact/signals";
import type { Tokens } from "./oidc.ts";
import { address, go, here } from "./router.ts";

export interface Session {
  project: string;
  key: string;
  /** Set in place of project and key after a sign-in with the provider: the address says the project. */
  tokens?: Tokens;
  /** Names the tab of the tokens. A duplicate of the tab has the same name. */
  tab?: string;
}

const stored = "lectern.session";

/** sessionOf returns a session, or null if no request can be made with it: the project is part of a path, the key a header. */
function sessionOf(project: unknown, key: unknown): Session | null {
  if (typeof project !== "string" || /^\.{0,2}$/.test(project)) return null;
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) return null;
  return { project, key };
}

function read(): Session | null {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(stored) ?? "null");
    if (value && typeof value === "object" && "project" in value && "key" in value) return "tokens" in value ? (value as Session) : sessionOf(value.project, value.key);
  } catch {
    // Storage is blocked, or something else wrote to it: there is no session.
  }
  return null;
}

/** session is the current session, or null. */
export const session = signal<Session | null>(read());

/** asking reports whether this tab still waits for the session of another one. */
export const asking = signal(false);

/** How long this tab shows nothing while it waits for an answer, in milliseconds. A later answer still signs in. */
const patience = 300;

/** How long this tab heeds that it is a duplicate, in milliseconds. Meanwhile it calls no other tab one. */
const fresh = 10_000;

// Only pages of this origin hear it.
const tabs = channel();

function channel(): Pick<BroadcastChannel, "addEventListener" | "postMessage"> {
  try {
    return new BroadcastChannel(stored);
  } catch {
    return { addEventListener: () => {}, postMessage: () => {} }; // Storage is blocked: each tab is alone.
  }
}

/**
 * shareSession takes the key of another tab if this tab has no session, and gives this tab's key to tabs that ask. It forgets tokens
 * that another tab has, too. If another tab is signed in with the provider and this tab has no session, it calls known.
 */
export function shareSession(known: () => void): void {
  const asked = !session.peek();
  const tab = session.peek()?.tab;
  const began = Date.now();
  tabs.addEventListener("message", ({ data }: MessageEvent<{ wants?: string; has?: Session; known?: boolean; ends?: boolean; opens?: string; taken?: string }>) => {
    const current = session.peek();
    if (data.ends && current) forget();
    else if (data.wants !== undefined && current?.key && (data.wants === "" || data.wants === current.project)) tabs.postMessage({ has: current });
    else if (data.wants !== undefined && current?.tokens) tabs.postMessage({ known: true });
    else if (data.known && asked && !current) known();
    else if (data.has && asked && !current) {
      const { project } = here.peek();
      if (project === "" || project === data.has.project) saveSession({ project: data.has.project, key: data.has.key });
      if (project === "") go(address(data.has.project, "overview"), { replace: true });
    } else if (current?.tab && (data.opens === current.tab || data.taken === current.tab)) {
      const isFresh = tab === current.tab && Date.now() < began + fresh;
      if (data.opens && !isFresh) tabs.postMessage({ taken: current.tab });
      if (data.taken && isFresh) {
        saveSession(null);
        known();
      }
    }
  });
  if (tab) tabs.postMessage({ opens: tab });
  if (!asked) return;
  asking.value = true;
  tabs.postMessage({ wants: here.peek().project });
  setTimeout(() => (asking.value = false), patience);
}

/** saveSession stores the session, or another one in its place. With null, the tab keeps none, and the page asks for another one at the same address. */
export function saveSession(other = session.peek()): void {
  session.value = other;
  try {
    if (other) sessionStorage.setItem(stored, JSON.stringify(other));
    else sessionStorage.removeItem(stored);
  } catch {
    // Storage is blocked: the session ends when the page is closed.
  }
}

/**
 * signOut forgets the session and all preferences in all tabs, and loads the page again so that nothing stays in memory. A
 * visitor who signed in with the provider comes to the provider's sign-out first.
 */
export function signOut(): void {
  tabs.postMessage({ ends: true });
  forget(session.peek()?.tokens?.end);
}

function forget(to = "/console/"): void {
  session.value = null; // or this tab could still give it to another one
  try {
    // Other applications of this origin have items here, too.
    for (const storage of [sessionStorage, localStorage]) for (const name of Object.keys(storage)) if (name.startsWith("lectern.")) storage.removeItem(name);
  } catch {
    // Storage is blocked: there is nothing in it.
  }
  location.replace(to);
}

/**
 * takeSignInLink signs in by an address such as /console/#project=pr_1&key=rk_1 and takes the fragment out of the address
 * and the history. It does nothing for other addresses. It asks before it replaces a session: the link may be a stranger's.
 */
export function takeSignInLink(): void {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const key = fragment.get("key");
  if (key === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  const link = sessionOf(fragment.get("project") ?? here.peek().project, key);
  if (!link) return;
  const current = session.peek();
  if (current && JSON.stringify(current) !== JSON.stringify(link) && !confirm(`You are signed in${current.project && ` to ${current.project}`}. Sign in to ${link.project} with the key of this link instead?`)) return;
  saveSession(link);
  if (here.peek().project !== link.project) go(address(link.project, "overview"), { replace: true });
}

/**
 * watchSession loads the page again if the browser brings it back from memory (the back button) and the session has ended
 * or changed meanwhile.
 */
export function watchSession(): void {
  addEventListener("pageshow", (event) => {
    if (event.persisted && JSON.stringify(read()) !== JSON.stringify(session.peek())) location.reload();
  });
}
