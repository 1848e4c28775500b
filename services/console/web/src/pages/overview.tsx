import { useEffect, useMemo, useState } from "preact/hooks";
import { collect, connect, paced, useLoad, useNames } from "../api.ts";
import { Days } from "../days.ts";
import { zone } from "../preferences.ts";
import { address } from "../router.ts";
import { ago, count, counted, day, dayStarts, isoDay } from "../time.ts";
import { Bars, colours } from "../ui/bars.tsx";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Empty, Loaded, Problem, useNow } from "../ui/state.tsx";

/** How many days the overview shows. */
const length = 30;
/** How many running experiments are listed. */
const shown = 10;

interface Window {
  days: Days;
  /** The cursor of the change feed after the records so far. */
  cursor: string;
  /** Whether the days end in the past, with the newest entry. */
  past: boolean;
  read: number;
  complete: boolean;
}

/** Overview shows the entries of the last days, the latest entries, and the running experiments. */
export function Overview({ project }: { project: string }) {
  const title = useNames(project);

  // The days follow the calendar while the page stays open.
  const today = isoDay(useNow(60_000));
  const window = useLoad<Window | null>(
    async ({ client, signal }, show) => {
      // The cursor comes first, so that nothing is missed between the list and the feed. Records in both are counted once.
      const cursor = await client.changesCursor(project, { types: ["entry", "entry_removed"] }, { signal });
      const newest = await collect(client.entries(project, { limit: 10 }, { signal }));
      const [last] = await collect(client.entries(project, { sort: "created_at", limit: 1 }, { signal }));
      if (!last) return null;
      const now = Date.now();
      const borders = dayStarts(now, length);
      const past = Date.parse(last.created_at) < (borders[0] ?? 0);
      const days = new Days(past ? dayStarts(Date.parse(last.created_at), length) : borders);
      for (const entry of newest.reverse()) days.show(entry);
      const state = { days, cursor, past, read: 0, complete: false };
      const showSometimes = paced(200, () => show({ ...state }));
      // An entry is never updated before it is created. The filter excludes its own moment.
      const after = new Date((days.starts[0] ?? 0) - 1);
      for await (const entry of client.entries(project, { updated_after: after, pageSize: 10_000 }, { signal })) {
        days.add(entry);
        state.read++;
        showSometimes();
      }
      return { ...state, complete: true };
    },
    [project, zone.value, today],
  );
  const live = useLive(project, window.value?.complete ? window.value : undefined, window.reload);

  return (
    <section class="page">
      <PageHead title="Overview" />
      <Loaded load={window} what="entries" rows={6}>
        {(w) =>
          w === null ? (
            <Empty title="This project has no entries yet">
              <p class="muted">
                Entries appear here as soon as they are sent in. <a href={address(project, "connect")}>Connect</a> shows how they are read.
              </p>
            </Empty>
          ) : (
            <>
              {/* The days change in place. Only a new object draws them again. */}
              <EntriesPerDay w={{ ...w }} title={title} />
              <div class="columns">
                <Latest project={project} w={w} title={title} live={live} reload={window.reload} />
                <Running project={project} title={title} />
              </div>
            </>
          )
        }
      </Loaded>
    </section>
  );
}

function EntriesPerDay({ w, title }: { w: Window; title: (id: string) => string }) {
  const { days } = w;
  const series = useMemo(() => days.series(colours, title), [days, days.version, title]);
  const first = days.starts[0] ?? 0;
  const last = days.starts.at(-1) ?? 0;
  const period = `${day(first)} to ${day(last)}`;
  return (
    <section class="card" aria-labelledby="perday">
      <div class="pagehead">
        <div>
          <h2 id="perday">Entries a day</h2>
          <p class="muted small">
            {w.past ? `No entries in the last ${length} days. Shown: the ${length} days up to the last entry, ${period}.` : period}
            {!w.complete && ` ${count(w.read)} read so far…`}
          </p>
        </div>
        <div class="figures">
          <p class="figure">
            <b data-figure="total">{count(days.total)}</b> <span class="muted small">in {length} days</span>
          </p>
          <p class="figure">
            <b data-figure="today">{count(days.today)}</b> <span class="muted small">{w.past ? "on the last day" : "today"}</span>
          </p>
        </div>
      </div>
      <Bars label={`Entries a day by embeddable, ${period}: ${counted(days.total, "entry", "entries")}`} days={days.starts} series={series} />
    </section>
  );
}

