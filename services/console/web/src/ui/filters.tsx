// The fields that filter a page. Each keeps its value in the address.
import { filter, here } from "../router.ts";
import { firstDay, lastDay } from "../time.ts";

function take({ currentTarget: { name, value, validity } }: { currentTarget: HTMLInputElement }) {
  if (validity.valid) filter({ [name]: value.trim() });
}

/** DayFilter is the field of a date. It leaves the address alone while a year is typed. */
export function DayFilter({ name }: { name: string }) {
  return <input name={name} type="date" min={firstDay} max={lastDay} value={here.value.query.get(name) ?? ""} onChange={take} />;
}

/** IdFilter is the field of an id. */
export function IdFilter({ name }: { name: string }) {
  return <input name={name} value={here.value.query.get(name) ?? ""} onChange={take} placeholder="Any" spellcheck={false} autocapitalize="off" autocomplete="off" />;
}
