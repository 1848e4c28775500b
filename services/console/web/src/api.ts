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

const watchedFetch: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const policy = answer.headers.get("RateLimit-Policy");
  const state = answer.headers.get("RateLimit");
  if (policy && state) rate.value = { policy, state };
  return answer;
};

/** Why and until when a request waits before it is sent again. */
export interface Waiting {
  error: Error;
  until: number;
}

/** connect returns a client with the session's key, unless another is given. */
export function connect(onRetry?: (waiting: Waiting) => void, attempts = 6, apiKey = session.peek()?.key): Client {
  return new Client({
    baseURL: location.origin,
    ...(apiKey && { apiKey }),
    fetch: watchedFetch,
    retry: { attempts, longestMs: 60_000, onRetry: (error, ms) => onRetry?.({ error, until: Date.now() + ms }) },
  });
}

/** Load is the state of something that a page reads. */
export interface Load<T> {
  state: "loading" | "done" | "failed";
  /** The result; while it loads, the part so far. */
  value: T | undefined;
  error: Error | undefined;
  /** Set while the client waits before it tries again. */
  waiting: Waiting | undefined;
  /** Reads once more. */
  reload: () => void;
}

/** Reading has the client and the signal of a load. */
export interface Reading {
  client: Client;
  signal: AbortSignal;
  /** Says that another client than this one waits. */
  wait: (waiting: Waiting) => void;
}

/**
 * useLoad runs read, which may show a partial result, and runs it again whenever one of the inputs changes. A
 * reading that is no longer wanted is aborted. Errors become the state "failed".
 */
export function useLoad<T>(read: (reading: Reading, show: (value: T) => void) => Promise<T>, inputs: readonly unknown[]): Load<T> {
  const [attempt, setAttempt] = useState(0);
  const [load, setLoad] = useState<Omit<Load<T>, "reload">>({ state: "loading", value: undefined, error: undefined, waiting: undefined });
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const update = (change: Partial<Load<T>>) => {
      if (!signal.aborted) setLoad((before) => ({ ...before, ...change }));
    };
    update({ state: "loading", value: undefined, error: undefined, waiting: undefined });
    const wait = (waiting: Waiting) => update({ waiting });
    // An identifier that cannot be part of a path throws at once.
    const start = async () => latest.current({ client: connect(wait), signal, wait }, (value) => update({ value, waiting: undefined }));
    start().then(
      (value) => update({ state: "done", value, waiting: undefined }),
      (error: unknown) => update({ state: "failed", error: error instanceof Error ? error : new Error(String(error)), waiting: undefined }),
    );
    return () => controller.abort();
  }, [...inputs, attempt]);
  return { ...load, reload: () => setAttempt((n) => n + 1) };
}

/** longPage is how many records one request asks for when a list of many thousands is read. */
export const longPage = 10_000;

/** collect reads a list to its end. */
export async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of list) all.push(one);
  return all;
}

/** paced returns a function that calls show at most once in ms milliseconds. */
export function paced(ms: number, show: () => void): () => void {
  let last = -Infinity;
  return () => {
    const now = performance.now();
    if (now - last < ms) return;
    last = now;
    show();
  };
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
