// Sign-in with an OpenID provider, and the tokens of this tab. provider.ts talks to the provider. The browser loads provider.ts
// when there is something to say.
import { signal } from "@preact/signals";
import { errorOf, SignInError } from "./errors.ts";
import { type Pending, settings, type Tokens } from "./oidc.ts";
import { after, wait } from "./renewal.ts";
import { go } from "./router.ts";
import { endSession, saveSession, session } from "./session.ts";

/** signing is the state of a sign-in: under way, failed, or null. */
export const signing = signal<"busy" | Error | null>(null);

const item = "lectern.pending";

/** attempt runs a part of a sign-in, and shows its failure. */
async function attempt(part: (provider: typeof import("./provider.ts")) => Promise<void>): Promise<void> {
  signing.value = "busy";
  try {
    await part(await import("./provider.ts"));
    signing.value = null;
  } catch (error) {
    signing.value = errorOf(error);
  }
}

/** beginSignIn leads to the provider, which leads back to the current address. */
export const beginSignIn = (): Promise<void> =>
  attempt(async ({ begin }) => {
    const { to, pending } = await begin();
    sessionStorage.setItem(item, JSON.stringify(pending));
    location.assign(to);
  });

/** takeAnswer takes the provider's answer out of the address and the history, and signs in by it. It does nothing for other addresses. */
export function takeAnswer(): void {
  const answer = new URL(location.href);
  if (!settings || answer.pathname !== "/console/" || !answer.searchParams.has("state")) return;
  let pending: Pending | null = null;
  try {
    pending = JSON.parse(sessionStorage.getItem(item) ?? "null") as Pending | null;
    sessionStorage.removeItem(item);
  } catch {
    // Storage is blocked: no sign-in can have begun here.
  }
  go(pending?.to ?? "/console/", { replace: true });
  void attempt(async ({ finish }) => {
    if (!pending) throw new SignInError("This sign-in began in another tab", "Sign in again.");
    const sent = Date.now();
    const { token, end, ...given } = await finish(answer, pending);
    saveSession({ project: "", key: "", tokens: { token, end, ...after({ renewAt: 0, until: 0 }, sent, given) }, tab: crypto.randomUUID() });
  });
}

let renewing: Promise<void> | undefined;
let refused = "";
let renewedAt = 0;

/** answered notes what Lectern answered to a token. After a 401 the token is renewed, unless it is younger than a second: then it has no right. */
export function answered(sent: string, status: number): void {
  if (status === 401 && Date.now() > renewedAt + 1000) refused = sent;
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
    Object.assign(tokens, { token, end }, after(tokens, sent, { life }));
    renewedAt = Date.now();
    saveSession();
  } catch (thrown) {
    const error = errorOf(thrown);
    const isRefused = error instanceof SignInError && error.refused;
    Object.assign(tokens, after(tokens, sent, { refused: isRefused }));
    saveSession();
    if (tokens.token !== refused && Date.now() < tokens.until) return;
    if (isRefused) {
      signing.value = error;
      endSession();
    }
    throw error;
  }
}
