// Asks the API: with the session's key or token, on this origin.
import { signal } from "@preact/signals";
import { Client } from "@lectern/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./browser.ts";
import { errorOf } from "./errors.ts";
import { parseJSON } from "./numbers.ts";
import { session } from "./session.ts";
import { checkRefusal, token } from "./tokens.ts";

/** limited has the headers of the newest answer that says the rate of the key, or null. */
export const limited = signal<Headers | null>(null);

/** Why and until when a request waits before it is sent again. */
export interface Waiting {
  error: Error;
  until: number;
}

interface Options {
  /** Default: the session's key. */
  apiKey?: string | undefined;
  attempts?: number;
  onRetry?: (waiting: Waiting) => void;
  /** Gets each answer, with the address that it is from. */
  onAnswer?: (answer: Response, url: string) => void;
}

/** connect returns a client of this origin. */
export function connect({ apiKey = session.peek()?.key, attempts = 6, onRetry, onAnswer }: Options = {}): Client {
  return new Client({
    baseURL: location.origin,
    parse: parseJSON,
    ...(apiKey ? { apiKey } : session.peek()?.tokens && { token }),
    fetch: async (input, init) => {
      const answer = await remembered(String(input), init);
      const sent = new Headers(init?.headers).get("Authorization")?.slice("Bearer ".length);
      if (sent && answer.status === 401) await checkRefusal(sent);
      onAnswer?.(answer, String(input));
      return answer;
    },
    retry: { attempts, longestMs: 60_000, onRetry: (error, ms) => onRetry?.({ error, until: Date.now() + ms }) },
  });
}

/** How many answers are remembered, and how long one is at most, in characters. */
const mostAnswers = 100;
const longestAnswer = 500_000;
const answers = new Map<string, { etag: string; body: string; headers: Headers }>();

/** remembered fetches an address, and sends the ETag of the answer before. If nothing has changed, the server answers 304 without a body, and the answer before counts. */
async function remembered(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const name = [url, headers.get("X-Api-Key"), headers.get("Authorization"), headers.get("Accept")].join(" ");
  const before = init.method === "GET" ? answers.get(name) : undefined;
  if (before) headers.set("If-None-Match", before.etag);
  const answer = await fetch(url, { ...init, headers });
  if (answer.headers.has("RateLimit")) limited.value = answer.headers;
  if (before && answer.status === 304) return new Response(before.body, { headers: before.headers });
  const etag = answer.headers.get("ETag");
  if (answer.ok && etag && init.method === "GET") {
    const keep = (body: string) => {
      answers.delete(name);
      if (body.length <= longestAnswer) answers.set(name, { etag, body, headers: answer.headers });
      for (const [oldest] of answers) if (answers.size > mostAnswers) answers.delete(oldest);
    };
    answer.clone().text().then(keep, () => {}); // the caller learns that the answer broke off
  }
  return answer;
}

/** Live is the state of the change feed. An error has ended it. */
export type Live = "connecting" | "live" | "broken" | Error;

/**
 * useNews calls news after changes of the project, at most every two seconds, for as long as the page is shown. In a tab that is not
 * seen it pauses. It also calls news once it follows, for what was read before: not if the caller waits to read until ready.
 */
export function useNews(project: string, news: () => void, waits = false): { live: Live; ready: boolean } {
  const [live, setLive] = useState<Live>("connecting");
  const isVisible = visible.value;
  const latest = useRef(news);
  latest.current = news;
  const ready = useRef(false);
  ready.current ||= !isVisible || live !== "connecting";
  useEffect(() => {
    if (!isVisible) return setLive("connecting");
    const controller = new AbortController();
    const { signal } = controller;
    const client = connect({ onRetry: () => signal.aborted || setLive("broken"), attempts: Infinity });
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
      if (!waits || ready.current) tell();
      setLive("live");
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
  }, [project, isVisible]);
  return { live, ready: ready.current };
}
