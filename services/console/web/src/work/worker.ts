// The worker of the funnel: reads the API and counts, so that the page stays free. It takes one order and ends with it.
import { Client } from "@lectern/client";
import { Replica } from "./changes.ts";
import { type Figures, Funnel, micros } from "./funnel.ts";
import { type Counted, type News, type Order, plain } from "./messages.ts";

// The client keeps the text of one page of entries; a page of changes comes as a whole.
const pageSize = 10_000;

const say = (news: News) => postMessage(news);

/** Progress reports the counts so far, at most four times a second and with at most a quarter of the worker's time. */
class Progress {
  readonly #started = performance.now();
  #next = this.#started + 100;

  due(): boolean {
    return performance.now() >= this.#next;
  }

  counted(figures: Figures, changes?: number): Counted {
    return { figures, changes, ms: performance.now() - this.#started };
  }

  say(count: () => Counted): void {
    const before = performance.now();
    say({ type: "progress", counted: count() });
    const after = performance.now();
    this.#next = after + Math.max(250, 3 * (after - before));
  }
}

/** countPageViews counts all versions, from the list of page views. */
async function countPageViews(client: Client, order: Order): Promise<Counted> {
  const progress = new Progress();
  const funnel = new Funnel();
  let last = Infinity;
  const list = client.pageViews(order.project, {
    embeddable_id: order.embeddable,
    pageSize,
    // The API leaves the borders out, the period has its first moment. Times of the API have microseconds.
    ...(order.from !== undefined && { updated_after: new Date(order.from - 1).toISOString().replace("Z", "999Z") }),
    ...(order.until !== undefined && { updated_before: new Date(order.until) }),
  });
  for await (const entry of list) {
    const updatedAt = micros(entry.updated_at);
    // The list goes back in time. A newer entry was updated since then: it may have been counted already.
    if (updatedAt > last) continue;
    last = updatedAt;
    const times = entry.page_views.map((view) => micros(view.timestamp));
    const pages = entry.page_views.map((view, i) => funnel.page(view, times[i] ?? 0));
    funnel.add(updatedAt, pages, times);
    if (progress.due()) progress.say(() => progress.counted(funnel.figures()));
  }
  return progress.counted(funnel.figures());
}

/** countChanges counts one version, from the change feed: only events say to which version they belong. */
async function countChanges(client: Client, order: Order, version: number): Promise<Counted> {
  const progress = new Progress();
  const { embeddable, from = -Infinity, until = Infinity } = order;
  const replica = new Replica({ embeddable, version, from: from * 1000, until: until * 1000 });
  let changes = 0;
  const feed = client.changes(order.project, { types: ["entry", "event", "entry_removed"], limit: pageSize });
  for await (const page of feed) {
    for (const change of page.changes) replica.apply(change);
    changes += page.changes.length;
    if (progress.due()) progress.say(() => progress.counted(replica.figures(), changes));
  }
  return progress.counted(replica.figures(), changes);
}

addEventListener("message", async ({ data: order }: MessageEvent<Order>) => {
  try {
    const client = new Client({
      baseURL: location.origin,
      apiKey: order.apiKey,
      retry: { attempts: 6, longestMs: 60_000, onRetry: (error, ms) => say({ type: "waiting", error: plain(error), until: Date.now() + ms }) },
    });
    const counted = order.version === undefined ? await countPageViews(client, order) : await countChanges(client, order, order.version);
    say({ type: "done", counted });
  } catch (error) {
    say({ type: "failed", error: plain(error) });
  }
});
