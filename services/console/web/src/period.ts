// Periods: what the address says, and which time on the clock that is. Nothing here reads the API or the window.
import { dayStarts, isDay, isoDay, startOfDay } from "./time.ts";

/** The named periods, each with the key that chooses it. "0" is all of the project's time. */
export const periods = [
  { named: "today", name: "Today", key: "t" },
  { named: "yesterday", name: "Yesterday", key: "y" },
  { named: "7", name: "7 days", key: "7" },
  { named: "30", name: "30 days", key: "3" },
  { named: "90", name: "90 days", key: "9" },
  { named: "this-week", name: "This week", key: "s" },
  { named: "last-week", name: "Last week", key: "w" },
  { named: "this-month", name: "This month", key: "m" },
  { named: "last-month", name: "Last month", key: "l" },
  { named: "this-year", name: "This year", key: "n" },
  { named: "0", name: "All time", key: "0" },
] as const;

/** Named is the name of a period in an address. */
export type Named = (typeof periods)[number]["named"];

/** Calendar is the name of a period that the calendar alone bounds. */
export type Calendar = Exclude<Named, "7" | "30" | "90" | "0">;
export const isCalendar = (named: Named): named is Calendar => !/^\d/.test(named);

/** The named period of figures whose address has none. */
export const standard: Named = "30";

/** Period is what the address says: a named period, or own days. */
export interface Period {
  named: Named;
  from: string;
  to: string;
  /** Whether the first day is after the last one. */
  reversed: boolean;
}

/** periodIn reads the period of an address. */
export function periodIn(query: URLSearchParams, otherwise = standard): Period {
  const date = (name: string) => (isDay(query.get(name) ?? "") ? (query.get(name) ?? "") : "");
  const [from, to] = [date("from"), date("to")];
  const named = periods.find((one) => one.named === query.get("days"))?.named ?? otherwise;
  return { named, from, to, reversed: from !== "" && to !== "" && from > to };
}

/** Bounds are the first moment of a period, and the first moment after it. */
export interface Bounds {
  from: number | undefined;
  until: number | undefined;
}

/** Span is a period on the clock. */
export interface Span extends Bounds {
  /** Whether a named period ends in the past, with the newest entry, because there is none since. */
  past: boolean;
  /** How many days the span has. */
  days: number;
  /** The period before, and its name. A day that is not over is compared with the same hours. */
  before?: Bounds & { name: string };
}

/** Interval is how long the bars of a chart are. */
export type Interval = "hour" | "day" | "week" | "month";

/** intervalOf returns the interval of the bars of a span, so that they are not too many to see. */
export const intervalOf = ({ days }: Pick<Span, "days">): Interval => (days <= 3 ? "hour" : days <= 92 ? "day" : days <= 700 ? "week" : "month");

const dayLength = 86_400_000;
const daysBetween = (from: number, until: number): number => Math.round((until - from) / dayLength);

/** monthStart returns the first day of the month of a day. months moves it by whole months. */
export function monthStart(day: string, months = 0): string {
  const [year = 0, month = 1] = day.split("-").map(Number);
  return new Date(Date.UTC(year, month - 1 + months)).toISOString().slice(0, 10);
}

/** monday returns the Monday of the week of a day. */
export function monday(day: string): string {
  const at = new Date(day);
  return new Date(at.getTime() - ((at.getUTCDay() + 6) % 7) * dayLength).toISOString().slice(0, 10);
}

/** calendarSpan puts a day, week, month or year on the clock. */
export function calendarSpan(named: Calendar, now: number): Span {
  const today = isoDay(now);
  const span = (from: number, until: number, before: Bounds & { name: string }): Span => ({ from, until, past: false, days: daysBetween(from, until), before });
  const over = (earlier: number, from: number, until: number, name: string) => span(from, until, { from: earlier, until: from, name });
  // The same days and hours of the period before, of which sameDay is as today, or all of it if it is shorter.
  const current = (earlier: number, from: number, sameDay: number, name: string) => span(from, startOfDay(today, 1), { from: earlier, until: Math.min(from, sameDay + now - startOfDay(today)), name });
  const week = monday(today);
  const month = (months: number) => startOfDay(monthStart(today, months));
  const year = Number(today.slice(0, 4));
  switch (named) {
    case "today":
      return current(startOfDay(today, -1), startOfDay(today), startOfDay(today, -1), "the same hours of the day before");
    case "yesterday":
      return over(startOfDay(today, -2), startOfDay(today, -1), startOfDay(today), "the day before");
    case "this-week":
      return current(startOfDay(week, -7), startOfDay(week), startOfDay(today, -7), "the same days of the week before");
    case "last-week":
      return over(startOfDay(week, -14), startOfDay(week, -7), startOfDay(week), "the week before");
    case "this-month":
      return current(month(-1), month(0), startOfDay(monthStart(today, -1), Number(today.slice(8)) - 1), "the same days of the month before");
    case "last-month":
      return over(month(-2), month(-1), month(0), "the month before");
    case "this-year":
      return current(startOfDay(`${year - 1}-01-01`), startOfDay(`${year}-01-01`), startOfDay(`${year - 1}${today.slice(4)}`), "the same days of the year before");
  }
}

/** daysSpan puts a number of days on the clock: the days up to now, or up to the newest entry if there is none since. */
export function daysSpan(days: number, now: number, newest: number | undefined): Span {
  const recent = dayStarts(now, days);
  const past = newest !== undefined && newest < (recent[0] ?? 0);
  const borders = past ? dayStarts(newest, days) : recent;
  return withBefore({ from: borders[0], until: borders.at(-1), past, days }, now);
}

/** ownSpan puts own days on the clock. oldest is the time of the oldest entry. */
export function ownSpan({ from, to }: Pick<Period, "from" | "to">, now: number, oldest: number | undefined): Span {
  const [first, until] = [from ? startOfDay(from) : undefined, to ? startOfDay(to, 1) : undefined];
  return withBefore({ from: first, until, past: false, days: daysBetween(first ?? oldest ?? now, until ?? now) }, now);
}

/**
 * fixedSpan puts a period on the clock whose ends do not depend on the entries. It returns undefined for other periods. Where an end
 * is open, the times of the oldest and the newest entry say how many days there are.
 */
export function fixedSpan(period: Period, now: number, oldest = now, newest = now): Span | undefined {
  const { named, from, to } = period;
  if (from || to) return ownSpan(period, now, oldest);
  if (named === "0") return { from: undefined, until: undefined, past: false, days: Math.ceil((newest - oldest) / dayLength) + 1 };
  return isCalendar(named) ? calendarSpan(named, now) : undefined;
}

/** withBefore adds the period of the same length before a span that has two ends. */
function withBefore(span: Omit<Span, "before">, now: number): Span {
  const { from, until, days } = span;
  if (from === undefined || until === undefined) return span;
  const earlier = startOfDay(isoDay(from), -days);
  // By the time of day, because clocks may change in between.
  const today = isoDay(now);
  const end = until > now ? Math.min(from, Math.max(earlier, startOfDay(today, -days) + now - startOfDay(today))) : from;
  return { ...span, before: { from: earlier, until: end, name: `the ${days} days before` } };
}
