// Times and figures as people read them. All times are shown in the chosen zone.
import { zone } from "./preferences.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(name: string, options: Intl.DateTimeFormatOptions, timeZone = zone.value): Intl.DateTimeFormat {
  const id = `${name} ${timeZone}`;
  let found = formats.get(id);
  if (!found) {
    found = new Intl.DateTimeFormat("en-GB", { ...options, timeZone });
    formats.set(id, found);
  }
  return found;
}

const years = { first: Date.parse("0001-01-02T00:00:00Z"), end: Date.parse("9999-12-31T00:00:00Z") };

/** written writes a moment. In UTC, which is said, if another zone could move it out of the years 1 to 9999. */
function written(name: string, options: Intl.DateTimeFormatOptions, at: number): string {
  return at >= years.first && at < years.end ? format(name, options).format(at) : `${format(name, options, "UTC").format(at)} UTC`;
}

/** dateTime writes a moment to the minute: "30 Sept 2026, 23:51". */
export const dateTime = (at: number): string => written("minute", { dateStyle: "medium", timeStyle: "short" }, at);

/** exactTime writes a moment to the second, with its zone. */
export const exactTime = (at: number): string => written("second", { dateStyle: "medium", timeStyle: "long" }, at);

/** clock writes the time of day to the second. */
export const clock = (at: number): string => written("clock", { timeStyle: "medium" }, at);

/** day writes a date: "30 Sept 2026". */
export const day = (at: number): string => written("day", { dateStyle: "medium" }, at);

/** shortDay writes a date without its year: "30 Sept". */
export const shortDay = (at: number): string => format("short", { day: "numeric", month: "short" }).format(at);

/** hour writes a moment without its year: "30 Sept, 23:00". */
export const hour = (at: number): string => format("hour", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).format(at);

/** isoDay writes a date as input elements take it: "2026-09-30". */
export function isoDay(at: number): string {
  const parts = Object.fromEntries(format("iso", { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(at).map((p) => [p.type, p.value]));
  return `${parts["year"]}-${parts["month"]}-${parts["day"]}`;
}

/** duration writes milliseconds with at most two units: "1 min 4 s". No line ends within it. */
export const duration = (ms: number): string => units(ms).replaceAll(" ", "\u00a0");

function units(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** ago writes how long before now a moment is: "3 min ago". */
export function ago(at: number, now: number): string {
  return now - at < 5000 ? "just now" : `${units(now - at).split(" ").slice(0, 2).join("\u00a0")} ago`;
}

const whole = new Intl.NumberFormat("en-GB");

/** count writes a whole number: "10,000". */
export const count = (n: number): string => whole.format(n);

/** counted writes a number of things: "1 entry", "2 entries". */
export const counted = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;

/** percent writes a ratio: "12.3 %". */
export const percent = (ratio: number): string => (Number.isFinite(ratio) ? `${(ratio * 100).toFixed(1)} %` : "–");

/** offset returns how far zone is from UTC at a moment, in milliseconds. */
function offset(at: number, timeZone: string): number {
  const parts = format("offset", { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric", hourCycle: "h23" }, timeZone).formatToParts(at);
  const part = (type: string) => Number(parts.find((p) => p.type === type)?.value);
  return Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second")) - Math.floor(at / 1000) * 1000;
}

/** The first and the last day that can be a filter. A year that is being typed, such as 0020, is outside. */
export const firstDay = "1900-01-01";
export const lastDay = "9998-12-31";

/** isDay reports whether a text is a date that can be a filter, such as 2026-09-30. */
export function isDay(value: string): boolean {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(value) : NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(value) && value >= firstDay && value <= lastDay;
}

/** startOfDay returns the moment at which a date such as 2026-09-30 begins in a zone. days moves it by whole days. */
export function startOfDay(date: string, days = 0, timeZone = zone.value): number {
  const [year = 0, month = 1, dayOfMonth = 1] = date.split("-").map(Number);
  const wall = Date.UTC(year, month - 1, dayOfMonth + days);
  // The offset at the result counts. Where clocks change near midnight, the second step corrects the first.
  const guess = wall - offset(wall, timeZone);
  const start = wall - offset(guess, timeZone);
  // Where clocks skip midnight, neither is midnight, and the day begins at the later one.
  return offset(start, timeZone) === offset(guess, timeZone) ? start : Math.max(guess, start);
}

/** dayStarts returns the beginnings of n days, of which the last contains a moment, and the end of the last. */
export function dayStarts(until: number, n: number): number[] {
  const last = isoDay(until);
  return Array.from({ length: n + 1 }, (_, i) => startOfDay(last, i - n + 1));
}
