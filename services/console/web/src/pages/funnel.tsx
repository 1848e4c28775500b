// The funnel of an embeddable: which pages its entries reached, where they dropped off, and how long they took.
import { APIError, type Funnel as Figures, type FunnelPage } from "@lectern/client";
import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";
import { isSure } from "../difference.ts";
import { listed, narrowedIn } from "../filters.ts";
import { created, entriesPeriod, funnelOf, largestDrop } from "../insights.ts";
import { useLoad } from "../load.ts";
import { place } from "../numbers.ts";
import type { Span } from "../period.ts";
import type { Narrowed } from "../questions.ts";
import { address, filtered, here } from "../router.ts";
import { count, counted, duration, percent } from "../time.ts";
import { Share } from "../ui/bars.tsx";
import { Filters } from "../ui/filters.tsx";
import { EmbeddableHead, InPeriod } from "../ui/frame.tsx";
import { Figure, More, pageName, Text } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import { type Column, Table } from "../ui/table.tsx";

/** How many versions stand side by side at first. */
const sideBySide = 4;
/** More rows than this only come from data that is wrong. They are drawn when the visitor asks for them. */
const rowsAtFirst = 100;

/** Funnel shows the funnel of one embeddable: all versions together and side by side, or one version. */
export function Funnel({ project, id }: { project: string; id: string }) {
  const narrowed = narrowedIn(here.value.query);
  return (
    <>
      <EmbeddableHead project={project} id={id} current="funnel" lead="The funnel: which pages visitors reached, and where they left." />
      <InPeriod project={project} id={id} filters={<Filters project={project} embeddable={id} of={narrowed} />}>
        {(span) => <Counted project={project} id={id} span={span} narrowed={narrowed} />}
      </InPeriod>
      <Definitions />
    </>
  );
}

function Counted({ project, id, span, narrowed }: { project: string; id: string; span: Span; narrowed: Narrowed }) {
  const { version, ...others } = narrowed;
  const of = { embeddable_id: id, ...others, ...created(span) };
  const load = useLoad(
    async ({ client, signal }) => {
      if (version !== undefined) return { all: await funnelOf(client, project, { ...of, version }, signal), versions: [] };
      const [all, each] = await Promise.all([funnelOf(client, project, of, signal), client.funnels(project, { ...of, by: "version" }, { signal }).catch(tooMany)]);
      // Entries without a view have no version. They are part of the figures of all.
      const versions = each.filter((one) => one.version_number !== null).sort((a, b) => (b.version_number ?? 0) - (a.version_number ?? 0));
      return { all, versions };
    },
    ["funnel", project, of, version],
  );
  const list: List = (filters) => address(project, "entries", "", { embeddable: id, ...listed(narrowed), ...filters, ...entriesPeriod() });
  return (
    <Loaded load={load} what="the funnel" rows={6}>
      {({ all, versions }) => (
        <div class="page" data-state="counted" data-entries={all?.entries ?? 0}>
          {all && <Summary figures={all} list={list} only={versions.length === 1 ? versions[0]?.version_number : undefined} />}
          {all && all.pages.length > 0 ? (
            <Pages figures={all} list={list} />
          ) : (
            <Empty title={all?.entries ? "No entry has a page view" : "No entry matches"}>
              <p>Choose a longer period{version !== undefined && ", or another version"}.</p>
            </Empty>
          )}
          {versions.length > 1 && <Versions versions={versions} list={list} />}
        </div>
      )}
    </Loaded>
  );
}

/** List returns the address of the entries that a figure counts, by the filters that it has beside those of the page. */
type List = (filters: Record<string, string>) => string;

/** tooMany stands for an answer with more versions and pages than the API gives. */
function tooMany(error: unknown): Figures[] {
  if (error instanceof APIError && error.status === 400) return [];
  throw error;
}

const seconds = (n: number | null) => (n === null ? "–" : duration(n * 1000));

interface SummaryProps {
  figures: Figures;
  /** The only version that visitors saw, if there is one. */
  only: number | null | undefined;
  list: List;
}

