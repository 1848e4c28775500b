import type { EntryCount } from "@lectern/client";
import { useEffect } from "preact/hooks";
import { collect, type Live, useEmbeddables, useLoad, useNames, useNews } from "../api.ts";
import { before, counts, created, largestDrop, samePeriod, type Span, spanOf, sum, usePeriod } from "../insights.ts";
import { address, filter, here } from "../router.ts";
import { ago, count, counted, day, dayStarts, isoDay, percent, shortDay } from "../time.ts";
import { type Bar, BarChart } from "../ui/bars.tsx";
import { EmbeddableSelect, EmbeddableTable } from "../ui/embeddables.tsx";
import { FirstEntry } from "../ui/first.tsx";
import { Badge, Change, Figure, PageHead, pageName, Text, Time, TitleOf } from "../ui/parts.tsx";
import { PeriodFilter, spanText } from "../ui/period.tsx";
import { Loaded, Problem, Reversed, useNow } from "../ui/state.tsx";

/** How many running experiments and embeddables are listed. */
const shown = 10;

/** Overview shows how many entries there were, how many of them were completed, and where most were lost. */
export function Overview({ project }: { project: string }) {
  const { period, inputs } = usePeriod();
  const embeddable = here.value.query.get("embeddable") || undefined;
  const embeddables = useEmbeddables(project);
  const load = useLoad(
    async ({ client, signal }) => {
      if (period.reversed) return undefined;
      const span = await spanOf(client, project, period, embeddable, signal);
      if (!span) return null;
      const of = { embeddable_id: embeddable };
      const earlier = before(span);
      const interval: Value["interval"] = span.days <= 92 ? "day" : span.days <= 700 ? "week" : "month";
      // Not beyond today: an entry with a clock in 2099 counts, but is no reason for 70 empty years.
      const until = span.until ?? dayStarts(Date.now(), 1)[1];
      const [bars, now, past] = await Promise.all([
        counts(client, project, { ...of, ...created({ from: span.from, until }), interval }, signal),
        counts(client, project, { ...of, ...created(span), interval: "all", by: "embeddable" }, signal),
        earlier && counts(client, project, { ...of, ...created(earlier), interval: "all", by: "embeddable" }, signal),
      ]);
      return { span, until, interval, bars, now, past };
    },
    [project, embeddable, ...inputs],
  );
  const live = useNews(project, load.reload);
  return (
    <>
      <PageHead title="Overview" lead="An embeddable is a form or quiz on your website. An entry is one visitor’s way through it, with the answers." />
      {(load.value !== null || embeddable) && (
        <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
          <PeriodFilter period={period} />
          <EmbeddableSelect embeddables={embeddables} value={embeddable ?? ""} choose={(id) => filter({ embeddable: id })} />
        </form>
      )}
      <Loaded load={load} what="the figures" rows={6}>
        {(value) =>
          value === null ? (
            <FirstEntry project={project} embeddable={embeddable} wake={load.reload} />
          ) : value === undefined ? (
            <Reversed />
          ) : (
            <>
              <p class="muted small">{spanText(value.span)}</p>
              <Summary project={project} {...value} />
              <Chart project={project} embeddable={embeddable} {...value} />
              <section class="card" aria-labelledby="flows">
                <h2 id="flows">Embeddables</h2>
                <EmbeddableTable project={project} embeddables={(embeddables.value ?? []).filter((e) => !embeddable || e.embeddable_id === embeddable)} counts={value.now} span={value.span} before={value.past} most={shown} />
              </section>
            </>
          )
        }
      </Loaded>
      {load.value && <Latest project={project} live={live} version={load.value} reload={load.reload} />}
      {load.value && <Running project={project} />}
    </>
  );
}

interface Value {
  span: Span;
  /** Where the last bar ends. */
  until: number | undefined;
  interval: "day" | "week" | "month";
  bars: EntryCount[];
  now: EntryCount[];
  past: EntryCount[] | undefined;
}

function Summary({ project, span, now, past }: Value & { project: string }) {
  const [figures, earlier] = [sum(now), past && sum(past)];
  const change = (n: number, old: number | undefined) => (old ? <><Change now={n} old={old} /> against the {span.days} days before</> : earlier && "none in the period before");
  const rate = figures.completed / figures.started;
  const old = earlier && earlier.started > 0 ? earlier.completed / earlier.started : undefined;
  const busiest = [...now].sort((a, b) => b.entries - a.entries)[0]?.embeddable_id ?? undefined;
  return (
    <dl class="figures card" aria-label="Summary">
      <Figure name="Entries" id="entries" value={count(figures.entries)} note={change(figures.entries, earlier?.entries)} />
      <Figure name="Completed" id="completed" value={count(figures.completed)} note={change(figures.completed, earlier?.completed)} />
      <Figure
        name="Completion rate"
        id="rate"
        value={percent(rate)}
        note={<>of those who saw a page{old !== undefined && !Number.isNaN(rate) && <>; <Change now={rate} old={old} points /></>}</>}
      />
      {busiest && <Drop key={JSON.stringify([busiest, span.from, span.until])} project={project} embeddable={busiest} span={span} now={now} />}
    </dl>
  );
}

