// The figures that the server counts, and the periods that they are of.
import type { AnswerKeys, AnswerQuery, Client, CountQuery, EntryCount, Funnel, FunnelPage } from "@lectern/client";
import { collect } from "./api.ts";
import { zone } from "./preferences.ts";
import { here } from "./router.ts";
import { dayStarts, isDay, isoDay, startOfDay } from "./time.ts";

/** How many days a named period has. 0 is all of the project's time. */
export const periods = [7, 30, 90, 0] as const;
/** The named period of an address that has none. */
const standard = 30;

/** Period is what the address says: a number of days, or own days. */
export interface Period {
  days: number;
  from: string;
  to: string;
  /** Whether the first day is after the last one. */
  reversed: boolean;
}

/** periodIn reads the period of the address. */
function periodIn(query: URLSearchParams): Period {
  const date = (name: string) => (isDay(query.get(name) ?? "") ? (query.get(name) ?? "") : "");
  const [from, to] = [date("from"), date("to")];
  const named = query.get("days");
  const days = periods.find((days) => String(days) === named) ?? standard;
  return { days, from, to, reversed: from !== "" && to !== "" && from > to };
}

/** usePeriod returns the period of the address and the parts of it that a load depends on. */
export function usePeriod(): { period: Period; inputs: readonly unknown[] } {
  const period = periodIn(here.value.query);
  return { period, inputs: [period, zone.value, period.from ? "" : isoDay(Date.now())] };
}

/** samePeriod returns the filters of an address that opens another page with the period of this one. */
export function samePeriod(): Record<string, string> {
  const { query } = here.value;
  const { from, to } = periodIn(query);
  return { from, to, days: query.get("days") ?? "" };
}

/** entriesPeriod is samePeriod with the days of a span, because the list of entries has no named periods. */
export function entriesPeriod(span: Span | undefined): Record<string, string> {
  return { ...samePeriod(), ...(span?.from !== undefined && { from: isoDay(span.from) }), ...(span?.until !== undefined && { to: isoDay(span.until - 1) }) };
}

/** Span is a period on the clock: the first moment of it, and the first moment after it. */
export interface Span {
  from: number | undefined;
  until: number | undefined;
  /** Whether a named period ends in the past, with the newest entry, because there is none since. */
  past: boolean;
  /** How many days the span has. */
  days: number;
}

/** justBefore returns the last time before a moment that the API can tell from it: it compares microseconds. */
const justBefore = (at: number): string => new Date(at - 1).toISOString().replace("Z", "999Z");

/** created selects the entries that were created in a span. */
export const created = ({ from, until }: Pick<Span, "from" | "until">) => ({
  created_after: from === undefined ? undefined : justBefore(from),
  created_before: until === undefined ? undefined : new Date(until).toISOString(),
});

const dayLength = 86_400_000;
/** Clocks outside of these years are wrong. Such an entry counts, but it is no end of a period. */
const clocks = { from: Date.UTC(2000, 0), until: Date.UTC(2101, 0) };

/** spanOf puts a period on the clock, or returns null if the project, or the embeddable, has no entry. */
export async function spanOf(client: Client, project: string, { days, from, to }: Period, embeddable: string | undefined, signal: AbortSignal): Promise<Span | null> {
  const now = Date.now();
  const end = async (direction: "ASC" | "DESC") => {
    const until = dayStarts(now, 1)[1] ?? now;
    const [found] = await collect(client.entries(project, { sort: "created_at", direction, limit: 1, embeddable_id: embeddable, ...created({ from: clocks.from, until }) }, { signal }));
    return found && Date.parse(found.created_at);
  };
  const [newest, any] = await Promise.all([end("DESC"), collect(client.entries(project, { limit: 1, embeddable_id: embeddable }, { signal }))]);
  if (any.length === 0) return null;
  if (from || to) {
    const first = from ? startOfDay(from) : undefined;
    const until = to ? startOfDay(to, 1) : undefined;
    const oldest = first ?? (await end("ASC")) ?? now;
    return { from: first, until, past: false, days: Math.round(((until ?? now) - oldest) / dayLength) };
  }
  if (days === 0) return { from: undefined, until: undefined, past: false, days: Math.ceil(((newest ?? now) - ((await end("ASC")) ?? now)) / dayLength) + 1 };
  const recent = dayStarts(now, days);
  const past = newest !== undefined && newest < (recent[0] ?? 0);
  const borders = past ? dayStarts(newest, days) : recent;
  return { from: borders[0], until: borders.at(-1), past, days };
}

/** before returns the span of the same length before a span, or undefined if it has no beginning or no end. A day that is not over is compared with a part of a day. */
export function before({ from, until, days }: Span): Pick<Span, "from" | "until"> | undefined {
  if (from === undefined || until === undefined) return undefined;
  const earlier = startOfDay(isoDay(from), -days);
  const now = Date.now();
  // By the time of day, because clocks may change in between.
  const today = isoDay(now);
  return { from: earlier, until: until > now ? Math.min(from, Math.max(earlier, startOfDay(today, -days) + now - startOfDay(today))) : from };
}

/** counts reads how many entries were created in each interval. Days begin in the chosen zone. */
export function counts(client: Client, project: string, query: Omit<CountQuery, "timezone">, signal: AbortSignal): Promise<EntryCount[]> {
  return client.entryCounts(project, { ...query, timezone: zone.peek() }, { signal });
}

/** sum adds counts up. */
export function sum(list: readonly EntryCount[]): Pick<EntryCount, "entries" | "started" | "completed"> {
  const of = (name: "entries" | "started" | "completed") => list.reduce((n, one) => n + one[name], 0);
  return { entries: of("entries"), started: of("started"), completed: of("completed") };
}

/** largestDrop returns the page at which most of the entries that reached it left, of those that a tenth of all reached. */
export function largestDrop({ started, pages }: Funnel): FunnelPage | undefined {
  const often = pages.filter(({ reached, dropped }) => dropped > 0 && reached >= started / 10);
  return often.sort((a, b) => b.dropped / b.reached - a.dropped / a.reached)[0];
}

/** AnswerKey is a question: a key of the answers, and how many entries have it. */
export type AnswerKey = AnswerKeys["keys"][number];

/** questions lists the keys of the answers of an embeddable, the most frequent first. The API has no figures of an empty key. */
export async function questions(client: Client, project: string, query: Omit<AnswerQuery, "key">, signal: AbortSignal): Promise<AnswerKey[]> {
  return (await client.answerKeys(project, query, { signal })).keys.filter(({ key }) => key !== "");
}
