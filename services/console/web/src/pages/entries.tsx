// The entries of a project: a page of a table at a time, with filters, answers as columns, and downloads.
import type { Entry, EntryQuery } from "@lectern/client";
import { useState } from "preact/hooks";
import { answersOf, decodeNames, encodeNames, Names, words } from "../answers.ts";
import { collect, useEmbeddables, useLoad, useNames } from "../api.ts";
import { counts, created, type Period, sum, usePeriod } from "../insights.ts";
import { address, filter, filtered, here } from "../router.ts";
import { count, startOfDay } from "../time.ts";
import { Columns } from "../ui/columns.tsx";
import { DownloadDialog } from "../ui/download.tsx";
import { EmbeddableSelect } from "../ui/embeddables.tsx";
import { FirstEntry } from "../ui/first.tsx";
import { PageHead, Tabs, Text, Time, TitleOf } from "../ui/parts.tsx";
import { PeriodFilter } from "../ui/period.tsx";
import { Empty, Loaded } from "../ui/state.tsx";

/** How many entries a page of the table has. */
const rows = 50;
/** The last page that an address can have. Further pages are reached from it. */
const lastPage = 200;
/** How many answers are columns before the visitor chooses. */
const defaultColumns = 4;
/** How much of an answer a cell draws, in characters. */
const longestCell = 120;

const orders = [
  { id: "", name: "Newest first", sort: "created_at", direction: "DESC" },
  { id: "oldest", name: "Oldest first", sort: "created_at", direction: "ASC" },
  { id: "updated", name: "Last updated first", sort: "updated_at", direction: "DESC" },
] as const;

/** The names of the filters in an address, beside the period. */
const filters = ["embeddable", "contact", "group"];

interface Chosen {
  query: EntryQuery;
  faults: string[];
  order: (typeof orders)[number];
  columns: string[] | undefined;
  page: number;
}

/** chosenIn reads the filters of an address. */
function chosenIn(query: URLSearchParams, { from, to, reversed }: Period): Chosen {
  const faults: string[] = [];
  const get = (name: string) => query.get(name) ?? "";
  const id = (name: string) => {
    if (get(name).length > 256) faults.push(`${name} is longer than the 256 characters of an id.`);
    return get(name) || undefined;
  };
  for (const [name, read] of [["from", from], ["to", to]] as const) if (get(name) !== read) faults.push(`${name} is “${get(name)}”. It must be a date such as 2026-09-30.`);
  if (reversed) faults.push(`The first day, ${from}, is after the last day, ${to}.`);
  const order = orders.find((one) => one.id === get("sort"));
  if (!order) faults.push(`sort is “${get("sort")}”. It can be oldest or updated.`);
  const page = Number(get("page") || 1);
  if (!Number.isInteger(page) || page < 1 || page > lastPage) faults.push(`page is “${get("page")}”. It must be from 1 to ${lastPage}.`);
  let columns: string[] | undefined;
  try {
    columns = get("columns") ? decodeNames(get("columns")) : undefined;
  } catch {
    faults.push("columns is not a list of answers. Choose the columns again.");
  }
  const { sort, direction } = order ?? orders[0];
  const span = { from: from ? startOfDay(from) : undefined, until: to ? startOfDay(to, 1) : undefined };
  return { faults, order: order ?? orders[0], columns, page, query: { ...created(span), embeddable_id: id("embeddable"), contact_id: id("contact"), group_id: id("group"), sort, direction } };
}

// The cursors of the pages that were read, so that the next page begins where one ended.
const cursors = new Map<string, string>();

