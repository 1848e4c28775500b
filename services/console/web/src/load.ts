// The one place that reads for the pages. What a page has read stays in memory: a page that is opened again shows it at once,
// and reads it again meanwhile. Parts of a page that read the same share one request.
import { effect, type Signal, signal } from "@preact/signals";
import { APIError, type Client } from "@lectern/client";
import { useEffect, useRef } from "preact/hooks";
import { connect, type Waiting } from "./api.ts";
import { online, visible } from "./browser.ts";
import { errorOf } from "./errors.ts";
import { session } from "./session.ts";

/** Load is the state of something that a page reads. */
export interface Load<T> {
  state: "loading" | "done" | "failed";
  /** The result. While other inputs are read, that of the inputs before. After a failed reading, that of the reading before. */
  value: T | undefined;
  /** Whether the value belongs to earlier inputs. A page must show it as such. */
  stale: boolean;
  error: Error | undefined;
  /** Set while the client waits before it tries again. */
  waiting: Waiting | undefined;
  /** Reads once more, after what is being read. The value stays meanwhile. */
  reload: () => void;
}

/** Reading has the client and the signal of a load. */
export interface Reading {
  client: Client;
  signal: AbortSignal;
  /** The cursor after the newest page that was read, or undefined after the last page. */
  next: () => string | undefined;
}

type Read<T> = (reading: Reading) => Promise<T>;
type State<T> = Pick<Load<T>, "state" | "value" | "error" | "waiting"> & { at: number };

/** late is set while the page shows what the client cannot read again for now: since when the oldest part is shown, and the wait. */
export const late = signal<{ at: number; waiting: Waiting } | undefined>(undefined);

function tellLate(): void {
  late.value = undefined;
  for (const { users, state } of queries.values()) {
    const { value, waiting, at } = state.peek();
    if (users > 0 && waiting && value !== undefined && !(late.peek() && late.peek()!.at < at)) late.value = { at, waiting };
  }
}

/** Query is one thing that pages read, with the parts of the page that show it. */
class Query<T> {
  readonly state: Signal<State<T>> = signal({ state: "loading", value: undefined, at: 0, error: undefined, waiting: undefined });
  /** The addresses of the newest reading. */
  readonly asked: Signal<readonly string[]> = signal([]);
  read: Read<T> | undefined;
  users = 0;
  #running: AbortController | undefined;
  #again = false;

  /** use reads the query, unless another part of the page shows it already. The function that it returns ends the use. */
  use(): () => void {
    if (this.users++ === 0) this.#start();
    return () => {
      if (--this.users > 0) return;
      this.#running?.abort();
      this.#running = undefined;
      tellLate();
    };
  }

  /** wake tries again at once if the last attempt failed. */
  readonly wake = (): void => {
    if (this.users === 0 || !(this.state.peek().waiting ?? this.state.peek().error)) return;
    this.#running?.abort();
    this.#start();
  };

  readonly reload = (): void => {
    if (this.#running) this.#again = true;
    else if (this.users > 0) this.#start();
  };

  #start(): void {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running = controller;
    this.#again = false;
    const update = (change: Partial<State<T>>) => {
      if (signal.aborted) return;
      this.state.value = { ...this.state.peek(), ...change };
      tellLate();
    };
    const end = (change: Partial<State<T>>) => {
      if (signal.aborted) return;
      update({ ...change, waiting: undefined });
      this.asked.value = asked;
      this.#running = undefined;
      if (this.#again) this.#start();
    };
    update({ state: "loading", error: undefined, waiting: undefined });
    let next: string | undefined;
    const asked: string[] = [];
    const client = connect({
      attempts: Infinity,
      onRetry: (waiting) => update({ waiting }),
      onAnswer: ({ headers }, url) => {
        next = headers.get("X-Next-Cursor") ?? undefined;
        if (!asked.includes(url)) asked.push(url);
      },
    });
    // An identifier that cannot be part of a path throws at once.
    const start = async () => this.read?.({ client, signal, next: () => next }) as Promise<T>;
    start().then(
      (value) => end({ state: "done", value, at: Date.now(), error: undefined }),
      (error: unknown) => end({ state: "failed", error: errorOf(error), ...(isRefusal(error) && { value: undefined }) }),
    );
  }
}

/** isRefusal reports whether the server says that the visitor may not see the value, or that there is none. */
const isRefusal = (error: unknown): boolean => error instanceof APIError && [401, 403, 404].includes(error.status);

/** How many queries stay in memory beside those that the page shows. */
const most = 60;
const queries = new Map<string, Query<unknown>>();
// Another key may see other data.
effect(() => void (session.value, queries.clear()));

/** wake tries again at once when the network or the tab is back. */
function wake(): void {
  if (online.value && visible.value) for (const query of queries.values()) query.wake();
}
online.subscribe(wake);
visible.subscribe(wake);

function find<T>(key: string): Query<T> {
  const query = (queries.get(key) ?? new Query()) as Query<T>;
  queries.delete(key); // so that the order is of the last use
  queries.set(key, query as Query<unknown>);
  for (const [old, { users }] of queries) {
    if (queries.size <= most) break;
    if (users === 0 && old !== key) queries.delete(old);
  }
  return query;
}

/**
 * useLoad runs read, and again whenever an input changes. The inputs begin with the name of what is read: parts of the page with
 * the same inputs share the result. It reads nothing until ready.
 */
export function useLoad<T>(read: Read<T>, inputs: readonly [name: string, ...unknown[]], ready = true): Load<T> {
  const key = JSON.stringify(inputs);
  const query = find<T>(key);
  query.read = read;
  useEffect(() => (ready ? query.use() : undefined), [query, ready]);
  const { state, value, error, waiting } = query.state.value;
  const shown = useRef<T | undefined>(undefined);
  const stale = state === "loading" && value === undefined && shown.current !== undefined;
  if (!stale) shown.current = value;
  return { state, value: shown.current, error, waiting, stale, reload: query.reload };
}

/** What every page reads beside its own data. */
const aside = /^\["(project|span)"/;

/** asked returns the addresses that the shown page was read from. */
export function asked(): string[] {
  const shown = [...queries].filter(([key, { users }]) => users > 0 && !aside.test(key));
  return [...new Set(shown.flatMap(([, query]) => query.asked.value))];
}
