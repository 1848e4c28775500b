import { APIError, ConnectionError, HistoryLostError, IncompleteError } from "./errors.js";
import type { ErrorCode } from "./types.js";

/** ClientOptions configures a client. */
export interface ClientOptions {
  /** baseURL is an absolute http or https URL, which may have a path. */
  baseURL: string;
  /**
   * apiKey is sent as X-Api-Key. A function is called before each request, and again after a 401: if its key has changed,
   * the request is repeated once. So a key may be rotated. An error of the function is retried like a lost connection.
   * White space around the key is dropped. A key that cannot be sent is a TypeError, which is not retried.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /**
   * token is sent as Authorization: Bearer, in place of an API key. It is a JWT of an issuer that the deployment trusts. A
   * function is called as that of apiKey is. Both options are a TypeError.
   */
  token?: string | (() => string | Promise<string>) | undefined;
  /** fetch sends the requests. Default: the global fetch. */
  fetch?: typeof fetch | undefined;
  /** retry bounds the number of attempts of a request and the waits between them. */
  retry?: Partial<Retry> | undefined;
  /** parse reads the JSON of an answer or of a record. Default: JSON.parse, which rounds numbers of more than 15 digits. */
  parse?: ((text: string) => unknown) | undefined;
}

/** Retry bounds the number of attempts of a request and the waits between them. */
export interface Retry {
  /** attempts bounds the number of attempts, including the first. Default: 8. It may be Infinity. */
  attempts: number;
  /**
   * baseMs is the wait before the second attempt in milliseconds, if the server asks for none. Default: 200. It doubles
   * with each further attempt up to longestMs. The real wait is random, between half of that and all of it.
   */
  baseMs: number;
  /** longestMs bounds one wait in milliseconds. Default: 120,000. If the server asks for a longer one, the request fails at once. */
  longestMs: number;
  /** onRetry is called before each wait with the error and the length of the wait. */
  onRetry?: ((error: Error, waitMs: number) => void) | undefined;
}

/** RequestOptions are the options of one call. */
export interface RequestOptions {
  /** signal aborts the call, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

const longestErrorBody = 64 << 10;
// In browsers and Node, a longer timer fires at once.
const longestTimerMs = 2 ** 31 - 1;

/** Transport sends requests to one deployment. */
export class Transport {
  readonly #base: string;
  readonly #kind: "apiKey" | "token";
  readonly #given: () => string | Promise<string>;
  readonly #fetch: typeof fetch;
  readonly #retry: Retry;

