import { IncompleteError } from "./errors.js";
import { lines } from "./lines.js";
import { type ClientOptions, type RequestOptions, retryAfter, sleep, Transport } from "./transport.js";
import type {
  AnswerKeys,
  AnswerQuery,
  Answers,
  Change,
  ChangePage,
  ChangeQuery,
  CountQuery,
  Embeddable,
  EmbeddableQuery,
  EmbeddableVersion,
  EmbeddableVersionWithDefinition,
  EmbeddableWithDefinition,
  EntriesOverview,
  Entry,
  EntryCount,
  EntryEvent,
  EntryPageViews,
  EntryQuery,
  EventQuery,
  Experiment,
  ExperimentQuery,
  FollowQuery,
  Funnel,
  FunnelQuery,
  OverviewQuery,
  OwnProject,
  PageViewQuery,
  Paging,
  Project,
  StatusChange,
  VersionQuery,
} from "./types.js";

const json = "application/json";
const ndjson = "application/x-ndjson";
const defaultPageSize = 1000;
const greatestPageSize = 1_000_000;
const defaultWaitSeconds = 30;

/**
 * Client reads one deployment of the API.
 *
 * The client retries a request if the server asks for that (429, 503), a gateway fails (502, 504), or the connection
 * breaks. Retry bounds the attempts. If a page of a list breaks off, the client requests that page again. It skips the
 * records that it has already returned with the same content. So it returns an unchanged record exactly once.
 */