/** Entries is the page. */
export function Entries({ project }: { project: string }) {
  const { query: place } = here.value;
  const { period } = usePeriod();
  const chosen = chosenIn(place, period);
  const { query, faults, page } = chosen;
  const [dialog, setDialog] = useState<"" | "columns" | "download">("");
  const embeddables = useEmbeddables(project);
  const key = JSON.stringify([project, query]);

  const load = useLoad<{ entries: Entry[]; more: boolean }>(
    async ({ client, signal, next }) => {
      if (faults.length > 0) return { entries: [], more: false };
      const cursor = cursors.get(`${key} ${page}`);
      // Without a cursor, because the address was opened directly, the pages before are read, too.
      const all = cursor || page === 1 ? rows : rows * page;
      const entries = await collect(client.entries(project, { ...query, cursor, limit: all, pageSize: all }, { signal }));
      const after = next();
      if (after) cursors.set(`${key} ${page + 1}`, after);
      return { entries: entries.slice(all - rows), more: after !== undefined };
    },
    [key, page, faults],
  );
  const { contact_id, group_id, embeddable_id, created_after, created_before } = query;
  // Figures have no filters by contact or group.
  const total = useLoad(
    async ({ client, signal }) => (contact_id || group_id || faults.length > 0 ? undefined : sum(await counts(client, project, { embeddable_id, created_after, created_before, interval: "all" }, signal)).entries),
    [key, faults, load.state === "failed"], // again with the list
  );
  const columns = chosen.columns ?? frequent(load.value?.entries ?? []);
  const filteredBy = filters.some((name) => place.get(name)) || period.from || period.to;

  return (
    <>
      <PageHead title="Entries" lead="What visitors answered: an entry for each of them and each embeddable.">
        {embeddable_id && <button type="button" class="quiet" onClick={() => setDialog("columns")}>Columns</button>}
        <button type="button" class="quiet" disabled={faults.length > 0} onClick={() => setDialog("download")}>Download</button>
      </PageHead>
      {embeddable_id && <Tabs project={project} id={embeddable_id} current="entries" />}
      <form class="filters" role="search" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <EmbeddableSelect embeddables={embeddables} value={embeddable_id ?? ""} choose={(id) => filter({ embeddable: id, columns: "" })} />
        <PeriodFilter period={period} named={false} />
        <label>
          <span>Order</span>
          <select value={chosen.order.id} onChange={(e) => filter({ sort: e.currentTarget.value })}>
            {orders.map(({ id, name }) => (
              <option key={id} value={id}>{name}</option>
            ))}
          </select>
        </label>
        {contact_id && <Chip name="contact" value={contact_id} />}
        {group_id && <Chip name="group" value={group_id} />}
        {filteredBy && (
          <button type="button" class="quiet" onClick={clear}>Clear filters</button>
        )}
      </form>
      {faults.length > 0 ? (
        <Faults faults={faults} />
      ) : (
        <Loaded load={load} what="entries" rows={8}>
          {({ entries, more }) =>
            entries.length > 0 ? (
              <>
                <Pager label="Pages of entries" page={page} shown={entries.length} more={more} total={total.stale ? undefined : total.value} />
                <Table project={project} entries={entries} columns={columns} chosen={chosen} />
                {entries.length > 20 && <Pager label="Pages of entries, below" page={page} shown={entries.length} more={more} total={total.stale ? undefined : total.value} />}
              </>
            ) : filteredBy || page > 1 ? (
              <Empty title="No entries">
                <p>No entry matches the filters. Change or clear them.</p>
              </Empty>
            ) : (
              <FirstEntry project={project} wake={load.reload} />
            )
          }
        </Loaded>
      )}
      {dialog === "columns" && embeddable_id && <Columns project={project} of={{ embeddable_id, created_after, created_before }} chosen={columns} choose={(list) => filter({ columns: list ? encodeNames(list) : "" })} close={() => setDialog("")} />}
      {dialog === "download" && <DownloadDialog project={project} query={query} close={() => setDialog("")} />}
    </>
  );
}

/** frequent returns the names of the answers that most entries of a list have. */
function frequent(entries: readonly Entry[]): string[] {
  const names = new Names();
  for (const entry of entries) names.add(entry);
  return names.mostFrequent().filter(Boolean).slice(0, defaultColumns);
}