  constructor(options: ClientOptions) {
    this.#base = checkBase(options.baseURL);
    if (options.apiKey !== undefined && options.token !== undefined) throw new TypeError("apiKey and token: want one of them");
    this.#kind = options.token === undefined ? "apiKey" : "token";
    const given = options[this.#kind] ?? "";
    this.#given = typeof given === "function" ? given : () => given;
    if (typeof given !== "function") checkKey(this.#kind, given);
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#retry = { attempts: 8, baseMs: 200, longestMs: 120_000, ...options.retry };
  }

  /**
   * send sends a request, and repeats it only after a 401 with a key that has changed. It returns a successful answer, and
   * throws an error for any other.
   */
  async send(target: string, accept: string, signal: AbortSignal | undefined, method = "GET"): Promise<Response> {
    const key = await this.#key();
    try {
      return await this.#once(key, target, accept, signal, method);
    } catch (error) {
      if (!(error instanceof APIError) || error.status !== 401) throw error;
      const now = await this.#key();
      if (now === key) throw error;
      return this.#once(now, target, accept, signal, method);
    }
  }

  async #key(): Promise<string> {
    let key: string;
    try {
      key = await this.#given();
    } catch (cause) {
      if (isSteering(cause)) throw cause;
      // The next attempt may get a key.
      throw new ConnectionError(`no ${this.#kind === "token" ? "token" : "API key"}: ${messageOf(cause)}`, { cause });
    }
    return checkKey(this.#kind, key);
  }

  async #once(key: string, target: string, accept: string, signal: AbortSignal | undefined, method: string): Promise<Response> {
    const headers: Record<string, string> = { Accept: accept };
    if (key !== "") Object.assign(headers, this.#kind === "token" ? { Authorization: `Bearer ${key}` } : { "X-Api-Key": key });
    const send = this.#fetch;
    let response: Response;
    try {
      response = await send(this.#base + target, {
        method,
        headers,
        signal: signal ?? null,
        // A redirect would send the key to another host.
        redirect: "manual",
        ...(inBrowser && ({ credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" } as const)),
      });
    } catch (cause) {
      if (!isNetworkFault(cause)) throw cause;
      throw new ConnectionError(redact(key, `no answer: ${messageOf((cause as Fault).cause ?? cause)}`), { cause });
    }
    if (!response.ok) throw await refusal(response, key);
    const type = response.headers.get("Content-Type") ?? "";
    if (type.split(";")[0]?.trim().toLowerCase() !== accept) {
      await response.body?.cancel();
      throw new Error(`the server answered ${type || "no Content-Type"} instead of ${accept}: is baseURL the API's?`);
    }
    return response;
  }

  /**
   * retries returns a function to call with each error of a request. The function waits until the next attempt. It throws
   * the error if there is no further attempt, or the signal's reason if the signal aborts.
   */
  retries(signal: AbortSignal | undefined): (error: unknown) => Promise<void> {
    let attempt = 0;
    return async (error) => {
      signal?.throwIfAborted();
      attempt++;
      const wait = this.#wait(error, attempt);
      if (wait === undefined) throw error;
      this.#retry.onRetry?.(error as Error, wait);
      await sleep(wait, signal);
    };
  }

  /** #wait returns the wait before the next attempt in milliseconds, undefined if there is no further attempt. */
  #wait(error: unknown, attempt: number): number | undefined {
    const { attempts, baseMs, longestMs } = this.#retry;
    if (attempt >= attempts) return undefined;
    const backoff = Math.min(baseMs * 2 ** (attempt - 1), longestMs);
    if (error instanceof APIError) {
      if (![429, 502, 503, 504].includes(error.status)) return undefined;
      const asked = error.retryAfterMs ?? 0;
      if (asked > longestMs) return undefined;
      // Clients that failed at the same time must not retry at the same time.
      if (asked > 0) return asked + Math.random() * Math.min(backoff, asked);
    } else if (error instanceof ConnectionError) {
      if (isLasting(error)) return undefined;
    } else if (!(error instanceof IncompleteError)) {
      return undefined;
    }
    return (backoff * (1 + Math.random())) / 2;
  }
}

/** refusal returns the error of an unsuccessful answer to a request with key. */
async function refusal(response: Response, key: string): Promise<APIError> {
  const requestId = response.headers.get("X-Request-Id") ?? "";
  const retryAfterMs = retryAfter(response.headers.get("Retry-After"));
  const { status } = response;
  const text = redact(key, await readStart(response));
  try {
    const { error, ...context } = JSON.parse(text) as { error: { code: ErrorCode; message: string } };
    if (typeof error.code === "string" && typeof error.message === "string") {
      const details = { status, code: error.code, requestId, retryAfterMs, context };
      const { after } = context as Record<string, unknown>;
      if (error.code === "history_lost" && typeof after === "number") return new HistoryLostError(error.message, details, after);
      return new APIError(error.message, details);
    }
  } catch {
    // The body is not from the API, so the status is all there is to report.
  }
  let message = `the server answered ${`${status} ${response.statusText}`.trim()}`;
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) {
    const where = response.headers.get("Location");
    message = `the server answered a redirect${where ? ` to ${where}` : ""}, which is not followed`;
  }
  return new APIError(redact(key, message), { status, requestId, retryAfterMs });
}

/** redact removes the key from a text of another program. */
function redact(key: string, text: string): string {
  return key === "" ? text : text.replaceAll(key, "[redacted]");
}

/** checkKey returns the key or token of an option without white space around it. The error of the Headers constructor would quote it. */
function checkKey(option: string, key: unknown): string {
  const trimmed = typeof key === "string" ? key.trim() : "\n";
  if (!/^[\x21-\x7e]*$/.test(trimmed)) throw new TypeError(`${option}: want a string of printable ASCII without spaces`);
  return trimmed;
}

/** sleep waits for ms milliseconds. It throws the signal's reason if the signal aborts. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, Math.min(ms, longestTimerMs));
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** retryAfter parses the value of Retry-After (RFC 9110, section 10.2.3), seconds or a date, and returns milliseconds. */
export function retryAfter(header: string | null): number | undefined {
  if (header === null || header.trim() === "") return undefined;
  const ms = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}

/** checkBase returns the base without a slash at its end. */
function checkBase(baseURL: string): string {
  let url: URL;
  try {
    url = new URL(baseURL);
  } catch {
    throw new TypeError(`baseURL "${baseURL}": want http://HOST or https://HOST`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`baseURL "${baseURL}": want http://HOST or https://HOST`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError(`baseURL of host "${url.host}": want neither user, query nor fragment`);
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

/** isSteering reports whether a framework steers by an error: React's and Next.js' have a digest, and others throw what is no error. */
const isSteering = (error: unknown): boolean => typeof (error as Fault | undefined)?.digest === "string" || (error as Fault | undefined)?.message === undefined;

/** isLasting reports whether another attempt would fail too: the name is unknown, or the certificate is invalid. Only Node tells. */
function isLasting(error: ConnectionError): boolean {
  const code = codeOf((error.cause as Fault | undefined)?.cause);
  return code === "ENOTFOUND" || /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_INVALID_URL/.test(code);
}

/**
 * Whether this is a page or a worker of a browser, which have an address. Elsewhere fetch may refuse the options of browsers, as that of
 * Cloudflare's older Workers, or mean a cache of the server by them.
 */
const inBrowser = "location" in globalThis;

/** Fault is what an error may have. An error of fetch can be of another realm, as in Jest, where it is no instance of this realm's Error. */
interface Fault {
  name?: unknown;
  message?: unknown;
  code?: unknown;
  cause?: unknown;
  digest?: unknown;
  retryable?: unknown;
}

const messageOf = (error: unknown): string => String((error as Fault | undefined)?.message || codeOf(error) || error);

/**
 * isNetworkFault reports whether fetch failed because of the network: with a TypeError (Fetch Standard), an error of the DOM, a code of
 * Node, or an error that Cloudflare's Workers mark as retryable. Frameworks throw other errors from fetch, by which they steer, such as
 * DynamicServerError of Next.js.
 */
function isNetworkFault(error: unknown): boolean {
  return /^(TypeError|TimeoutError|NetworkError|FetchError)$/.test(String((error as Fault | undefined)?.name)) || codeOf(error) !== "" || (error as Fault | undefined)?.retryable === true;
}

/** codeOf returns Node's code of a network error. */
function codeOf(error: unknown): string {
  const code = (error as Fault | undefined)?.code;
  return typeof code === "string" ? code : "";
}

/** readStart returns the beginning of a body as text. If the body breaks off, it returns the part that arrived. */
async function readStart(response: Response): Promise<string> {
  if (!response.body) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < longestErrorBody) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    // The answer is an error already, so its broken body is not reported.
  }
  reader.cancel().catch(() => {});
  return text;
}
