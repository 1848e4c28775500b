import type { Entry } from "@lectern/client";
import { type Live, useNews } from "../api.ts";
import { listed, narrowedIn, ofEmbeddable } from "../filters.ts";
import { entriesPeriod, sum, usePeriod } from "../insights.ts";
import { type Load, useLoad } from "../load.ts";
import { useEmbeddables, useNames } from "../names.ts";
import { type Overview as Figures, readOverview } from "../overview.ts";
import { address, filter, here } from "../router.ts";
import { ago, count, counted, day, dayStarts, hour, isoDay, percent, shortDay } from "../time.ts";
import { type Bar, BarChart } from "../ui/bars.tsx";
import { EmbeddableSelect, EmbeddableTable } from "../ui/embeddables.tsx";
import { Filters } from "../ui/filters.tsx";
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
  const narrowed = narrowedIn(here.value.query);
  const embeddables = useEmbeddables(project);
  // The figures are read once the page follows the changes, so that they miss none.
  const news = () => {
    load.reload();
    latest.reload();
  };
  const { live, ready } = useNews(project, news, true);
  const load = useLoad(
    async ({ client, signal }) => (period.reversed ? undefined : readOverview(client, project, period, embeddable, narrowed, signal)),
    ["overview", project, embeddable, narrowed, ...inputs],
    ready,
  );
  const latest = useLoad(({ client, signal }) => Array.fromAsync(client.entries(project, { limit: shown }, { signal })), ["latest", project], ready);
  return (
    <>
      <PageHead title="Overview" lead="An embeddable is a form or quiz on your website. An entry is one visitor’s way through it, with the answers." />
      {(load.value !== null || embeddable) && (
        <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
          <PeriodFilter period={period} />
          <EmbeddableSelect embeddables={embeddables} value={embeddable ?? ""} choose={(id) => filter({ ...ofEmbeddable, embeddable: id })} />
          <Filters project={project} embeddable={embeddable} of={narrowed} />
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
              <Summary project={project} embeddable={embeddable} {...value} />
              <Chart project={project} embeddable={embeddable} {...value} />
              <section class="card" aria-labelledby="flows">
                <h2 id="flows">Embeddables</h2>
                <EmbeddableTable project={project} embeddables={(embeddables.value ?? []).filter((e) => !embeddable || e.embeddable_id === embeddable)} counts={value.embeddables.filter((one) => one.entries > 0)} span={value.span} before={value.earlier && value.embeddables.flatMap(({ embeddable_id, previous }) => (previous?.entries ? [{ embeddable_id, ...previous }] : []))} most={shown} />
              </section>
            </>
          )
        }
      </Loaded>
      {load.value && <Latest project={project} live={live} load={latest} />}
      {load.value && <Running project={project} />}
    </>
  );
}

function Summary({ project, embeddable, span, total, earlier, embeddables }: Figures & { project: string; embeddable: string | undefined }) {
  const change = (n: number, old: number | undefined) => (old ? <><Change now={n} old={old} /> against {span.before?.name}</> : earlier && `none in ${span.before?.name}`);
  const rate = total.completed / total.started;
  const old = earlier && earlier.started > 0 ? earlier.completed / earlier.started : undefined;
  const list = (completed: string) => address(project, "entries", "", { embeddable, ...listed(narrowedIn(here.value.query)), ...(completed && { completed }), ...entriesPeriod() });
  return (
    <dl class="figures card" aria-label="Summary">
      <Figure name="Entries" id="entries" to={list("")} value={count(total.entries)} note={change(total.entries, earlier?.entries)} />
      <Figure name="Completed" id="completed" to={list("true")} value={count(total.completed)} note={change(total.completed, earlier?.completed)} />
      <Figure
        name="Completion rate"
        id="rate"
        value={percent(rate)}
        note={<>of those who saw a page{old !== undefined && !Number.isNaN(rate) && <>; <Change now={rate} old={old} points /></>}</>}
      />
      <Drop project={project} embeddables={embeddables.filter(({ entries }) => entries > 0)} />
    </dl>
  );
}

