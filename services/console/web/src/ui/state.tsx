// The states that every page has in addition to its content: loading, slow, waiting for the server, empty, offline, and failed.
import { APIError, ConnectionError, IncompleteError } from "@lectern/client";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Waiting } from "../api.ts";
import { online } from "../browser.ts";
import type { Load } from "../load.ts";
import { session, signOut } from "../session.ts";
import { clock, count } from "../time.ts";
import { SignInError } from "../errors.ts";
import { claims, groupsCut } from "../oidc.ts";
import { CopyButton } from "./parts.tsx";

/** useNow returns the current time, and renders again every ms milliseconds. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

/** How long a request may take before the page says that it is slow, in milliseconds. */
const slowAfter = 3000;

/** Loading says that something is on its way, and after some seconds that it is slow. */
export function Loading({ what, rows = 0 }: { what: string; rows?: number }) {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), slowAfter);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="loading" role="status" data-state={slow ? "slow" : "loading"}>
      <p class="muted">
        <span class="spinner" aria-hidden="true" /> {slow ? `Still loading ${what}. The server takes longer than usual.` : `Loading ${what}…`}
      </p>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} class="skeleton" aria-hidden="true" />
      ))}
    </div>
  );
}

/** Empty tells the visitor that there is no data, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice" data-state="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface Said {
  state: string;
  title: string;
  advice: string;
}

/** What a visitor reads about answers of the API, by their status. The state is the status, unless it is here. */
const refusals: Record<number, Omit<Said, "state"> & Partial<Said>> = {
  401: { title: "The API key is not accepted", advice: "It may be mistyped, expired, revoked, or belong to another project. Sign in with another key." },
  403: { title: "The API key may not read this", advice: "The key lacks a scope. Ask an operator for a key that has it." },
  404: { title: "This does not exist", advice: "It may have been removed, or the address may be mistyped." },
  422: { state: "slow", title: "This takes too long to count or to search", advice: "Choose a shorter period, or one embeddable." },
  429: { title: "Too many requests", advice: "The key has used up its rate. Wait a moment, then try again." },
  503: { title: "Lectern is not available", advice: "The server cannot reach its data at the moment. Try again soon." },
};
const failure = { title: "The server failed", advice: "Try again. If it fails again, give the request id to an operator." };

function explain(error: Error): Said {
  if (!online.value) return { state: "offline", title: "You are offline", advice: "The page continues when the network is back." };
  const cause = error instanceof ConnectionError ? error.cause : error;
  if (cause instanceof SignInError) return { state: "sign-in", title: cause.title, advice: cause.refused ? "Sign in again." : "Try again. If it fails again, tell the administrator of Lectern." };
  if (error instanceof APIError) {
    const state = String(error.status);
    if (session.peek()?.tokens && [401, 403].includes(error.status)) return { state, title: "You may not read this", advice: "Give these two lines to the administrator of Lectern:" };
    return { state, ...(refusals[error.status] ?? (error.status >= 500 ? failure : { title: "The server refused the request", advice: "" })) };
  }
  if (error instanceof IncompleteError) return { state: "incomplete", title: "The answer was cut off", advice: "What is shown is not everything. Try again." };
  if (error instanceof ConnectionError) return { state: "unreachable", title: "The server cannot be reached", advice: "Check the connection, then try again." };
  return { state: "failed", title: "The page failed", advice: "Load it again. If it fails again, report the message below." };
}

/** Problem tells the visitor what failed and what to do. Without retry it has no buttons. */
export function Problem({ error, retry }: { error: Error; retry?: () => void }) {
  const said = explain(error);
  const isOnline = online.value;
  useEffect(() => (isOnline ? undefined : online.subscribe((again) => void (again && retry?.()))), [isOnline, retry]);
  if (!isOnline && retry) return <Offline state="offline" />;
  return (
    <div class="notice problem" role="alert" data-state={said.state}>
      <h2>{said.title}</h2>
      <p>{said.advice}</p>
      {said.title === "You may not read this" && <Identity />}
      {isOnline && <p class="muted small wrap">{error.message}</p>}
      {error instanceof APIError && error.requestId && (
        <p class="muted small">
          Request id <code>{error.requestId}</code>
        </p>
      )}
      {retry && (
        <p class="actions">
          {said.state === "401" && <button type="button" onClick={signOut}>{session.peek()?.tokens ? "Sign out" : "Sign in with another key"}</button>}
          <button type="button" class={said.state === "401" || said.state === "404" ? "quiet" : ""} onClick={retry}>Try again</button>
        </p>
      )}
    </div>
  );
}

/** Identity shows who the visitor is for the provider, and whether the provider left out the visitor's groups. */
export function Identity() {
  const visitor = claims(session.value?.tokens?.token ?? "") ?? {};
  const lines = `issuer: ${visitor.iss}\nsubject: ${visitor.sub}`;
  return (
    <>
      {groupsCut(visitor) && (
        <p data-groups="cut">
          You are in so many groups that your provider left them all out of your token. So no right of a group counts. Ask the provider's
          administrator to send only the groups that are assigned to Lectern, or to use app roles.
        </p>
      )}
      <pre class="raw code" data-identity>{lines}</pre>
      <CopyButton text={() => lines} />
    </>
  );
}

/** Offline stands where something cannot be read. The frame of the page says once that there is no network. */
const Offline = ({ state }: { state: string }) => <p class="muted small" data-state={state}>Waits for the network.</p>;

/** Patience says that the client waits before it tries again, and why. asOf is when the page read what it shows meanwhile. */
export function Patience({ waiting, asOf }: { waiting: Waiting; asOf?: number }) {
  const now = useNow(500);
  const said = explain(waiting.error);
  if (!online.value) return <Offline state="waiting-offline" />;
  const seconds = Math.max(0, Math.ceil((waiting.until - now) / 1000));
  return (
    <p class="banner" role="status" data-state={`waiting-${said.state}`}>
      <strong>{said.title}.</strong> {asOf !== undefined && `The page shows what it read at ${clock(asOf)}. `}
      {seconds > 0 ? `Trying again in ${count(seconds)}\u00a0s.` : "Trying again…"}
      {asOf === undefined && <span class="muted small wrap"> {waiting.error.message}</span>}
    </p>
  );
}

/** Reversed says that a period ends before it begins. */
export function Reversed() {
  return (
    <Empty title="The period ends before it begins">
      <p>Choose a first day that is not after the last day.</p>
    </Empty>
  );
}

/** Loaded shows what a load has, or the state that it is in. The value of earlier inputs is dimmed until the new one is there. */
export function Loaded<T>({ load, what, rows, children }: { load: Load<T>; what: string; rows?: number; children: (value: T) => ComponentChildren }) {
  const has = load.state === "done" || load.value !== undefined;
  return (
    <div class="page" data-stale={load.stale || undefined} aria-busy={load.stale}>
      {load.waiting && (load.stale || !has) && <Patience waiting={load.waiting} />}
      {load.state === "failed" && load.error && <Problem error={load.error} retry={load.reload} />}
      {load.stale && (
        <p class="hidden" role="status">
          Loading {what}…
        </p>
      )}
      {has ? children(load.value as T) : load.state === "loading" && <Loading what={what} {...(rows !== undefined && { rows })} />}
    </div>
  );
}
