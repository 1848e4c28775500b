// The funnel of an embeddable: which pages its entries reached, where they dropped off, and how long they took.
import { APIError, type Funnel as Figures, type FunnelPage } from "@lectern/client";
import { useState } from "preact/hooks";
import { useLoad, useNames } from "../api.ts";
import { created, largestDrop, spanOf, usePeriod } from "../insights.ts";
import { filter, filtered, here } from "../router.ts";
import { count, counted, duration, percent } from "../time.ts";
import { Share } from "../ui/bars.tsx";
import { FirstEntry } from "../ui/first.tsx";
import { Figure, PageHead, pageName, Tabs, Text } from "../ui/parts.tsx";
import { PeriodFilter, spanText } from "../ui/period.tsx";
import { Empty, Loaded, Reversed } from "../ui/state.tsx";

/** How many versions stand side by side at first. */
const sideBySide = 4;
/** More rows than this only come from data that is wrong. They are drawn when the visitor asks for them. */
const rowsAtFirst = 100;

/** Funnel shows the funnel of one embeddable: all versions together and side by side, or one version. */
export function Funnel({ project, id }: { project: string; id: string }) {
  const { query } = here.value;
  const { period, inputs } = usePeriod();
  const said = query.get("version") ?? "";
  const version = /^\d{1,15}$/.test(said) ? Number(said) : undefined;
  const title = useNames(project)(id);
  const load = useLoad(
    async ({ client, signal }) => {
      if (period.reversed) return undefined;
      const span = await spanOf(client, project, period, id, signal);
      if (!span) return null;
      const of = { embeddable_id: id, ...created(span) };
      // Of one version, only its own views count. So its figures are those of its column beside other versions.
      if (version !== undefined) return { span, all: (await client.funnels(project, { ...of, version, by: "version" }, { signal })).find((one) => one.version_number === version), versions: [] };
      const [all, each] = await Promise.all([client.funnels(project, of, { signal }), client.funnels(project, { ...of, by: "version" }, { signal }).catch(tooMany)]);
      // Entries without a view have no version. They are part of the figures of all.
      const versions = each.filter((one) => one.version_number !== null).sort((a, b) => (b.version_number ?? 0) - (a.version_number ?? 0));
      return { span, all: all[0], versions };
    },
    [project, id, version, ...inputs],
  );
  return (
    <>
      <PageHead title={title} lead="The funnel: which pages visitors reached, and where they left." />
      <Tabs project={project} id={id} current="funnel" span={load.value?.span} />
      <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <PeriodFilter period={period} />
        {version !== undefined && (
          <button type="button" class="quiet" onClick={() => filter({ version: "" })}>
            Version {version} <span aria-hidden="true">×</span>
            <span class="hidden">: show all versions</span>
          </button>
        )}
      </form>
      <Loaded load={load} what="the funnel" rows={6}>
        {(value) =>
          value === undefined ? (
            <Reversed />
          ) : value === null ? (
            <FirstEntry project={project} embeddable={id} wake={load.reload} />
          ) : (
            <div class="page" data-state="counted" data-entries={value.all?.entries ?? 0}>
              <p class="muted small">{spanText(value.span)}</p>
              {value.all && <Summary figures={value.all} />}
              {value.all && value.all.pages.length > 0 ? (
                <Pages figures={value.all} />
              ) : (
                <Empty title={value.all?.entries ? "No entry has a page view" : "No entry matches"}>
                  <p>Choose a longer period{version !== undefined && ", or another version"}.</p>
                </Empty>
              )}
              {value.versions.length > 1 && <Versions versions={value.versions} />}
            </div>
          )
        }
      </Loaded>
      <Definitions />
    </>
  );
}

/** tooMany stands for an answer with more versions and pages than the API gives. */
function tooMany(error: unknown): Figures[] {
  if (error instanceof APIError && error.status === 400) return [];
  throw error;
}

const seconds = (n: number | null) => (n === null ? "–" : duration(n * 1000));

function Summary({ figures }: { figures: Figures }) {
  const drop = largestDrop(figures);
  const without = figures.entries - figures.started;
  return (
    <>
      {drop && (
        <p class="lead" data-drop>
          The largest drop is on page {drop.page_index + 1}, “<Text>{pageName(drop)}</Text>”: {percent(drop.dropped / drop.reached)} of the visitors who reached it went no further, {count(drop.dropped)} of {count(drop.reached)}.
        </p>
      )}
      <dl class="figures card" aria-label="Summary">
        <Figure name="Entries" id="entries" value={count(figures.entries)} note={without > 0 && `${count(without)} without a page view`} />
        <Figure name="Started" id="started" value={count(figures.started)} note={percent(figures.started / figures.entries)} />
        <Figure name="Completed" id="completed" value={count(figures.completed)} note={`${percent(figures.completed / figures.started)} of started`} />
        <Figure name="Median time to complete" id="median" value={seconds(figures.median_seconds)} />
      </dl>
    </>
  );
}

