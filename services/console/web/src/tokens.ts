// Sign-in with an OpenID provider, and the tokens of this tab. provider.ts talks to the provider. The browser loads provider.ts
// when there is something to say.
import { signal } from "@preact/signals";
import { errorOf, SignInError } from "./errors.ts";
import { type Pending, settings, type Tokens } from "./oidc.ts";
import { after, wait } from "./renewal.ts";
import { go } from "./router.ts";
import { saveSession, session } from "./session.ts";

/** signing is the state of a sign-in: under way, under way without a question to the visitor, failed, or null. */
export const signing = signal<"busy" | "silent" | Error | null>(null);

const item = "lectern.pending";

/** attempt runs a part of a sign-in, and shows its failure. After a silent one, the page offers the usual sign-in. */
async function attempt(silent: boolean, part: (provider: typeof import("./provider.ts")) => Promise<void>): Promise<void> {
  signing.value = silent ? "silent" : "busy";
  try {
    await part(await import("./provider.ts"));
    signing.value = null;
  } catch (error) {
    signing.value = silent ? null : errorOf(error);
  }
}

/** beginSignIn leads to the provider, which leads back to the current address. */
export const beginSignIn = (): Promise<void> => begin(false);

// Whether the page began with the provider's answer.
let isAnswer = false;

/**
 * trySignIn is beginSignIn for a visitor whom the provider knows: the provider asks the visitor nothing. trySignIn does nothing if
 * the page began with the provider's answer.
 */
export function trySignIn(): void {
  if (settings && !isAnswer && signing.peek() === null) void begin(true);
}

const begin = (silent: boolean): Promise<void> =>
  attempt(silent, async (provider) => {
    const { to, pending } = await provider.begin(silent);
    try {
      sessionStorage.setItem(item, JSON.stringify(pending));
    } catch (error) {
      throw new SignInError("The browser blocks storage", `The sign-in needs it until the provider has answered. ${String(error)}`);
    }
    if (!silent) return location.assign(to);
    location.replace(to);
    await new Promise(() => {}); // the page does not offer a sign-in meanwhile
  });

/** takeAnswer takes the provider's answer out of the address and the history, and signs in by it. It does nothing for other addresses. */
export function takeAnswer(): void {
  const answer = new URL(location.href);
  if (!settings || answer.pathname !== "/console/" || !answer.searchParams.has("state")) return;
  isAnswer = true;
  let pending: Pending | null = null;
  try {
    pending = JSON.parse(sessionStorage.getItem(item) ?? "null") as Pending | null;
    sessionStorage.removeItem(item);
  } catch {
    // Storage is blocked: no sign-in can have begun here.
  }
  go(pending?.to ?? "/console/", { replace: true });
  void attempt(pending?.silent ?? false, async ({ finish }) => {
    if (!pending) throw new SignInError("This sign-in began in another tab", "Sign in again.");
    const sent = Date.now();
    const { token, end, ...given } = await finish(answer, pending);
    saveSession({ project: "", key: "", tokens: { token, end, ...after({ renewAt: 0, until: 0 }, sent, given) }, tab: crypto.randomUUID() });
  });
}

let renewing: Promise<void> | undefined;
let refused = "";
// The token that a 401 does not renew: the list of projects accepts the token, or the token has replaced one that Lectern
// refused before that expired.
let settled = "";
let checking: Promise<void> | undefined;

/**
 * checkRefusal finds out why Lectern answered 401 to a token. A token that Lectern does not accept and a token without a right
 * in the project get the same answer. For the list of projects, the first token gets 401, and the second one 200.
 */
export async function checkRefusal(sent: string): Promise<void> {
  if (sent !== settled && sent !== refused) await (checking ??= check(sent).finally(() => (checking = undefined)));
}

async function check(sent: string): Promise<void> {
  const { status } = await fetch("/me/projects?limit=1", { headers: { Authorization: `Bearer ${sent}` }, credentials: "omit", cache: "no-store" }).catch(() => ({ status: 0 }));
  if (status === 401) refused = sent;
  if (status === 200) settled = sent;
}

/** token returns the token of this tab. It first renews a token if that is due, or if Lectern refused the token. */
export async function token(): Promise<string> {
  const tokens = session.peek()?.tokens;
  if (!tokens) throw new SignInError("Your sign-in has ended", "This tab has no token.", true);
  if ((tokens.refresh && tokens.token === refused) || wait(tokens, Date.now()) === 0) {
    await (renewing ??= renew(tokens).finally(() => (renewing = undefined)));
  }
  return tokens.token;
}

async function renew(tokens: Tokens): Promise<void> {
  const sent = Date.now();
  try {
    const { renewed } = await import("./provider.ts");
    const { token, end, life } = await renewed(tokens, (refresh) => {
      tokens.refresh = refresh;
      saveSession();
    });
    if (tokens.token === refused && sent < tokens.until) settled = token;
    Object.assign(tokens, { token, end }, after(tokens, sent, { life }));
    saveSession();
  } catch (thrown) {
    const error = errorOf(thrown);
    const isRefused = error instanceof SignInError && error.refused;
    Object.assign(tokens, after(tokens, sent, { refused: isRefused }));
    saveSession();
    if (tokens.token !== refused && Date.now() < tokens.until) return;
    if (isRefused) {
      signing.value = error;
      saveSession(null);
    }
    throw error;
  }
}
