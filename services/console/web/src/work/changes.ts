// Holds the part of a project's change feed that the funnel of one version needs.
import type { Change } from "@lectern/client";
import { type Figures, Funnel, micros, Numbers, type PageSeen } from "./funnel.ts";

/** Wanted selects page views: of one version of an embeddable, of entries that were updated in a period. */
export interface Wanted {
  embeddable: string;
  version: number;
  /** In microseconds since 1970; the first moment of the period, and the first moment after it. */
  from: number;
  until: number;
}

/**
 * Replica holds the wanted page views while the feed is read: 24 bytes for each, and the id of each entry that it may
 * belong to. The feed gives an entry after its events or before them, again when it was updated, and its removal.
 */
export class Replica {
  readonly #wanted: Wanted;
  readonly #slots = new Map<string, number>(); // of entry ids
  // For each slot: when the entry was updated, NaN as long as it is not wanted; and how many of the views came before its removal.
  readonly #updated = new Numbers();
  readonly #removed = new Numbers();
  // For each view: its slot, its page and its time.
  readonly #slot = new Numbers();
  readonly #page = new Numbers();
  readonly #time = new Numbers();
  // The pages, as views describe them.
  readonly #seen: PageSeen[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
  }

  /** apply takes the next change of the feed. */
  apply(change: Change): void {
    const { embeddable, version, from, until } = this.#wanted;
    switch (change.change) {
      case "entry": {
        const { entry } = change;
        const at = micros(entry.updated_at);
        const wanted = entry.embeddable_id === embeddable && at >= from && at < until;
        if (wanted) this.#updated.set(this.#slotOf(entry.entry_id), at);
        else this.#forget(entry.entry_id);
        return;
      }
      case "event": {
        const { event } = change;
        if (event.event_type !== "flowpage.viewed" || event.embeddable_id !== embeddable || event.embeddable_version_number !== version) return;
        const { page_id, page_key, page_index } = event;
        if (page_id === null || page_key === null || page_index === null) return;
        this.#slot.push(this.#slotOf(event.entry_id));
        this.#page.push(this.#pageOf({ page_id, page_key, page_index }));
        this.#time.push(micros(event.timestamp));
        return;
      }
      case "entry_removed": {
        const slot = this.#forget(change.entry_id);
        if (slot !== undefined) this.#removed.set(slot, this.#slot.length);
      }
    }
  }

  /** figures returns the figures of the feed as far as it was read. */
  figures(): Figures {
    const byEntry: number[][] = Array.from({ length: this.#updated.length }, () => []);
    for (let view = 0; view < this.#slot.length; view++) {
      const slot = this.#slot.at(view);
      if (!Number.isNaN(this.#updated.at(slot)) && view >= this.#removed.at(slot)) byEntry[slot]?.push(view);
    }
    const funnel = new Funnel();
    byEntry.forEach((views, slot) => {
      const updated = this.#updated.at(slot);
      if (Number.isNaN(updated)) return;
      views.sort((a, b) => this.#time.at(a) - this.#time.at(b) || a - b);
      const times = views.map((view) => this.#time.at(view));
      const pages = views.map((view, i) => {
        const seen = this.#seen[this.#page.at(view)];
        return seen ? funnel.page(seen, times[i] ?? 0) : 0;
      });
      funnel.add(updated, pages, times);
    });
    return funnel.figures();
  }

  #slotOf(entry: string): number {
    let slot = this.#slots.get(entry);
    if (slot === undefined) {
      slot = this.#slots.size;
      this.#slots.set(entry, slot);
      this.#updated.push(NaN);
      this.#removed.push(0);
    }
    return slot;
  }

  #forget(entry: string): number | undefined {
    const slot = this.#slots.get(entry);
    if (slot !== undefined) this.#updated.set(slot, NaN);
    return slot;
  }

  #pageOf(seen: PageSeen): number {
    const name = JSON.stringify([seen.page_id, seen.page_key, seen.page_index]);
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#seen.push(seen) - 1;
      this.#numbers.set(name, number);
    }
    return number;
  }
}