function Pages({ figures }: { figures: Figures }) {
  const [all, setAll] = useState(false);
  const { pages, started } = figures;
  const shown = all ? pages : pages.slice(0, rowsAtFirst);
  const drop = largestDrop(figures);
  return (
    <div class="card">
      <p class="legend muted" aria-hidden="true">
        <span><i class="part" /> went on, or reached the last page</span>
        <span><i class="whole" /> dropped off here</span>
      </p>
      <table class="funnel" role="table" data-rows={pages.length}>
        <caption class="hidden">Pages in their order, with the entries that reached each, those that dropped off there, and the median time</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">Page</th>
            <th role="columnheader" scope="col">Reached</th>
            <th role="columnheader" scope="col" class="number">Dropped off here</th>
            <th role="columnheader" scope="col" class="number">Median time</th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {shown.map((page, i) => (
            <tr role="row" key={page.page_index} class={page.page_index === drop?.page_index ? "drop" : ""}>
              <th role="rowheader" scope="row">
                <div>
                  <span class="place">{page.page_index + 1}</span> <Text>{pageName(page)}</Text>
                </div>
              </th>
              <td role="cell" class="reach">
                <div>
                  <Share first={(page.reached - page.dropped) / started} second={page.dropped / started} />
                  <span class="reached">
                    <b>{count(page.reached)}</b> <span class="muted">{percent(page.reached / started)}</span>
                  </span>
                </div>
              </td>
              <td role="cell" class="number" data-name="Dropped off here">
                {i === pages.length - 1 && page.dropped === 0 ? <span class="muted">last page</span> : <>{count(page.dropped)} <span class="muted">{percent(page.dropped / page.reached)}</span></>}
              </td>
              <td role="cell" class="number" data-name="Median time">
                {seconds(page.median_seconds)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < pages.length && (
        <p class="actions">
          <button type="button" class="quiet" onClick={() => setAll(true)}>Show all {count(pages.length)} pages</button>
        </p>
      )}
    </div>
  );
}

/** dropOf names the page at which a version loses most. */
function dropOf(version: Figures): string {
  const drop = largestDrop(version);
  return drop ? `${pageName(drop)}: ${percent(drop.dropped / drop.reached)} left` : "–";
}

function Versions({ versions }: { versions: Figures[] }) {
  const [most, setMost] = useState(sideBySide);
  const shown = versions.slice(0, most);
  const best = [...shown].filter((v) => v.started > 0).sort((a, b) => b.completed / b.started - a.completed / a.started)[0];
  // A page of the same place and key is the same page in all versions.
  const name = (page: FunnelPage) => JSON.stringify([page.page_index, pageName(page)]);
  const rows = new Map(shown.flatMap((v) => v.pages).sort((a, b) => a.page_index - b.page_index).map((page) => [name(page), page]));
  const row = (label: string, cell: (v: Figures) => string) => (
    <tr>
      <th scope="row">{label}</th>
      {shown.map((v) => (
        <td key={v.version_number} class="number">{cell(v)}</td>
      ))}
    </tr>
  );
  return (
    <section class="card" aria-labelledby="versions">
      <h2 id="versions">Versions side by side</h2>
      <p class="muted small">
        Of the visitors that started a version, how many reached each page. {best && <>Version {best.version_number} is completed most often: {percent(best.completed / best.started)}. </>}
        An entry that saw two versions counts in both.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of versions">
        <table class="versions">
          <thead>
            <tr>
              <th scope="col">Page</th>
              {shown.map((v) => (
                <th key={v.version_number} scope="col" class="number">
                  <a href={filtered({ version: String(v.version_number) })}>Version {v.version_number}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {row("Started", (v) => count(v.started))}
            {row("Completion rate", (v) => percent(v.completed / v.started))}
            {row("Median time to complete", (v) => seconds(v.median_seconds))}
            {row("Largest drop", dropOf)}
            {[...rows].slice(0, rowsAtFirst).map(([id, page]) => (
              <tr key={id}>
                <th scope="row" class="wrap">
                  <span class="place">{page.page_index + 1}</span> <Text>{pageName(page)}</Text>
                </th>
                {shown.map((v) => {
                  const own = v.pages.find((p) => name(p) === id);
                  return (
                    <td key={v.version_number} class={`number ${own && own.page_index === largestDrop(v)?.page_index ? "drop" : ""}`}>
                      {own ? <><Share first={own.reached / v.started} /> {percent(own.reached / v.started)}</> : <span class="muted">not a page</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {versions.length > most && (
        <p class="actions">
          <button type="button" class="quiet" onClick={() => setMost(most + sideBySide)}>Show earlier versions ({counted(versions.length - most, "version", "versions")} left)</button>
        </p>
      )}
    </section>
  );
}

function Definitions() {
  return (
    <details class="card how">
      <summary>How this is counted</summary>
      <dl>
        <dt>Started</dt>
        <dd>Entries with at least one page view.</dd>
        <dt>Reached</dt>
        <dd>Entries whose furthest page is this one or a later one. The percentage is of the entries that started.</dd>
        <dt>Dropped off here</dt>
        <dd>Entries whose furthest page is this one, unless it is the last. The percentage is of the entries that reached it.</dd>
        <dt>Completed</dt>
        <dd>Entries that viewed the last page.</dd>
        <dt>Median time</dt>
        <dd>Half of the entries took less time from their first view of the page to the next view of another, half took more. Nothing follows a last page, so it often has none.</dd>
        <dt>Pages</dt>
        <dd>The newest version names the page at each place.</dd>
        <dt>Period</dt>
        <dd>Entries that were created in it. Both days are part of it, in the chosen time zone.</dd>
      </dl>
    </details>
  );
}