function Summary({ figures, only, list }: SummaryProps) {
  const drop = largestDrop(figures);
  const without = figures.entries - figures.started;
  return (
    <>
      {drop && (
        <p class="lead" data-drop>
          The largest drop is on page {place(drop.page_index)}, “<Text>{pageName(drop)}</Text>”: {percent(drop.dropped / drop.reached)} of the visitors who reached it went no further, {count(drop.dropped)} of {count(drop.reached)}.
        </p>
      )}
      {only != null && <p class="muted small" data-only>All page views are of version {only}.</p>}
      <dl class="figures card" aria-label="Summary">
        <Figure name="Entries" id="entries" to={list({})} value={count(figures.entries)} note={without > 0 && `${count(without)} without a page view`} />
        <Figure name="Started" id="started" value={count(figures.started)} note={percent(figures.started / figures.entries)} />
        <Figure name="Completed" id="completed" to={list({ completed: "true" })} value={count(figures.completed)} note={`${percent(figures.completed / figures.started)} of started`} />
        <Figure name="Not completed" id="open" to={list({ completed: "false" })} value={count(figures.entries - figures.completed)} note={percent(1 - figures.completed / figures.entries)} />
        <Figure name="Median time to complete" id="median" value={seconds(figures.median_seconds)} />
      </dl>
    </>
  );
}

const Place = ({ page }: { page: FunnelPage }) => <><span class="place">{place(page.page_index)}</span> <Text>{pageName(page)}</Text></>;

/** Dropped shows how many entries dropped off at a page. */
const Dropped = ({ page, list }: { page: FunnelPage; list: List }) => <>{page.dropped > 0 ? <a href={list({ furthest_page: String(page.page_index), completed: "false" })}>{count(page.dropped)}</a> : 0}</>;

function Pages({ figures, list }: { figures: Figures; list: List }) {
  const [all, setAll] = useState(false);
  const { pages, started } = figures;
  const shown = all ? pages : pages.slice(0, rowsAtFirst);
  const drop = largestDrop(figures);
  return (
    <section class="card" aria-label="Pages in their order, with the entries that reached each, those that dropped off there, and the median time">
      <p class="legend muted" aria-hidden="true">
        <span><i class="part" /> went on, or reached the last page</span>
        <span><i class="whole" /> dropped off here</span>
      </p>
      <Table
        kind="funnel"
        rows={shown}
        attributes={(page) => ({ class: page.page_index === drop?.page_index ? "drop" : undefined })}
        columns={[
          { name: "Page", heads: true, cell: (page) => <div><Place page={page} /></div> },
          {
            name: "Reached",
            kind: "reach",
            cell: ({ reached, dropped }) => (
              <div>
                <Share first={(reached - dropped) / started} second={dropped / started} />
                <span class="reached"><b>{count(reached)}</b> <span class="muted">{percent(reached / started)}</span></span>
              </div>
            ),
          },
          { name: "Dropped off here", kind: "number", cell: (page) => (page === pages.at(-1) && page.dropped === 0 ? <span class="muted">last page</span> : <><Dropped page={page} list={list} /> <span class="muted">{percent(page.dropped / page.reached)}</span></>) },
          { name: "Median time", kind: "number", cell: (page) => seconds(page.median_seconds) },
        ]}
      />
      {shown.length < pages.length && <More show={() => setAll(true)}>Show all {count(pages.length)} pages</More>}
    </section>
  );
}

/** dropOf names the page at which a version loses most. */
function dropOf(version: Figures): string {
  const drop = largestDrop(version);
  return drop ? `${pageName(drop)}: ${percent(drop.dropped / drop.reached)} left` : "–";
}

