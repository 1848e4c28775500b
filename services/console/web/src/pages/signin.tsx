import { APIError } from "@lectern/client";
import { useState } from "preact/hooks";
import { connect } from "../api.ts";
import { errorOf } from "../errors.ts";
import { address, go, here } from "../router.ts";
import { saveSession, session, signOut } from "../session.ts";
import { settings } from "../oidc.ts";
import { beginSignIn, signing } from "../tokens.ts";
import { Problem } from "../ui/state.tsx";

/** SignIn asks for a project and a key, and tries them before it lets the visitor in. */
export function SignIn({ project }: { project: string }) {
  const other = session.value;
  const [fields, setFields] = useState({ project, key: "" });
  const [state, setState] = useState<{ busy: boolean; error?: Error }>({ busy: false });

  const submit = async (event: Event) => {
    event.preventDefault();
    setState({ busy: true });
    const [to, key] = [fields.project.trim(), fields.key.trim()];
    try {
      const client = connect({ apiKey: key, attempts: 2 });
      // The scopes of the key do not matter here: with 403, the key itself is good.
      for await (const _ of client.embeddables(to, { limit: 1 })) break;
    } catch (error) {
      if (!(error instanceof APIError && error.status === 403)) {
        setState({ busy: false, error: errorOf(error) });
        return;
      }
    }
    saveSession({ project: to, key });
    if (here.peek().project !== to) go(address(to, "overview"), { replace: true });
  };

  return (
    <main class="signin" tabIndex={-1}>
      <form onSubmit={submit} autocomplete="off">
        <h1>
          <span class="logo" aria-hidden="true" /> Lectern
        </h1>
        {other && project ? (
          <p>
            You are signed in to <bdi>{other.project}</bdi>. To look at <bdi>{project}</bdi>, sign in with one of its keys.
          </p>
        ) : (
          <p class="muted">See what visitors answered, and where they left.{!settings && " An operator gives you the id of your project and a key for it."}</p>
        )}
        {settings && (
          <>
            <button type="button" disabled={signing.value === "busy"} onClick={beginSignIn}>
              {signing.value === "busy" ? "Signing in…" : `Sign in with ${new URL(settings.issuer).host}`}
            </button>
            {signing.value instanceof Error && <Problem error={signing.value} />}
            <p class="muted small">Or with the id of a project and a key for it, which an operator gives you:</p>
          </>
        )}
        <label>
          Project id
          <input name="project" required value={fields.project} spellcheck={false} autocapitalize="off" onInput={(e) => setFields({ ...fields, project: e.currentTarget.value })} />
        </label>
        <label>
          API key
          <input name="key" type="password" required value={fields.key} autocomplete="off" onInput={(e) => setFields({ ...fields, key: e.currentTarget.value })} />
        </label>
        <button type="submit" class={settings ? "quiet" : ""} disabled={state.busy}>
          {state.busy ? "Checking the key…" : settings ? "Sign in with the key" : "Sign in"}
        </button>
        {state.error && <Problem error={state.error} />}
        <p class="muted small">The key stays in the console’s tabs of this browser until you sign out or close them. The console sends it to this server only.</p>
        {other && (
          <button type="button" class="quiet" onClick={signOut}>
            Sign out of {other.project}
          </button>
        )}
      </form>
    </main>
  );
}