/** Drop names the page that lost most, of the embeddable with most entries. */
function Drop({ project, embeddables: [busiest, ...others] }: { project: string; embeddables: Figures["embeddables"] }) {
  const title = useNames(project);
  if (!busiest) return null;
  const { embeddable_id: id, largest_drop: drop } = busiest;
  const link = <a href={address(project, "funnel", id)}>{others.length === 0 ? "Funnel" : <Text>{title(id)}</Text>}</a>;
  return <Figure name="Largest drop" id="drop" value={drop ? percent(drop.dropped / drop.reached) : "None"} note={<>{drop && <>left on page “{pageName(drop)}” of </>}{link}</>} />;
}

const names = { hour: "Entries an hour", day: "Entries a day", week: "Entries a week", month: "Entries a month" };

function Chart({ project, embeddable, span, until, interval, intervals: bars, total }: Figures & { project: string; embeddable: string | undefined }) {
  // Entries with a clock that is far off have no interval. They count above.
  const dated = bars.flatMap(({ from, to, ...bar }) => (from !== null && to !== null ? [{ ...bar, from: Date.parse(from), to: Date.parse(to) }] : []));
  const slot = (at: number) => (interval === "hour" ? at : isoDay(at));
  const bySlot = new Map(dated.map((bar) => [slot(bar.from), bar]));
  const { from: first, until: end } = span;
  // The server leaves out hours and days before the first entry and after the last one.
  const starts =
    first === undefined || end === undefined ? dated.map((bar) => bar.from)
    : interval === "hour" ? [...new Set([...Array.from({ length: Math.round((end - first) / 3_600_000) }, (_, i) => first + i * 3_600_000), ...dated.map((bar) => bar.from)])].sort((a, b) => a - b)
    : interval === "day" ? dayStarts(end - 1, span.days).slice(0, -1)
    : dated.map((bar) => bar.from);
  const rows: Bar[] = starts.map((at) => {
    const found = bySlot.get(slot(at));
    // The first and the last interval may be longer than the period. A bar counts, and links to, the days of the period alone.
    const from = Math.max(at, span.from ?? at);
    const last = Math.min(found?.to ?? Infinity, until ?? Infinity);
    const partial = found !== undefined && (from > at || last < found.to);
    return {
      name: interval === "hour" ? hour(at) : interval === "day" ? shortDay(at) : partial ? `${day(from)}, a part of the ${interval}` : day(at),
      partial,
      whole: found?.entries ?? 0,
      part: found?.completed ?? 0,
      started: found?.started ?? 0,
      // A list has whole days.
      to: interval === "hour" ? undefined : address(project, "entries", "", { embeddable, ...listed(narrowedIn(here.value.query)), from: isoDay(from), to: isoDay(found ? last - 1 : at) }),
    };
  });
  const left = total.entries - sum(dated).entries;
  return (
    <section class="card" aria-labelledby="chart">
      <div class="pagehead">
        <h2 id="chart">{names[interval]}</h2>
        <p class="legend muted" aria-hidden="true">
          <span><i class="part" /> completed: reached the last page</span>
          <span><i class="whole" /> left before</span>
        </p>
      </div>
      <BarChart label={`${names[interval]}, ${spanText(span)}`} axis={interval === "hour" ? "Hour" : interval === "day" ? "Day" : `Begin of the ${interval}`} bars={rows} />
      {left > 0 && (
        <p class="muted small" data-left={left}>
          {counted(left, "entry is", "entries are")} not in the chart, because {left === 1 ? "its clock says" : "their clocks say"} a year before 2000 or a day after today.{" "}
          <a href={address(project, "entries", "", { embeddable, ...entriesPeriod() })}>All entries of the period</a>
        </p>
      )}
    </section>
  );
}

function Latest({ project, live, load }: { project: string; live: Live; load: Load<Entry[]> }) {
  const now = useNow(1000);
  const title = useNames(project);
  return (
    <section class="card" aria-labelledby="latest">
      <div class="pagehead">
        <h2 id="latest">Latest answers</h2>
        {live instanceof Error || <span data-live={live}>{live === "live" ? <Badge tone="good">Live</Badge> : live === "broken" ? <Badge tone="busy">Reconnecting</Badge> : <Badge tone="off">Connecting</Badge>}</span>}
      </div>
      {live instanceof Error && <Problem error={live} retry={() => location.reload()} />}
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
  const running = useLoad(({ client, signal }) => Array.fromAsync(client.experiments(project, { status: "running" }, { signal })), ["running", project]);
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