/** best says which version is completed most often, if the figures are sure of it. */
function best(versions: readonly Figures[]): string {
  const [first, ...others] = versions.filter((v) => v.started > 0).sort((a, b) => b.completed / b.started - a.completed / a.started);
  const [second] = others;
  if (!first || !second) return "";
  const of = (v: Figures) => ({ some: v.completed, all: v.started });
  const said = (v: Figures) => `version ${v.version_number} with ${percent(v.completed / v.started)} of ${counted(v.started, "visitor", "visitors")}`;
  return others.every((v) => isSure(of(first), of(v))) ? `Completed most often is ${said(first)}, then ${said(second)}.` : `It is too early to say which version is completed most often: ${said(first)} leads, before ${said(second)}, which may be chance.`;
}

function Versions({ versions, list }: { versions: Figures[]; list: List }) {
  const [most, setMost] = useState(sideBySide);
  const shown = versions.slice(0, most);
  // A page of the same place and key is the same page in all versions.
  const name = (page: FunnelPage) => `${place(page.page_index)} ${pageName(page)}`;
  const pages = new Map(shown.flatMap((v) => v.pages).sort((a, b) => (a.page_index < b.page_index ? -1 : 1)).map((page) => [name(page), page]));
  const listOf = (v: Figures): List => (filters) => list({ version: String(v.version_number), ...filters });
  const reached = (v: Figures, id: string) => {
    const own = v.pages.find((page) => name(page) === id);
    if (!own) return <span class="muted">not a page</span>;
    return (
      <>
        <Share first={own.reached / v.started} />
        <div class={own.page_index === largestDrop(v)?.page_index ? "drop" : ""}>
          <span class="muted small">{own.dropped > 0 && <><Dropped page={own} list={listOf(v)} /> left</>}</span> {percent(own.reached / v.started)}
        </div>
      </>
    );
  };
  const rows: { label: ComponentChildren; cell: (v: Figures) => ComponentChildren }[] = [
    { label: "Started", cell: (v) => <a href={listOf(v)({})}>{count(v.started)}</a> },
    { label: "Completion rate", cell: (v) => percent(v.completed / v.started) },
    { label: "Median time to complete", cell: (v) => seconds(v.median_seconds) },
    { label: "Largest drop", cell: dropOf },
    ...[...pages].slice(0, rowsAtFirst).map(([id, page]) => ({ label: <Place page={page} />, cell: (v: Figures) => reached(v, id) })),
  ];
  return (
    <section class="card" aria-labelledby="versions">
      <h2 id="versions">Versions side by side</h2>
      <p class="muted small">
        Of the visitors that started a version, how many reached each page, and how many left there. {best(shown)} An entry that saw two versions counts in both.
      </p>
      <Table
        region="Table of versions"
        kind="versions"
        rows={rows}
        columns={[
          { name: "Page", kind: "wrap", heads: true, cell: ({ label }) => label },
          ...shown.map((v): Column<(typeof rows)[number]> => ({
            name: `Version ${v.version_number}`,
            head: <a href={filtered({ version: String(v.version_number) })}>Version {v.version_number}</a>,
            kind: "number",
            cell: ({ cell }) => cell(v),
          })),
        ]}
      />
      {versions.length > most && <More show={() => setMost(most + sideBySide)}>Show earlier versions ({counted(versions.length - most, "version", "versions")} left)</More>}
    </section>
  );
}

const terms = [
  ["Started", "Entries with at least one page view."],
  ["Reached", "Entries whose furthest page is this one or a later one. The percentage is of the entries that started."],
  ["Dropped off here", "Entries whose furthest page is this one, unless it is the last. The percentage is of the entries that reached it."],
  ["Completed", "Entries that viewed the last page."],
  ["Median time", "Half of the entries took less time from their first view of the page to the next view of another, half took more. Nothing follows a last page, so it often has none."],
  ["Pages", "The newest version names the page at each place."],
  ["Period", "Entries that were created in it. Both days are part of it, in the chosen time zone."],
] as const;

function Definitions() {
  return (
    <details class="card how">
      <summary>How this is counted</summary>
      <dl>{terms.map(([term, meaning]) => <Fragment key={term}><dt>{term}</dt><dd>{meaning}</dd></Fragment>)}</dl>
    </details>
  );
}