const clear = () => filter(Object.fromEntries([...here.peek().query.keys()].map((name) => [name, ""])));

function Chip({ name, value }: { name: string; value: string }) {
  return (
    <button type="button" class="quiet chip" onClick={() => filter({ [name]: "" })}>
      {name} <Text>{value}</Text> <span aria-hidden="true">×</span>
      <span class="hidden">: remove the filter</span>
    </button>
  );
}

function Faults({ faults }: { faults: string[] }) {
  return (
    <div class="notice problem" role="alert" data-state="invalid">
      <h2>The address has filters that cannot be read</h2>
      <ul class="wrap">
        {faults.map((fault) => (
          <li key={fault}><Text>{fault.length > 300 ? `${fault.slice(0, 300)}…` : fault}</Text></li>
        ))}
      </ul>
      <p class="actions">
        <button type="button" onClick={clear}>Show all entries</button>
      </p>
    </div>
  );
}

function Pager({ label, page, shown, more, total }: { label: string; page: number; shown: number; more: boolean; total: number | undefined }) {
  const first = (page - 1) * rows + 1;
  const to = (page: number) => filtered({ page: page > 1 ? String(page) : "" });
  return (
    <nav class="pager" aria-label={label}>
      <span class="muted" data-total={total}>
        {count(first)} to {count(first + shown - 1)}{total !== undefined && ` of ${count(total)}`}
      </span>
      {page > 1 && <a class="button quiet" rel="prev" aria-keyshortcuts="k" href={to(page - 1)}>Previous</a>}
      {more && (page < lastPage ? <a class="button quiet" rel="next" aria-keyshortcuts="j" href={to(page + 1)}>Next</a> : <span class="muted">Narrow the filters to see more.</span>)}
    </nav>
  );
}

function Table({ project, entries, columns, chosen }: { project: string; entries: Entry[]; columns: string[]; chosen: Chosen }) {
  const title = useNames(project);
  const one = chosen.query.embeddable_id !== undefined;
  const updated = chosen.order.sort === "updated_at";
  return (
    <div class="scroll card table" tabIndex={0} role="region" aria-label="Entries">
      <table>
        <thead>
          <tr>
            <th scope="col">Entry</th>
            {one ? columns.map((name) => <th key={name} scope="col"><Text>{name || "(no name)"}</Text></th>) : <th scope="col">Answers</th>}
            {!one && <th scope="col">Embeddable</th>}
            <th scope="col">{updated ? "Updated" : "Created"}</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => {
            const answers = answersOf(entry.entry_data);
            return (
              <tr key={entry.entry_id} data-entry={entry.entry_id}>
                <th scope="row">
                  <a href={address(project, "entries", entry.entry_id)}><TitleOf entry={entry} /></a>
                </th>
                {one ? (
                  columns.map((name, i) => <td key={name}>{answers ? <Cell json={answers.get(name)} /> : i === 0 && <Raw data={entry.entry_data} />}</td>)
                ) : (
                  <td class="answered">
                    {answers ? [...answers].filter(([, json]) => words(json)).slice(0, 8).map(([name, json]) => <span key={name}><Text>{name.slice(0, 40)}</Text> <b><Text>{words(json).slice(0, 40)}</Text></b></span>) : <Raw data={entry.entry_data} />}
                  </td>
                )}
                {!one && <td class="muted"><Text>{title(entry.embeddable_id)}</Text></td>}
                <td class="muted"><Time at={updated ? entry.updated_at : entry.created_at} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Raw({ data }: { data: string }) {
  return (
    <>
      <span class="badge busy" title="The data of this entry is not a JSON object.">Raw</span> <Text>{data.slice(0, longestCell)}</Text>
    </>
  );
}

function Cell({ json }: { json: string | undefined }) {
  if (json === undefined || json === "null") return <span class="muted">–</span>;
  const value = words(json);
  return <Text>{value.length > longestCell ? `${value.slice(0, longestCell)}…` : value}</Text>;
}
