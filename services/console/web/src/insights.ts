// The figures that the server counts, and the periods that they are of.
import type { AnswerKeys, AnswerQuery, Client, CountQuery, EntryCount, EntryQuery, Funnel, FunnelPage, FunnelQuery } from "@lectern/client";
import { type Load, useLoad } from "./load.ts";
import { type Bounds, daysSpan, fixedSpan, type Period, periodIn, type Span, standard } from "./period.ts";
import { zone } from "./preferences.ts";
import { here } from "./router.ts";
import { dayStarts, isoDay } from "./time.ts";

/** usePeriod returns the period of the address and the parts of it that a load depends on. */
export function usePeriod(otherwise = standard): { period: Period; inputs: readonly unknown[] } {
  const period = periodIn(here.value.query, otherwise);
  return { period, inputs: [period, zone.value, period.from ? "" : isoDay(Date.now())] };
}

/** justBefore returns the last time before a moment that the API can tell from it: it compares microseconds. */
const justBefore = (at: number): string => new Date(at - 1).toISOString().replace("Z", "999Z");

/** created selects the entries that were created in a span. */
export const created = ({ from, until }: Bounds) => ({
  created_after: from === undefined ? undefined : justBefore(from),
  created_before: until === undefined ? undefined : new Date(until).toISOString(),
});

/** Clocks outside of these years are wrong. Such an entry counts, but it is no end of a period. */
const clocks = { from: Date.UTC(2000, 0), until: Date.UTC(2101, 0) };

/**
 * entriesPeriod says the period of figures to the list of entries, which has all time if the address says none. With a span it says
 * its days: the last days of an embeddable may be others than those of its project.
 */
export function entriesPeriod(span?: Span): Record<string, string> {
  const { named, from, to } = periodIn(here.value.query);
  if (from || to) return { from, to };
  return span?.from !== undefined && span.until !== undefined ? { from: isoDay(span.from), to: isoDay(span.until - 1) } : { days: named };
}

/** useSpan puts the period of the address on the clock. The value is null if the project, or the embeddable, has no entry, and undefined if the period ends before it begins. */
export function useSpan(project: string, embeddable: string | undefined, otherwise = standard, ready = true): Load<Span | null | undefined> {
  const { period, inputs } = usePeriod(otherwise);
  return useLoad(async ({ client, signal }) => (period.reversed ? undefined : spanOf(client, project, period, embeddable, signal)), ["span", project, embeddable, ...inputs], ready);
}

/** spanOf puts a period on the clock, or returns null if the project, or the embeddable, has no entry. */
export async function spanOf(client: Client, project: string, period: Period, embeddable: string | undefined, signal: AbortSignal): Promise<Span | null> {
  const { named, from, to } = period;
  const now = Date.now();
  const of = { limit: 1, embeddable_id: embeddable };
  const end = async (direction: "ASC" | "DESC") => {
    const until = dayStarts(now, 1)[1] ?? now;
    const [found] = await Array.fromAsync(client.entries(project, { ...of, sort: "created_at", direction, ...created({ from: clocks.from, until }) }, { signal }));
    return found && Date.parse(found.created_at);
  };
  const [newest, oldest] = await Promise.all([end("DESC"), !from && (to || named === "0") ? end("ASC") : undefined]);
  // There may be entries whose clocks are wrong.
  if (newest === undefined && (await Array.fromAsync(client.entries(project, of, { signal }))).length === 0) return null;
  return fixedSpan(period, now, oldest, newest) ?? daysSpan(Number(named), now, newest);
}

/** Counted is a count to the end, in which no figure is null. */
export type Counted = EntryCount & { started: number; completed: number };

/** counts reads how many entries were created in each interval. Days begin in the chosen zone. */
export function counts(client: Client, project: string, query: Omit<CountQuery, "timezone" | "at_most">, signal: AbortSignal): Promise<Counted[]> {
  return client.entryCounts(project, { ...query, timezone: zone.peek() }, { signal }) as Promise<Counted[]>;
}

/** sum adds counts up. */
export function sum(list: readonly Pick<Counted, "entries" | "started" | "completed">[]): Pick<Counted, "entries" | "started" | "completed"> {
  const of = (name: "entries" | "started" | "completed") => list.reduce((n, one) => n + one[name], 0);
  return { entries: of("entries"), started: of("started"), completed: of("completed") };
}

/** A list counts its entries up to this number, unless the visitor asks for more. */
export const mostCounted = 10_000;

/** lengthOf returns how many entries a list has. Unless it is to count all, it returns mostCounted + 1 for a longer list. */
export async function lengthOf(client: Client, project: string, query: EntryQuery, all: boolean, signal: AbortSignal): Promise<number> {
  const { sort: _, direction: __, ...of } = query;
  const [row] = await client.entryCounts(project, { ...of, interval: "all", at_most: all ? undefined : mostCounted + 1 }, { signal });
  return row?.entries ?? 0;
}

/** funnelOf reads the funnel of an embeddable, or of one version. Of one version, only its own views count. */
export async function funnelOf(client: Client, project: string, query: FunnelQuery, signal: AbortSignal): Promise<Funnel | undefined> {
  const { version } = query;
  const found = await client.funnels(project, { ...query, ...(version !== undefined && { by: "version" }) }, { signal });
  return version === undefined ? found[0] : found.find((one) => one.version_number === version);
}

/** largestDrop returns the page at which most of the entries that reached it left, of those that a tenth of all reached. */
export function largestDrop({ started, pages }: Funnel): FunnelPage | undefined {
  const often = pages.filter(({ reached, dropped }) => dropped > 0 && reached >= started / 10);
  return often.sort((a, b) => b.dropped / b.reached - a.dropped / a.reached)[0];
}

/** questions lists the keys of the answers of an embeddable, the most frequent first. The API has no figures of an empty key. */
export async function questions(client: Client, project: string, query: Omit<AnswerQuery, "key">, signal: AbortSignal): Promise<AnswerKeys["keys"]> {
  return (await client.answerKeys(project, query, { signal })).keys.filter(({ key }) => key !== "");
}
