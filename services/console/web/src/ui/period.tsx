// The fields that filter a page by time. Each keeps its value in the address.
import { type Period, periods, type Span } from "../period.ts";
import { zone } from "../preferences.ts";
import { filter } from "../router.ts";
import { counted, day, dayStarts, firstDay, isoDay, lastDay } from "../time.ts";

function take({ currentTarget: { name, value, validity } }: { currentTarget: HTMLInputElement }) {
  // A date is invalid while its year is typed.
  if (validity.valid) filter({ [name]: value }, true);
}

/** PeriodFilter lets the visitor choose a named period, or own days. */
export function PeriodFilter({ period }: { period: Period }) {
  const own = period.from !== "" || period.to !== "";
  const field = (label: string, name: "from" | "to") => (
    <label>
      <span>{label}</span>
      <input name={name} type="date" min={firstDay} max={lastDay} value={period[name]} onChange={take} />
    </label>
  );
  const choice = (name: string, pressed: boolean, to: Record<string, string>, key?: string) => (
    <button key={name} type="button" class="quiet" aria-pressed={pressed} aria-keyshortcuts={key} onClick={() => filter(to)}>{name}</button>
  );
  return (
    <>
      <div class="segments" role="group" aria-label="Period">
        {periods.map(({ named, name, key }) => choice(name, !own && period.named === named, { from: "", to: "", days: named }, key))}
        {choice("Custom", own, { from: isoDay(dayStarts(Date.now(), Number(period.named) || 30)[0] ?? 0), to: isoDay(Date.now()), days: "" })}
      </div>
      {own && field("From", "from")}
      {own && field("To", "to")}
    </>
  );
}

/** spanText says which time a span is, in which zone, and why. */
export function spanText({ from, until, past, days }: Span): string {
  const last = until === undefined ? undefined : until - 1;
  if (from === undefined && last === undefined) return "All time";
  const range = from === undefined ? `Until ${day(last ?? 0)}` : last === undefined ? `Since ${day(from)}` : days === 1 ? day(from) : `${day(from)} to ${day(last)}`;
  const dates = `${range} (${zone.value})`;
  return past ? `There is no entry in the last ${counted(days, "day", "days")}. Shown: the ${days} days up to the newest entry, ${dates}.` : dates;
}
