// Counts a funnel. Nothing here reads or shows: the worker adds entries, and asks for the figures at any time.
//
// The definitions:
//
//   - An entry reached a page if it viewed the page at least once. Each entry counts once for each page.
//   - An entry started if it viewed any page.
//   - An entry dropped off at a page if it reached that page and no later one. So each entry that started drops off at
//     exactly one page: the latest that it reached.
//   - The time on a page goes from a view of it to the next page view of the same entry, in the order of their times; views
//     of the same moment stay in the order in which they are added. The last view of an entry has no such time.
//   - A page is identified by its id. Its newest view gives its name and its place in the order of pages.

/** PageSeen is a page as one view describes it. */
export interface PageSeen {
  page_id: string;
  page_key: string;
  page_index: number;
}

/** PageFigures are the figures of one page. */
export interface PageFigures {
  id: string;
  key: string;
  index: number;
  /** How many entries reached the page. */
  reached: number;
  /** How many of these reached no later page. */
  dropped: number;
  /** How many times on the page the median is of. */
  timed: number;
  /** The median time on the page in milliseconds, or null if timed is 0. */
  median: number | null;
}

/** Figures are the figures of a funnel, exact for the entries that were added. */
export interface Figures {
  entries: number;
  /** How many of the entries have a page view. */
  started: number;
  views: number;
  /** The least and the greatest updated_at of the entries, in microseconds since 1970. Without entries: Infinity and -Infinity. */
  oldest: number;
  newest: number;
  /** The pages, in their order. */
  pages: PageFigures[];
}

/** Numbers is a list of numbers that grows, with eight bytes for each. */
export class Numbers {
  #values = new Float64Array(16);
  length = 0;

  push(value: number): void {
    if (this.length === this.#values.length) {
      const more = new Float64Array(2 * this.length);
      more.set(this.#values);
      this.#values = more;
    }
    this.#values[this.length++] = value;
  }

  at(index: number): number {
    return this.#values[index] ?? NaN;
  }

  set(index: number, value: number): void {
    this.#values[index] = value;
  }

  /** median sorts the list, and returns its middle or the mean of the two middle ones, as percentile_cont(0.5) of Postgres does. */
  median(): number | null {
    if (this.length === 0) return null;
    const sorted = this.#values.subarray(0, this.length).sort();
    const half = (this.length - 1) / 2;
    return ((sorted[Math.floor(half)] ?? NaN) + (sorted[Math.ceil(half)] ?? NaN)) / 2;
  }
}

/**
 * micros reads a time of the API, such as 2026-09-30T23:51:21.180001Z, as microseconds since 1970. A Date has milliseconds
 * only. The result is exact until the year 2255.
 */
export function micros(time: string): number {
  const dot = time.indexOf(".");
  if (dot < 0) return Date.parse(time) * 1000;
  return Date.parse(`${time.slice(0, dot)}Z`) * 1000 + Number(time.slice(dot + 1, -1).padEnd(6, "0"));
}

interface Page {
  id: string;
  key: string;
  index: number;
  newest: number; // the time of the view that gave key and index
  durations: Numbers; // in microseconds
}

function laterInOrder(a: { index: number; key: string }, b: { index: number; key: string }): boolean {
  return a.index > b.index || (a.index === b.index && a.key > b.key);
}

/**
 * Funnel counts. It keeps eight bytes for each time on a page, and one counter for each different set of pages that an
 * entry reached. It keeps no entry.
 */
export class Funnel {
  readonly #pages: Page[] = [];
  readonly #numbers = new Map<string, number>(); // of page ids in #pages
  // How many entries reached exactly these pages. The order of the pages may still change, so it is applied at the end.
  readonly #sets = new Map<string, number>();
  #entries = 0;
  #started = 0;
  #views = 0;
  #oldest = Infinity;
  #newest = -Infinity;

  /** page learns about a page from one view of it, and returns the page's number for add. at is in microseconds. */
  page(seen: PageSeen, at: number): number {
    const number = this.#numbers.get(seen.page_id);
    const said = { key: seen.page_key, index: seen.page_index };
    if (number === undefined) {
      this.#pages.push({ id: seen.page_id, ...said, newest: at, durations: new Numbers() });
      this.#numbers.set(seen.page_id, this.#pages.length - 1);
      return this.#pages.length - 1;
    }
    const page = this.#pages[number];
    if (page && (at > page.newest || (at === page.newest && laterInOrder(said, page)))) Object.assign(page, said, { newest: at });
    return number;
  }

  /**
   * add counts an entry: when it was updated, the numbers of the pages that it viewed, and the times of these views, in
   * their order. Times are in microseconds.
   */
  add(updatedAt: number, pages: readonly number[], times: readonly number[]): void {
    this.#entries++;
    this.#oldest = Math.min(this.#oldest, updatedAt);
    this.#newest = Math.max(this.#newest, updatedAt);
    if (pages.length === 0) return;
    this.#started++;
    this.#views += pages.length;
    for (let i = 0; i + 1 < pages.length; i++) this.#pages[pages[i] ?? 0]?.durations.push((times[i + 1] ?? 0) - (times[i] ?? 0));
    const set = [...new Set(pages)].sort((a, b) => a - b).join();
    this.#sets.set(set, (this.#sets.get(set) ?? 0) + 1);
  }

  /** figures returns the figures of the events so far. */
  figures(): Figures {
    const order = this.#pages.map((_, number) => number).sort((a, b) => compare(this.#pages[a], this.#pages[b]));
    const places: number[] = [];
    order.forEach((number, place) => (places[number] = place));
    const reached = new Array<number>(order.length).fill(0);
    const dropped = new Array<number>(order.length).fill(0);
    for (const [set, entries] of this.#sets) {
      let last = 0;
      for (const number of set.split(",")) {
        const place = places[Number(number)] ?? 0;
        reached[place] = (reached[place] ?? 0) + entries;
        last = Math.max(last, place);
      }
      dropped[last] = (dropped[last] ?? 0) + entries;
    }
    const pages = order.flatMap((number, place) => {
      const page = this.#pages[number];
      if (!page) return [];
      const median = page.durations.median();
      return {
        id: page.id, key: page.key, index: page.index,
        reached: reached[place] ?? 0, dropped: dropped[place] ?? 0,
        timed: page.durations.length, median: median === null ? null : median / 1000,
      };
    });
    return { entries: this.#entries, started: this.#started, views: this.#views, oldest: this.#oldest, newest: this.#newest, pages };
  }
}

function compare(a: Page | undefined, b: Page | undefined): number {
  if (!a || !b) return 0;
  if (a.index !== b.index) return a.index - b.index;
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