/** Drop names the page of an embeddable that lost most. It reads the funnel again when the other figures change. */
function Drop({ project, embeddable, span, now }: { project: string; embeddable: string } & Pick<Value, "span" | "now">) {
  const title = useNames(project)(embeddable);
  const load = useLoad(async ({ client, signal }) => (await client.funnels(project, { embeddable_id: embeddable, ...created(span) }, { signal }))[0], [project, embeddable, span.from, span.until, now]);
  const drop = load.value && largestDrop(load.value);
  const link = <a href={address(project, "funnel", embeddable, samePeriod())}>{now.length === 1 ? "Funnel" : <Text>{title}</Text>}</a>;
  if (load.state !== "done" && !load.value) return <Figure name="Largest drop" id="drop" value={load.state === "failed" ? "–" : "…"} note={load.error?.message ?? "Counting"} />;
  return <Figure name="Largest drop" id="drop" value={drop ? percent(drop.dropped / drop.reached) : "None"} note={<>{drop && <>left on page “{pageName(drop)}” of </>}{link}</>} />;
}

const intervals = { day: "Entries a day", week: "Entries a week", month: "Entries a month" };

function Chart({ project, embeddable, span, until, interval, bars }: Value & { project: string; embeddable: string | undefined }) {
  // Entries with a clock that is far off have no interval. They count above.
  const dated = bars.flatMap(({ from, to, ...bar }) => (from !== null && to !== null ? [{ ...bar, from: Date.parse(from), to: Date.parse(to) }] : []));
  const byDay = new Map(dated.map((bar) => [isoDay(bar.from), bar]));
  const bounded = interval === "day" && span.from !== undefined && span.until !== undefined;
  // The server leaves out days before the first entry and after the last one.
  const starts = bounded ? dayStarts((span.until ?? 0) - 1, span.days).slice(0, -1) : dated.map((bar) => bar.from);
  const rows: Bar[] = starts.map((at) => {
    const found = byDay.get(isoDay(at));
    // The first and the last interval may be longer than the period. A bar counts, and links to, the days of the period alone.
    const from = Math.max(at, span.from ?? at);
    const end = Math.min(found?.to ?? Infinity, until ?? Infinity);
    const partial = found !== undefined && (from > at || end < found.to);
    return {
      name: interval === "day" ? shortDay(at) : partial ? `${day(from)}, a part of the ${interval}` : day(at),
      partial,
      whole: found?.entries ?? 0,
      part: found?.completed ?? 0,
      started: found?.started ?? 0,
      to: address(project, "entries", "", { embeddable, from: isoDay(from), to: isoDay(found ? end - 1 : at) }),
    };
  });
  return (
    <section class="card" aria-labelledby="chart">
      <div class="pagehead">
        <h2 id="chart">{intervals[interval]}</h2>
        <p class="legend muted" aria-hidden="true">
          <span><i class="part" /> completed: reached the last page</span>
          <span><i class="whole" /> left before</span>
        </p>
      </div>
      <BarChart label={`${intervals[interval]}, ${spanText(span)}`} axis={interval === "day" ? "Day" : `Begin of the ${interval}`} bars={rows} />
    </section>
  );
}

function Latest({ project, live, version, reload }: { project: string; live: Live; version: object; reload: () => void }) {
  const now = useNow(1000);
  const title = useNames(project);
  const load = useLoad(({ client, signal }) => collect(client.entries(project, { limit: shown }, { signal })), [project]);
  useEffect(load.reload, [version]);
  return (
    <section class="card" aria-labelledby="latest">
      <div class="pagehead">
        <h2 id="latest">Latest answers</h2>
        {live instanceof Error || <span data-live={live}>{live === "live" ? <Badge tone="good">Live</Badge> : live === "broken" ? <Badge tone="busy">Reconnecting</Badge> : <Badge tone="off">Connecting</Badge>}</span>}
      </div>
      {live instanceof Error && <Problem error={live} retry={reload} />}
      <Loaded load={load} what="entries" rows={4}>
        {(entries) => (
          <ul class="rows">
            {entries.map((entry) => (
              <li key={entry.entry_id}>
                <a href={address(project, "entries", entry.entry_id)}><TitleOf entry={entry} /></a>
                <span class="muted"><Text>{title(entry.embeddable_id)}</Text></span>
                <span class="muted small number">
                  <Time at={entry.updated_at} {...(Math.abs(now - Date.parse(entry.updated_at)) < 3_600_000 && { show: (at: number) => ago(at, now) })} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <p><a href={address(project, "entries")}>All entries</a></p>
    </section>
  );
}

function Running({ project }: { project: string }) {
  const title = useNames(project);
  const running = useLoad(({ client, signal }) => collect(client.experiments(project, { status: "running" }, { signal })), [project]);
  const more = (running.value?.length ?? 0) > shown;
  return (
    <section class="card" aria-labelledby="running">
      <h2 id="running">Running experiments</h2>
      <Loaded load={running} what="experiments" rows={2}>
        {(experiments) =>
          experiments.length === 0 ? (
            <p class="muted">No experiment runs at the moment. An experiment shows variants of an embeddable to different visitors.</p>
          ) : (
            <ul class="rows">
              {experiments.slice(0, shown).map((e) => (
                <li key={e.id}>
                  <a href={address(project, "experiments", e.id)}><Text>{e.name || e.id}</Text></a>
                  <span class="muted"><Text>{title(e.flowId)}</Text></span>
                  <span class="muted small number"><Time at={e.created_at} show={day} /></span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <p>
        <a href={address(project, "experiments")}>All experiments</a>
        {more && <span class="muted small"> {counted(running.value?.length ?? 0, "runs", "run")} at the moment.</span>}
      </p>
    </section>
  );
}