/** Live is the state of the change feed. An error has ended it. */
type Live = "connecting" | "live" | "broken" | Error;

/**
 * useLive follows the change feed from where the window ends, for as long as the page is shown. It reads the window again
 * if that ends in the past and an entry comes in today.
 */
function useLive(project: string, from: Window | undefined, reload: () => void): Live {
  const [live, setLive] = useState<Live>("connecting");
  const [, setVersion] = useState(0);
  useEffect(() => {
    if (!from) return;
    const controller = new AbortController();
    const { signal } = controller;
    const client = connect(() => setLive("broken"), Infinity);
    const follow = async () => {
      setLive("live");
      for await (const page of client.follow(project, { cursor: from.cursor, types: ["entry", "entry_removed"], wait: 50 }, { signal })) {
        for (const change of page.changes) from.days.apply(change);
        const recent = dayStarts(Date.now(), length)[0] ?? 0;
        if (from.past && page.changes.some((c) => c.change === "entry" && Date.parse(c.entry.created_at) >= recent)) return reload();
        setLive("live");
        setVersion(from.days.version);
      }
    };
    follow().catch((error: unknown) => {
      if (!signal.aborted) setLive(error instanceof Error ? error : new Error(String(error)));
    });
    return () => controller.abort();
  }, [project, from?.days]);
  return live;
}

interface LatestProps {
  project: string;
  w: Window;
  title: (id: string) => string;
  live: Live;
  reload: () => void;
}

function Latest({ project, w, title, live, reload }: LatestProps) {
  const now = useNow(1000);
  return (
    <section class="card" aria-labelledby="latest">
      <div class="pagehead">
        <h2 id="latest">Last updated</h2>
        {live instanceof Error || <span data-live={live}>{live === "live" ? <Badge tone="good">Live</Badge> : live === "broken" ? <Badge tone="busy">Reconnecting</Badge> : <Badge tone="off">Connecting</Badge>}</span>}
      </div>
      {live instanceof Error && <Problem error={live} retry={reload} />}
      <ul class="rows">
        {w.days.newest.map((entry) => (
          <li key={entry.entry_id}>
            <a href={address(project, "entries", entry.entry_id)}>
              <Text>{entry.entry_id}</Text>
            </a>
            <span class="muted">
              <Text>{title(entry.embeddable_id)}</Text>
            </span>
            <span class="muted small number">
              <Time at={entry.updated_at} {...(Math.abs(now - Date.parse(entry.updated_at)) < 3_600_000 && { show: (at: number) => ago(at, now) })} />
            </span>
          </li>
        ))}
      </ul>
      <p>
        <a href={address(project, "entries")}>All entries</a>
      </p>
    </section>
  );
}

function Running({ project, title }: { project: string; title: (id: string) => string }) {
  const running = useLoad(async ({ client, signal }) => collect(client.experiments(project, { status: "running" }, { signal })), [project]);
  return (
    <section class="card" aria-labelledby="running">
      <h2 id="running">Running experiments</h2>
      <Loaded load={running} what="experiments" rows={2}>
        {(experiments) =>
          experiments.length === 0 ? (
            <p class="muted">No experiment runs at the moment.</p>
          ) : (
            <ul class="rows">
              {experiments.slice(0, shown).map((e) => (
                <li key={e.id}>
                  <a href={address(project, "experiments", e.id)}>
                    <Text>{e.name ?? e.id}</Text>
                  </a>
                  <span class="muted">
                    <Text>{title(e.flowId)}</Text>
                  </span>
                  <span class="muted small number">
                    <Time at={e.created_at} show={day} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <p>
        <a href={address(project, "experiments")}>All experiments</a>
        {(running.value?.length ?? 0) > shown && <span class="muted small"> {count(running.value?.length ?? 0)} run at the moment.</span>}
      </p>
    </section>
  );
}