export class Client {
  readonly #transport: Transport;
  readonly #parse: (text: string) => unknown;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    const { parse = JSON.parse } = options;
    this.#parse = (text) => {
      try {
        return parse(text);
      } catch {
        // The message of the JavaScript engine would quote the record.
        throw new Error("the server answered a record that is not JSON");
      }
    };
  }

  /** entries reads the project's entries, the last updated first unless the query says otherwise. */
  entries(projectId: string, query: EntryQuery = {}, options: RequestOptions = {}): AsyncIterable<Entry> {
    return this.#list(path("projects", projectId, "entries"), query, options);
  }

  /** entry reads one entry. */
  entry(projectId: string, entryId: string, options: RequestOptions = {}): Promise<Entry> {
    return this.#one(path("projects", projectId, "entries", entryId), options);
  }

  /** events reads the events of an entry, the latest first unless the query says otherwise. */
  events(projectId: string, entryId: string, query: EventQuery = {}, options: RequestOptions = {}): AsyncIterable<EntryEvent> {
    return this.#list(path("projects", projectId, "entries", entryId, "events"), query, options);
  }

  /** pageViews reads the project's entries with their page views, the last updated entry first unless the query says otherwise. */
  pageViews(projectId: string, query: PageViewQuery = {}, options: RequestOptions = {}): AsyncIterable<EntryPageViews> {
    return this.#list(path("projects", projectId, "entries-page-views"), query, options);
  }

  /** entryCounts reads how many entries were created in each interval, the oldest first. */
  entryCounts(projectId: string, query: CountQuery = {}, options: RequestOptions = {}): Promise<EntryCount[]> {
    return this.#one(path("projects", projectId, "entries-counts") + search(query), options);
  }

  /** entriesOverview reads all that an overview of entries shows, at one moment. */
  entriesOverview(projectId: string, query: OverviewQuery = {}, options: RequestOptions = {}): Promise<EntriesOverview> {
    return this.#one(path("projects", projectId, "entries-overview") + search(query), options);
  }

  /** funnels reads how far the entries of an embeddable came: one funnel, or one for each version. */
  funnels(projectId: string, query: FunnelQuery, options: RequestOptions = {}): Promise<Funnel[]> {
    return this.#one(path("projects", projectId, "entries-funnel") + search(query), options);
  }

  /** answers reads the values of one key of entry_data, the most frequent first. */
  answers(projectId: string, query: Omit<AnswerQuery, "values"> & { key: string }, options: RequestOptions = {}): Promise<Answers> {
    return this.#one(path("projects", projectId, "entries-answers") + search(query), options);
  }

  /** answerKeys reads the top-level keys of entry_data, the most frequent first. With values, the first 100 have theirs. */
  answerKeys(projectId: string, query: Omit<AnswerQuery, "key">, options: RequestOptions = {}): Promise<AnswerKeys> {
    return this.#one(path("projects", projectId, "entries-answers") + search(query), options);
  }

  /**
   * changes reads the project's change feed, page by page. Apply each page, then store its nextCursor. The iteration ends
   * after the first page that is current. It returns only complete pages.
   */
  changes(projectId: string, query: ChangeQuery = {}, options: RequestOptions = {}): AsyncIterable<ChangePage> {
    return this.#changes(path("projects", projectId, "entries-changes"), query, undefined, options);
  }

  /**
   * follow reads like changes, but waits for more changes after a page that is current. It ends when the signal aborts, the
   * consumer stops, or a request fails for good. A page may be empty. With retry.attempts Infinity, no outage of the
   * server ends it.
   */
  follow(projectId: string, query: FollowQuery = {}, options: RequestOptions = {}): AsyncIterable<ChangePage> {
    const { wait = defaultWaitSeconds } = query;
    if (!(wait >= 1)) throw new RangeError(`wait ${wait}: want 1 or more`);
    return this.#changes(path("projects", projectId, "entries-changes"), query, wait, options);
  }

  /**
   * changesCursor returns the cursor after the project's newest change, without reading the changes. A reader that
   * follows the feed from there gets all later changes.
   */
  async changesCursor(projectId: string, { types = [] }: Pick<ChangeQuery, "types"> = {}, { signal }: RequestOptions = {}): Promise<string> {
    const target = path("projects", projectId, "entries-changes") + search({ types: types.join(",") || undefined, after: "now" });
    return (await this.#changePage(target, signal, "HEAD")).page.nextCursor;
  }

  /** embeddables reads the project's embeddables, by id. */
  embeddables(projectId: string, query: EmbeddableQuery = {}, options: RequestOptions = {}): AsyncIterable<Embeddable> {
    return this.#list(path("projects", projectId, "embeddables"), query, options);
  }

  /** embeddable reads one embeddable with its definition. */
  embeddable(projectId: string, embeddableId: string, options: RequestOptions = {}): Promise<EmbeddableWithDefinition> {
    return this.#one(path("projects", projectId, "embeddables", embeddableId), options);
  }

  /** versions reads the saved versions of an embeddable, the highest number first unless the query says otherwise. */
  versions(projectId: string, embeddableId: string, query: VersionQuery = {}, options: RequestOptions = {}): AsyncIterable<EmbeddableVersion> {
    return this.#list(path("projects", projectId, "embeddables", embeddableId, "versions"), query, options);
  }

  /** version reads one version of an embeddable with its definition. */
  version(projectId: string, embeddableId: string, versionNumber: number, options: RequestOptions = {}): Promise<EmbeddableVersionWithDefinition> {
    return this.#one(path("projects", projectId, "embeddables", embeddableId, "versions", String(versionNumber)), options);
  }

  /** experiments reads the project's experiments, the latest created first. */
  experiments(projectId: string, query: ExperimentQuery = {}, options: RequestOptions = {}): AsyncIterable<Experiment> {
    return this.#list(path("projects", projectId, "experiments"), query, options);
  }

  /** experiment reads one experiment. */
  experiment(projectId: string, experimentId: string, options: RequestOptions = {}): Promise<Experiment> {
    return this.#one(path("projects", projectId, "experiments", experimentId), options);
  }

  /** experimentHistory reads the changes of an experiment's status, the oldest first. */
  experimentHistory(projectId: string, experimentId: string, options: RequestOptions = {}): Promise<StatusChange[]> {
    return this.#one(path("projects", projectId, "experiments", experimentId, "history"), options);
  }

  /** projects reads all projects of the key or token, page by page, by projectId, with what it may do in each. */
  async projects(options: RequestOptions = {}): Promise<OwnProject[]> {
    const all: OwnProject[] = [];
    for (let cursor: string | undefined; ; ) {
      const { body, next } = await this.#page<OwnProject[]>("/me/projects" + (cursor ? search({ cursor }) : ""), options);
      all.push(...body);
      if (!next) return all;
      cursor = next;
    }
  }

  /** project reads the project itself. */
  project(projectId: string, options: RequestOptions = {}): Promise<Project> {
    return this.#one(path("projects", projectId), options);
  }

  async #one<T>(target: string, options: RequestOptions): Promise<T> {
    return (await this.#page<T>(target, options)).body;
  }

  /** #page reads one JSON body, and the cursor of the next page if there is one. */
  async #page<T>(target: string, { signal }: RequestOptions): Promise<{ body: T; next: string | null }> {
    const failed = this.#transport.retries(signal);
    for (;;) {
      try {
        const response = await this.#transport.send(target, json, signal);
        const text = await response.text().catch((cause: unknown) => {
          throw new IncompleteError("the answer was cut off", { cause });
        });
        return { body: this.#parse(text) as T, next: response.headers.get("X-Next-Cursor") };
      } catch (error) {
        await failed(error);
      }
    }
  }

  async *#list<T>(list: string, query: Paging, { signal }: RequestOptions): AsyncGenerator<T, void, undefined> {
    const { limit = Infinity, pageSize = defaultPageSize, cursor: start, ...filters } = query;
    checkPageSize("pageSize", pageSize);
    if (!(limit >= 0)) throw new RangeError(`limit ${limit}: want 0 or more`);
    // given holds the texts of the records that the current page has returned. repeated holds those that a page returned
    // before it broke, with their counts. It outlives its page, because the second answer may end earlier in the list.
    let given: string[] = [];
    const repeated = new Map<string, number>();
    let left = limit;
    for (let cursor = start || undefined, ended = false; left > 0 && !ended; ) {
      const target = list + search({ ...filters, limit: Math.min(pageSize, left), cursor });
      let failed = this.#transport.retries(signal);
      for (;;) {
        let progress = false;
        try {
          const response = await this.#transport.send(target, ndjson, signal);
          const next = response.headers.get("X-Next-Cursor") ?? undefined;
          for await (const complete of lines(bodyOf(response))) {
            for (const line of complete) {
              signal?.throwIfAborted();
              const record = this.#parse(line) as T;
              given.push(line);
              const times = repeated.get(line);
              if (times === undefined) {
                progress = true;
                yield record;
                if (--left <= 0) return;
              } else if (times > 1) {
                repeated.set(line, times - 1);
              } else {
                repeated.delete(line);
              }
            }
          }
          given = [];
          cursor = next;
          ended = next === undefined;
          break;
        } catch (error) {
          for (const line of given) repeated.set(line, (repeated.get(line) ?? 0) + 1);
          given = [];
          // An attempt that returned a record resets the count.
          if (progress) failed = this.#transport.retries(signal);
          await failed(error);
        }
      }
    }
  }

  /** #changes reads the feed: to its end without a wait, for ever with one. */
  async *#changes(
    feed: string, query: ChangeQuery, wait: number | undefined, { signal }: RequestOptions,
  ): AsyncGenerator<ChangePage, void, undefined> {
    const { limit = defaultPageSize, types = [] } = query;
    checkPageSize("limit", limit);
    let cursor = query.cursor || undefined;
    let after = cursor ? undefined : query.after;
    for (;;) {
      const target = feed + search({ types: types.join(",") || undefined, wait, limit, cursor, after });
      const { page, waitMs } = await this.#changePage(target, signal);
      yield page;
      if (page.current && wait === undefined) return;
      cursor = page.nextCursor;
      after = undefined;
      if (waitMs > 0) await sleep(waitMs, signal);
    }
  }

  async #changePage(target: string, signal: AbortSignal | undefined, method = "GET"): Promise<{ page: ChangePage; waitMs: number }> {
    const failed = this.#transport.retries(signal);
    for (;;) {
      try {
        const { body, headers } = await this.#transport.send(target, ndjson, signal, method);
        const nextCursor = headers.get("X-Next-Cursor");
        const lastSeq = headers.get("X-Last-Seq");
        if (!nextCursor || !lastSeq) {
          throw new Error("the answer has no X-Next-Cursor or no X-Last-Seq: does something in between remove headers?");
        }
        const changes: Change[] = [];
        if (method === "GET") {
          for await (const complete of lines(bodyOf({ body }))) {
            for (const line of complete) changes.push(this.#parse(line) as Change);
          }
        }
        const page = { changes, nextCursor, current: !headers.has("Link"), lastSeq: Number(lastSeq) };
        return { page, waitMs: retryAfter(headers.get("Retry-After")) ?? 0 };
      } catch (error) {
        await failed(error);
      }
    }
  }
}

/** bodyOf returns the body of an answer. It throws for an answer without a body. */
function bodyOf({ body }: { body: ReadableStream<Uint8Array> | null }): ReadableStream<Uint8Array> {
  if (!body) throw new Error("the server answered without a body");
  return body;
}

function checkPageSize(name: string, size: number): void {
  if (!Number.isInteger(size) || size < 1 || size > greatestPageSize) {
    throw new RangeError(`${name} ${size}: want a whole number from 1 to 1,000,000`);
  }
}

/** path joins escaped segments, so that an identifier may contain slashes. */
function path(...segments: string[]): string {
  return segments
    .map((segment) => {
      // fetch resolves these segments even if they are escaped, so the request would go to another path.
      if (segment === "" || segment === "." || segment === "..") {
        throw new TypeError(`identifier "${segment}": it cannot be part of a path`);
      }
      return `/${encodeURIComponent(segment)}`;
    })
    .join("");
}

type Parameter = string | number | boolean | Date | undefined;

/** search returns the query string of the parameters that are set. */
function search(parameters: { [name: string]: Parameter }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return `?${query}`;
}
