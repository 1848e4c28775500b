// The path of a visitor through the pages of an embeddable, from the events of an entry.
import type { EntryEvent } from "@lectern/client";

/** Stop is a page view with the events until the next one. */
export interface Stop {
  /** The page view, or undefined for events before the first one. */
  view: EntryEvent | undefined;
  /** The time of its first event, which can be the page view. */
  start: string;
  events: EntryEvent[];
  /** Milliseconds until the next page view; for the last one until its last event, or undefined if it has none. */
  duration: number | undefined;
}

/** stopsOf returns the stops of events that are sorted by time, the oldest first. */
export function stopsOf(events: readonly EntryEvent[]): Stop[] {
  const stops: Stop[] = [];
  for (const event of events) {
    const view = event.event_type === "flowpage.viewed" ? event : undefined;
    const last = stops.at(-1);
    if (view || !last) stops.push({ view, start: event.timestamp, events: view ? [] : [event], duration: undefined });
    else last.events.push(event);
  }
  stops.forEach((stop, i) => {
    const end = stops[i + 1]?.view ?? stop.events.at(-1);
    if (stop.view && end) stop.duration = Date.parse(end.timestamp) - Date.parse(stop.view.timestamp);
  });
  return stops;
}
