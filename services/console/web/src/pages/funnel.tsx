// The funnel of an embeddable: which pages its entries reached, where they dropped off, and how long they took.
import type { Embeddable } from "@lectern/client";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { collect, type Load, nameOf, useEmbeddables, useLoad } from "../api.ts";
import { zone } from "../preferences.ts";
import { address, filter, go, here } from "../router.ts";
import { session } from "../session.ts";
import "../style/funnel.css";
import { count, counted, day, duration, isDay, percent, startOfDay } from "../time.ts";
import { DayFilter } from "../ui/filters.tsx";
import { PageHead, Text } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import type { Figures, PageFigures } from "../work/funnel.ts";
import type { Counted } from "../work/messages.ts";
import { countFunnel } from "../work/start.ts";

/** Funnel lets the visitor choose an embeddable, or shows the funnel of the one that is chosen. */
export function Funnel({ project, id }: { project: string; id: string }) {
  const embeddables = useEmbeddables(project);
  return id ? <One project={project} id={id} embeddables={embeddables.value ?? []} /> : <Choice project={project} embeddables={embeddables} />;
}

function Choice({ project, embeddables }: { project: string; embeddables: Load<Embeddable[]> }) {
  return (
    <section class="page">
      <PageHead title="Funnel" lead="Where do visitors drop off? Choose an embeddable." />
      <Loaded load={embeddables} what="the embeddables" rows={3}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="There is no embeddable yet">
              <p>A funnel shows the pages of an embeddable. It appears here when the first embeddable is stored.</p>
            </Empty>
          ) : (
            <ul class="choose" data-rows={list.length}>
              {list.map((embeddable) => (
                <li key={embeddable.embeddable_id}>
                  <a class="card" href={address(project, "funnel", embeddable.embeddable_id)}>
                    <strong class="wrap">
                      <Text>{nameOf(embeddable)}</Text>
                    </strong>
                    <span class="muted small wrap">
                      <Text>{embeddable.embeddable_id}</Text>
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}

function One({ project, id, embeddables }: { project: string; id: string; embeddables: Embeddable[] }) {
  const query = here.value.query;
  const after = dateIn(query, "after");
  const before = dateIn(query, "before");
  const version = versionIn(query);
  const reversed = after !== "" && before !== "" && after > before;

  const funnel = useLoad<Counted | undefined>(
    async ({ signal, wait }, show) => {
      if (reversed) return undefined;
      const from = after ? startOfDay(after) : undefined;
      const until = before ? startOfDay(before, 1) : undefined;
      return countFunnel({ apiKey: session.peek()?.key ?? "", project, embeddable: id, version, from, until }, { signal, show, wait });
    },
    [project, id, after, before, version, after || before ? zone.value : ""],
  );

  const embeddable = embeddables.find((e) => e.embeddable_id === id);
  return (
    <section class="page">
      <PageHead title={embeddable ? nameOf(embeddable) : id} lead="Funnel: which pages entries reached, and where they dropped off.">
        <a class="button quiet" href={address(project, "embeddables", id)}>
          Embeddable
        </a>
        <a class="button quiet" href={address(project, "entries", "", { embeddable: id, after, before })}>
          Entries
        </a>
      </PageHead>
      <Filters project={project} id={id} embeddables={embeddables} />
      {reversed ? (
        <Empty title="The period ends before it begins">
          <p>Choose a first day that is not after the last day.</p>
        </Empty>
      ) : (
        <Loaded load={funnel} what="page views" rows={6}>
          {(value) => value && <Result project={project} id={id} value={value} state={funnel.state} version={version} limited={after !== "" || before !== ""} />}
        </Loaded>
      )}
      <Definitions />
    </section>
  );
}

function Filters({ project, id, embeddables }: { project: string; id: string; embeddables: Embeddable[] }) {
  const query = here.value.query;
  const version = versionIn(query);
  // Without the list of versions the funnel still works, so its errors stay silent: the key may lack the scope.
  const versions = useLoad(({ client, signal }) => collect(client.versions(project, id, {}, { signal })), [project, id]);
  const numbers = (versions.value ?? []).map((v) => v.version_number);
  if (version !== undefined && !numbers.includes(version)) numbers.unshift(version);
  const set = ["after", "before", "version"].some((name) => query.get(name));
  return (
    <form class="filters funnelfilters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
      <label class="wide">
        <span>Embeddable</span>
        <select value={id} onChange={(e) => go(address(project, "funnel", e.currentTarget.value, { after: dateIn(query, "after"), before: dateIn(query, "before") }))}>
          {embeddables.some((e) => e.embeddable_id === id) || <option value={id}>{id}</option>}
          {embeddables.map((e) => (
            <option key={e.embeddable_id} value={e.embeddable_id}>
              {nameOf(e)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Updated from</span>
        <DayFilter name="after" />
      </label>
      <label>
        <span>Updated to</span>
        <DayFilter name="before" />
      </label>
      <label>
        <span>Version</span>
        <select value={version === undefined ? "" : String(version)} aria-describedby="version-note" onChange={(e) => filter({ version: e.currentTarget.value })}>
          <option value="">All</option>
          {numbers.map((number) => (
            <option key={number} value={String(number)}>
              {number}
            </option>
          ))}
        </select>
      </label>
      {set && (
        <button type="button" class="quiet" onClick={() => filter({ after: "", before: "", version: "" })}>
          Clear filters
        </button>
      )}
      <p id="version-note" class="muted small">
        The figures of one version take longer, because all changes of the project are read.
      </p>
    </form>
  );
}

interface ResultProps {
  project: string;
  id: string;
  value: Counted;
  state: Load<unknown>["state"];
  version: number | undefined;
  limited: boolean;
}

function Result({ project, id, value, state, version, limited }: ResultProps) {
  const { figures } = value;
  const done = state === "done";
  const last = figures.pages.at(-1);
  const without = figures.entries - figures.started;
  return (
    <div class="page" data-state={done ? "counted" : "counting"} data-entries={figures.entries}>
      <p class="hidden" role="status">
        {done ? "All is counted." : "Counting. The figures change meanwhile."}
      </p>
      <Extent value={value} state={state} />
      {figures.entries > 0 && (
        <dl class="figures card" aria-label="Summary">
          <Figure name="Entries" value={count(figures.entries)} />
          <Figure name={version === undefined ? "Started" : `Started in version ${version}`} value={count(figures.started)} note={percent(figures.started / figures.entries)} />
          {last && (
            <Figure
              name={
                <>
                  Reached the last page, “<Name page={last} />”
                </>
              }
              value={count(last.reached)}
              note={`${percent(last.reached / figures.started)} of started`}
            />
          )}
          <Figure name={version === undefined ? "Without page views" : `Without page views in version ${version}`} value={count(without)} note={percent(without / figures.entries)} />
        </dl>
      )}
      {figures.started > 0 ? (
        <Pages figures={figures} />
      ) : (
        done && (
          <Empty title={figures.entries === 0 ? "No entry matches" : "No entry has a page view"}>
            <p>
              {limited ? "Choose a longer period" : version !== undefined ? "Choose another version" : "The funnel appears when visitors fill in this embeddable"}
              {limited && version !== undefined && ", or another version"}.{" "}
              {figures.entries > 0 && !limited && version === undefined && <a href={address(project, "entries", "", { embeddable: id })}>Look at its entries.</a>}
            </p>
          </Empty>
        )
      )}
    </div>
  );
}

/** Extent says how much was read: while it is read, and after. */
function Extent({ value, state }: { value: Counted; state: Load<unknown>["state"] }) {
  const { figures, changes, ms } = value;
  const read = changes === undefined ? counted(figures.entries, "entry", "entries") : counted(changes, "change", "changes");
  if (state === "done") {
    return (
      <p class="muted extent">
        Counted exactly from {counted(figures.entries, "entry", "entries")} with {counted(figures.views, "page view", "page views")}
        {figures.entries > 0 && `, updated ${between(figures)}`}
        {changes !== undefined && `. ${count(changes)} changes read`}. It took {duration(ms)}.
      </p>
    );
  }
  const back = changes === undefined && figures.entries > 0 ? `, back to ${day(figures.oldest / 1000)}` : "";
  return (
    <p class="muted extent">
      {state === "loading" && <span class="spinner" aria-hidden="true" />} {read} read{back}. The figures below are exact for these
      {state === "failed" && ", but they are not everything"}.
    </p>
  );
}

function Figure({ name, value, note }: { name: ComponentChildren; value: string; note?: string }) {
  return (
    <div class="figure">
      <dt class="muted small wrap">{name}</dt>
      <dd>
        <b>{value}</b> {note && <span class="muted small">{note}</span>}
      </dd>
    </div>
  );
}

// More rows than this only come from data that is wrong. They are drawn when the visitor asks for them.
const rowsAtFirst = 100;

function Pages({ figures }: { figures: Figures }) {
  const [all, setAll] = useState(false);
  const { pages, started } = figures;
  const isLast = (i: number) => i === pages.length - 1;
  const part = (entries: number) => `${(entries / started) * 100}%`;
  const shown = all ? pages : pages.slice(0, rowsAtFirst);
  return (
    <div class="card">
      <p class="legend muted" aria-hidden="true">
        <span>
          <i class="on" /> went on, or reached the last page
        </span>
        <span>
          <i class="off" /> dropped off here
        </span>
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
            <tr key={page.id} role="row">
              <th role="rowheader" scope="row">
                <div>
                  <span class="place">{i + 1}</span>
                  <Name page={page} />
                </div>
              </th>
              <td role="cell" class="reach">
                <div>
                  <span class="bar" aria-hidden="true">
                    <i class="on" style={{ width: part(isLast(i) ? page.reached : page.reached - page.dropped) }} />
                    <i class="off" style={{ width: part(isLast(i) ? 0 : page.dropped) }} />
                  </span>
                  <span class="reached">
                    <b>{count(page.reached)}</b> <span class="muted">{percent(page.reached / started)}</span>
                  </span>
                </div>
              </td>
              <td role="cell" class="number" data-name="Dropped off here">
                {isLast(i) ? (
                  <span class="muted">last page</span>
                ) : (
                  <>
                    {count(page.dropped)} <span class="muted">{percent(page.dropped / page.reached)}</span>
                  </>
                )}
              </td>
              <td role="cell" class="number" data-name="Median time">
                {page.median === null ? <span class="muted">–</span> : duration(page.median)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < pages.length && (
        <p class="actions">
          <button type="button" class="quiet" onClick={() => setAll(true)}>
            Show all {count(pages.length)} pages
          </button>
        </p>
      )}
    </div>
  );
}

function Definitions() {
  return (
    <details class="card how">
      <summary>How this is counted</summary>
      <dl>
        <dt>Reached</dt>
        <dd>An entry reached a page if it viewed the page at least once. It counts once for each page. The percentage is of the entries that started.</dd>
        <dt>Started</dt>
        <dd>Entries with at least one page view. Entries without any are counted separately.</dd>
        <dt>Dropped off here</dt>
        <dd>Entries that reached this page and no later page. The percentage is of the entries that reached this page. An entry that skipped this page does not count here.</dd>
        <dt>Median time</dt>
        <dd>Half of the times on the page were shorter, half longer. A time goes from a view to the next page view of the same entry. The last view of an entry has no such time, so the time on a last page is often missing.</dd>
        <dt>Pages</dt>
        <dd>The newest view of a page gives its name and its place in the order.</dd>
        <dt>Period</dt>
        <dd>Entries that were last updated in it. Both days are part of it, in the chosen time zone.</dd>
        <dt>Version</dt>
        <dd>Only the page views of that version count. Only events name their version, so all changes of the project are read.</dd>
      </dl>
    </details>
  );
}

/** A key can be very long: the row shows its beginning. */
const longestName = 100;

function Name({ page }: { page: PageFigures }) {
  const name = page.key || page.id;
  return <Text>{name.length > longestName ? `${name.slice(0, longestName)}…` : name}</Text>;
}

function between(figures: Figures): string {
  const [from, until] = [day(figures.oldest / 1000), day(figures.newest / 1000)];
  return from === until ? `on ${from}` : `${from} – ${until}`;
}

/** dateIn returns a date of the address, or "" if it is not a date. */
function dateIn(query: URLSearchParams, name: string): string {
  const date = query.get(name) ?? "";
  return isDay(date) ? date : "";
}

function versionIn(query: URLSearchParams): number | undefined {
  const version = query.get("version") ?? "";
  return /^\d{1,15}$/.test(version) ? Number(version) : undefined;
}
