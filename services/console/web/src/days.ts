// Counts entries a day, by embeddable, and stays exact while entries are stored, changed and removed.
import type { Change, Entry } from "@lectern/client";
import type { Series } from "./ui/bars.tsx";

/** How many of the newest entries are kept to be shown. */
const shown = 10;

/** Days counts the entries that were created on some days. */
export class Days {
  /** The moments at which the days begin. */
  readonly starts: readonly number[];
  /** How many entries were created on these days. */
  total = 0;
  /** The entries that were last updated, the newest first. */
  newest: Entry[] = [];
  /** Rises with every change, so that a view can tell that there is something new. */
  version = 0;

  readonly #end: number;
  readonly #counts = new Map<string, number[]>();
  // The count of each entry, so that it can be undone.
  readonly #counted = new Map<string, { day: number; embeddable: string }>();

  /** borders are the beginnings of the days and the end of the last. */
  constructor(borders: readonly number[]) {
    this.starts = borders.slice(0, -1);
    this.#end = borders.at(-1) ?? 0;
  }

  /** add counts an entry. It counts a known entry again, and only once. */
  add(entry: Entry): void {
    this.version++;
    this.#forget(entry.entry_id);
    const created = Date.parse(entry.created_at);
    const day = created < this.#end ? this.#day(created) : -1;
    if (day < 0) return;
    let counts = this.#counts.get(entry.embeddable_id);
    if (!counts) {
      counts = this.starts.map(() => 0);
      this.#counts.set(entry.embeddable_id, counts);
    }
    counts[day] = (counts[day] ?? 0) + 1;
    this.total++;
    this.#counted.set(entry.entry_id, { day, embeddable: entry.embeddable_id });
  }

  /** apply follows a change of the feed. */
  apply(change: Change): void {
    if (change.change === "entry") {
      this.add(change.entry);
      this.show(change.entry);
    } else if (change.change === "entry_removed") {
      this.version++;
      this.#forget(change.entry_id);
      this.newest = this.newest.filter((entry) => entry.entry_id !== change.entry_id);
    }
  }

  /** show puts an entry among the newest, if it is one of them. */
  show(entry: Entry): void {
    this.newest = [entry, ...this.newest.filter((other) => other.entry_id !== entry.entry_id)]
      .sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at))
      .slice(0, shown);
  }

  /** today returns how many entries were created on the last day. */
  get today(): number {
    let sum = 0;
    for (const counts of this.#counts.values()) sum += counts.at(-1) ?? 0;
    return sum;
  }

  /** series returns the counts by embeddable, the largest first. Those beyond the limit are added up as the last one. */
  series(limit: number, title: (embeddable: string) => string): Series[] {
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
    const all = [...this.#counts].map(([id, values]) => ({ name: title(id), values: [...values] })).sort((a, b) => sum(b.values) - sum(a.values));
    if (all.length <= limit) return all;
    const others = all.slice(limit - 1);
    return [...all.slice(0, limit - 1), { name: `${others.length} others`, values: this.starts.map((_, i) => others.reduce((n, { values }) => n + (values[i] ?? 0), 0)) }];
  }

  #forget(id: string): void {
    const counted = this.#counted.get(id);
    if (!counted) return;
    this.#counted.delete(id);
    this.total--;
    const counts = this.#counts.get(counted.embeddable);
    if (counts) counts[counted.day] = (counts[counted.day] ?? 1) - 1;
  }

  // The index of the day that contains a moment before the end, or -1.
  #day(at: number): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.starts[middle] ?? Infinity) <= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
