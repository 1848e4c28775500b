// What the overview reads: the figures of a period, in one place.
import type { Client, EntriesOverview } from "@lectern/client";
import type { Narrowed } from "./questions.ts";
import { type Counted, counts, created, spanOf, sum } from "./insights.ts";
import { type Interval, intervalOf, type Period, type Span } from "./period.ts";
import { zone } from "./preferences.ts";
import { dayStarts } from "./time.ts";

type Counts = ReturnType<typeof sum>;

/** Overview has the figures of a period. */
export interface Overview {
  span: Span;
  /** Where the last interval ends. */
  until: number | undefined;
  interval: Interval;
  intervals: Counted[];
  /** The figures of all embeddables, in the period and in the one before. */
  total: Counts;
  earlier: Counts | undefined;
  /** The figures of each embeddable. One may have entries only in the period before. */
  embeddables: EntriesOverview["embeddables"];
}

/** readOverview reads the figures of a project, or of one embeddable. It returns null if there is no entry at all. */
export async function readOverview(client: Client, project: string, period: Period, embeddable: string | undefined, narrowed: Narrowed, signal: AbortSignal): Promise<Overview | null> {
  const span = await spanOf(client, project, period, embeddable, signal);
  if (!span) return null;
  const of = { embeddable_id: embeddable, ...narrowed };
  const interval = intervalOf(span);
  // Not beyond today: an entry with a clock in 2099 counts, but is no reason for 70 empty years.
  const until = span.until ?? dayStarts(Date.now(), 1)[1];
  const open = span.until === undefined;
  const [overview, dated, before] = await Promise.all([
    client.entriesOverview(project, { ...of, ...created(span), interval: open ? "all" : interval, timezone: zone.peek() }, { signal }),
    open ? counts(client, project, { ...of, ...created({ from: span.from, until }), interval }, signal) : undefined,
    // The overview has the period of the same length before. A day or a month that is not over has another one.
    span.before && !justBefore(span) ? counts(client, project, { ...of, ...created(span.before), interval: "all", by: "embeddable" }, signal) : undefined,
  ]);
  const earlier = before && new Map(before.map((one) => [one.embeddable_id, one]));
  return {
    span,
    until,
    interval,
    intervals: dated ?? (overview.intervals as Counted[]),
    total: sum(overview.intervals as Counted[]),
    earlier: before ? sum(before) : span.before && (overview.previous ?? undefined),
    embeddables: earlier ? overview.embeddables.map((one) => ({ ...one, previous: earlier.get(one.embeddable_id) ?? null })) : overview.embeddables,
  };
}

/** justBefore reports whether the period before has the same length, and ends where the period begins. */
const justBefore = ({ from = 0, until = 0, before }: Span): boolean => before?.until === from && from - (before.from ?? 0) === until - from;
