// Reads the API for the pages: with the session's key, on this origin, and with states that a page can show.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Client, type Embeddable } from "@lectern/client";
import { session } from "./session.ts";

/** The rate of the key, from the answer's headers. */
export interface Rate {
  policy: string;
  state: string;
}

/** rate holds the headers of the newest answer, or null. */
export const rate = signal<Rate | null>(null);

/** Why and until when a request waits before it is sent again. */
export interface Waiting {
  error: Error;
  until: number;
}

/** connect returns a client with the session's key, unless another is given. onAnswer gets the headers of each answer. */
export function connect(onRetry?: (waiting: Waiting) => void, attempts = 6, apiKey = session.peek()?.key, onAnswer?: (headers: Headers) => void): Client {
  return new Client({
    baseURL: location.origin,
    ...(apiKey && { apiKey }),
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      const policy = answer.headers.get("RateLimit-Policy");
      const state = answer.headers.get("RateLimit");
      if (policy && state) rate.value = { policy, state };
      onAnswer?.(answer.headers);
      return answer;
    },
    retry: { attempts, longestMs: 60_000, onRetry: (error, ms) => onRetry?.({ error, until: Date.now() + ms }) },
  });
}

/** errorOf returns what was thrown as an error. */
export const errorOf = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** Load is the state of something that a page reads. */
export interface Load<T> {
  state: "loading" | "done" | "failed";
  /** The result. While other inputs are read, that of the inputs before. */
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

/** useLoad runs read, and again whenever an input changes. It aborts a reading that is no longer wanted. */
export function useLoad<T>(read: (reading: Reading) => Promise<T>, inputs: readonly unknown[]): Load<T> {
  const key = JSON.stringify(inputs);
  const [attempt, setAttempt] = useState(0);
  const [load, setLoad] = useState<Pick<Load<T>, "state" | "value" | "error" | "waiting"> & { key: string }>({ state: "loading", value: undefined, error: undefined, waiting: undefined, key });
  const latest = useRef(read);
  latest.current = read;
  const [busy, again] = [useRef(true), useRef(false)];
  const reload = () => {
    again.current = busy.current;
    if (!busy.current) setAttempt((n) => n + 1);
  };
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    busy.current = true;
    again.current = false;
    const end = (change: Partial<typeof load>) => {
      if (signal.aborted) return;
      update(change);
      busy.current = false;
      if (again.current) reload();
    };
    const update = (change: Partial<typeof load>) => {
      if (!signal.aborted) setLoad((before) => ({ ...before, ...change }));
    };
    update({ state: "loading", error: undefined, waiting: undefined });
    let next: string | undefined;
    const client = connect((waiting) => update({ waiting }), 6, undefined, (headers) => (next = headers.get("X-Next-Cursor") ?? undefined));
    // An identifier that cannot be part of a path throws at once.
    const start = async () => latest.current({ client, signal, next: () => next });
    start().then(
      (value) => end({ state: "done", value, error: undefined, waiting: undefined, key }),
      (error: unknown) => end({ state: "failed", value: undefined, error: errorOf(error), waiting: undefined, key }),
    );
    return () => controller.abort();
  }, [key, attempt]);
  const stale = load.key !== key;
  const { state, value, error, waiting } = load;
  return { state: stale ? "loading" : state, value, error: stale ? undefined : error, waiting, stale: stale && value !== undefined, reload };
}

/** Live is the state of the change feed. An error has ended it. */
export type Live = "connecting" | "live" | "broken" | Error;

/** useVisible reports whether the visitor sees this tab. */
function useVisible(): boolean {
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  }, []);
  return visible;
}

/** useNews calls news after changes of the project, at most every two seconds, for as long as the page is shown. In a tab that is not seen it pauses. */
export function useNews(project: string, news: () => void): Live {
  const [live, setLive] = useState<Live>("connecting");
  const visible = useVisible();
  const latest = useRef(news);
  latest.current = news;
  useEffect(() => {
    if (!visible) return setLive("connecting");
    const controller = new AbortController();
    const { signal } = controller;
    const client = connect(() => signal.aborted || setLive("broken"), Infinity);
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const tell = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        last = Date.now();
        latest.current();
      }, Math.max(0, last + 2000 - Date.now()));
    };
    const follow = async () => {
      const cursor = await client.changesCursor(project, {}, { signal });
      setLive("live");
      tell(); // what changed before the cursor
      for await (const page of client.follow(project, { cursor, wait: 50 }, { signal })) {
        setLive("live");
        if (page.changes.length > 0) tell();
      }
    };
    follow().catch((error: unknown) => signal.aborted || setLive(errorOf(error)));
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [project, visible]);
  return live;
}

/** collect reads a list to its end. */
export async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of list) all.push(one);
  return all;
}

/** nameOf returns the title of an embeddable, or its id if it has none. */
export const nameOf = (embeddable: Embeddable): string => embeddable.title || embeddable.embeddable_id;

/** useEmbeddables reads the embeddables of a project. */
export function useEmbeddables(project: string): Load<Embeddable[]> {
  return useLoad(({ client, signal }) => collect(client.embeddables(project, {}, { signal })), [project]);
}

/** useNames returns a function that names an embeddable by its id. Until the titles are read, it returns the id. */
export function useNames(project: string): (id: string) => string {
  const { value } = useEmbeddables(project);
  return useMemo(() => {
    const names = new Map(value?.map((embeddable) => [embeddable.embeddable_id, nameOf(embeddable)]));
    return (id) => names.get(id) ?? id;
  }, [value]);
}
