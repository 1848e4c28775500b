// The entries of a project as a table, with filters, chosen answers as columns, and downloads.
import type { Embeddable, Entry, EntryQuery } from "@lectern/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Answers, answersOf, decodeNames, encodeNames, Names, text } from "../answers.ts";
import { longPage, nameOf, paced, useEmbeddables, useLoad } from "../api.ts";
import { zone } from "../preferences.ts";
import { address, filter, go, here } from "../router.ts";
import { count, counted, isDay, startOfDay } from "../time.ts";
import { Columns } from "../ui/columns.tsx";
import { DownloadDialog } from "../ui/download.tsx";
import { DayFilter, IdFilter } from "../ui/filters.tsx";
import { type Column, Grid } from "../ui/grid.tsx";
import { PageHead, Text, Time } from "../ui/parts.tsx";
import { Empty, Loading, Patience, Problem } from "../ui/state.tsx";
import "../style/entries.css";

/** How many entries the table reads at first, and more when the visitor asks for it. */
const step = 100_000;
/** How many answers are columns before the visitor chooses. */
const defaultColumns = 4;
/** After how many entries the columns are chosen, so that they do not change while more are read. */
const enoughForColumns = 500;
/** How long a piece of work may keep the page from drawing, in milliseconds. */
const slice = 10;
/** How much of an answer a cell draws, in characters. */
const longestCell = 200;

interface Filters {
  query: EntryQuery;
  /** The fault of the address. */
  faults: string[];
  sort: "updated" | "created";
  direction: "asc" | "desc";
  /** The chosen answers, or undefined for the default. */
  columns: string[] | undefined;
}

/** justBefore returns the last time before a moment that the API can tell from it: it compares microseconds. */
const justBefore = (at: number): string => new Date(at - 1).toISOString().replace("Z", "999Z");

/** filtersOf reads the filters of an address. */
function filtersOf(place: URLSearchParams): Filters {
  const faults: string[] = [];
  const get = (name: string) => place.get(name) ?? "";
  const oneOf = <T extends string>(name: string, values: readonly [T, ...T[]]): T => {
    const found = values.find((value) => value === (get(name) || values[0]));
    if (found === undefined) faults.push(`${name} is “${get(name)}”. It can be ${values.join(" or ")}.`);
    return found ?? values[0];
  };
  const day = (name: string) => {
    if (get(name) === "" || isDay(get(name))) return get(name);
    faults.push(`${name} is “${get(name)}”. It must be a date such as 2026-09-30.`);
    return "";
  };
  const id = (name: string) => {
    if (get(name).length > 256) faults.push(`${name} is longer than the 256 characters of an id.`);
    return get(name) || undefined;
  };
  const [after, before] = [day("after"), day("before")];
  if (after && before && after > before) faults.push(`The first day, ${after}, is after the last day, ${before}.`);
  const sort = oneOf("sort", ["updated", "created"]);
  const direction = oneOf("direction", ["desc", "asc"]);
  let columns: string[] | undefined;
  try {
    columns = get("columns") ? decodeNames(get("columns")) : undefined;
  } catch {
    faults.push("columns is not a list of answers. Choose the columns again.");
  }
  return {
    faults,
    sort,
    direction,
    columns,
    query: {
      // The API omits entries updated exactly at the two times; the first day begins with its first moment.
      updated_after: after ? justBefore(startOfDay(after)) : undefined,
      updated_before: before ? new Date(startOfDay(before, 1)).toISOString() : undefined,
      embeddable_id: id("embeddable"),
      contact_id: id("contact"),
      group_id: id("group"),
      sort: sort === "created" ? "created_at" : "updated_at",
      direction: direction === "asc" ? "ASC" : "DESC",
    },
  };
}

/** Entries is the page. */
export function Entries({ project }: { project: string }) {
  const place = here.value.query;
  const chosenZone = zone.value;
  const filters = useMemo(() => filtersOf(place), [place, chosenZone]);
  const [dialog, setDialog] = useState<"" | "columns" | "download">("");
  const [found, setFound] = useState<Found>({ names: new Names(), defaults: [] });
  const embeddables = useEmbeddables(project);
  return (
    <section class="page">
      <PageHead title="Entries" lead="What visitors have answered.">
        <button type="button" class="quiet" disabled={found.names.seen === 0} onClick={() => setDialog("columns")}>
          Columns
        </button>
        <button type="button" class="quiet" disabled={filters.faults.length > 0} onClick={() => setDialog("download")}>
          Download
        </button>
      </PageHead>
      <FilterBar embeddables={embeddables.value} failed={embeddables.state === "failed"} />
      {filters.faults.length > 0 ? <Faults faults={filters.faults} /> : <Table project={project} filters={filters} embeddables={embeddables.value} found={setFound} />}
      {dialog === "columns" && <Columns names={found.names} chosen={filters.columns ?? found.defaults} choose={(list) => filter({ columns: list ? encodeNames(list) : "" })} close={() => setDialog("")} />}
      {dialog === "download" && <DownloadDialog project={project} query={filters.query} close={() => setDialog("")} />}
    </section>
  );
}

/** Found are the answers of the entries that were read, and those that are columns by default. */
interface Found {
  names: Names;
  defaults: string[];
}

const defaultsOf = (names: Names): string[] => names.mostFrequent().slice(0, defaultColumns);

function Faults({ faults }: { faults: string[] }) {
  return (
    <div class="notice problem" role="alert" data-state="invalid">
      <h2>The address has filters that cannot be read</h2>
      <ul class="wrap">
        {faults.map((fault) => (
          <li key={fault}>
            <Text>{fault.length > 300 ? `${fault.slice(0, 300)}…` : fault}</Text>
          </li>
        ))}
      </ul>
      <p class="actions">
        <button type="button" onClick={clear}>
          Show all entries
        </button>
      </p>
    </div>
  );
}

const clear = () => filter(Object.fromEntries([...here.peek().query.keys()].map((name) => [name, ""])));

function FilterBar({ embeddables, failed }: { embeddables: Embeddable[] | undefined; failed: boolean }) {
  const place = here.value.query;
  const value = (name: string) => place.get(name) ?? "";
  const chosen = value("embeddable");
  const filtered = ["after", "before", "embeddable", "contact", "group"].some((name) => value(name));
  return (
    <form class="filters entryfilters" role="search" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
      <label>
        <span>Updated from</span>
        <DayFilter name="after" />
      </label>
      <label>
        <span>Updated to</span>
        <DayFilter name="before" />
      </label>
      <label class="wide">
        <span>Embeddable</span>
        {failed ? (
          <IdFilter name="embeddable" />
        ) : (
          <select value={chosen} onChange={(e) => filter({ embeddable: e.currentTarget.value })}>
            <option value="">All</option>
            {chosen && !embeddables?.some((e) => e.embeddable_id === chosen) && <option value={chosen}>{chosen}</option>}
            {embeddables?.map((e) => (
              <option key={e.embeddable_id} value={e.embeddable_id}>
                {nameOf(e)}
              </option>
            ))}
          </select>
        )}
      </label>
      <label>
        <span>Contact id</span>
        <IdFilter name="contact" />
      </label>
      <label>
        <span>Group id</span>
        <IdFilter name="group" />
      </label>
      {filtered && (
        <button type="button" class="quiet" onClick={() => filter({ after: "", before: "", embeddable: "", contact: "", group: "" })}>
          Clear filters
        </button>
      )}
    </form>
  );
}

interface Read {
  /** Grows while entries are read; count says how many of them this is. */
  rows: Entry[];
  count: number;
  more: boolean;
  key: string;
}

interface TableProps {
  project: string;
  filters: Filters;
  embeddables: Embeddable[] | undefined;
  found: (found: Found) => void;
}

function Table({ project, filters, embeddables, found }: TableProps) {
  const key = JSON.stringify([project, filters.query]);
  const [wanted, setWanted] = useState({ key, limit: step });
  const limit = wanted.key === key ? wanted.limit : step;
  // The rows to show until a longer load of the same filters has as many.
  const kept = useRef<Read | undefined>(undefined);
  if (kept.current?.key !== key) kept.current = undefined;

  const load = useLoad<Read>(
    async ({ client, signal }, show) => {
      const rows: Entry[] = [];
      const showSoFar = () => rows.length > 0 && show({ rows, count: Math.min(rows.length, limit), more: false, key });
      const showSometimes = paced(150, showSoFar);
      try {
        for await (const entry of client.entries(project, { ...filters.query, limit: limit + 1, pageSize: longPage }, { signal })) {
          rows.push(entry);
          if (rows.length % 200 === 0) showSometimes();
        }
      } catch (error) {
        showSoFar();
        throw error;
      }
      const more = rows.length > limit;
      if (more) rows.pop();
      return { rows, count: rows.length, more, key };
    },
    [key, limit],
  );

  // Earlier rows are shown again until the load of other filters starts.
  const stale = load.value !== undefined && load.value.key !== key;
  const busy = load.state === "loading" || stale;
  const newest = stale ? undefined : load.value;
  const read = newest && (!busy || newest.count >= (kept.current?.count ?? 0)) ? newest : kept.current;
  kept.current = read;

  const defaults = useNames(read, found);
  const chosen = filters.columns ?? defaults;
  const columns = useColumns(project, filters, embeddables, chosen);

  // The head of the table stays while the entries of other filters are read, and with it the focus.
  const shown = useRef(false);
  shown.current = read ? read.count > 0 : shown.current && busy;
  const failed = load.state === "failed" && load.error ? <Problem error={load.error} retry={load.reload} /> : null;
  return (
    <>
      {load.waiting && <Patience waiting={load.waiting} />}
      {failed}
      {!read && busy && <Loading what="entries" rows={shown.current ? 0 : 8} />}
      {read?.count === 0 && !busy && !failed && (
        <Empty title="No entries">
          <p>{here.value.query.size > 0 ? "No entry matches the filters. Change or clear them." : "The project has no entries so far. They appear here when visitors answer."}</p>
        </Empty>
      )}
      {read && read.count > 0 && (
        <p class="readline muted" data-state={busy ? "reading" : failed ? "partial" : "done"} role="status" aria-live={busy ? "off" : "polite"}>
          {busy ? (
            <>
              <span class="spinner" aria-hidden="true" /> {count(newest?.count ?? 0)} read…
            </>
          ) : failed ? (
            `The first ${counted(read.count, "entry", "entries")}. The rest could not be read.`
          ) : read.more ? (
            `The first ${count(read.count)} entries. There are more.`
          ) : (
            counted(read.count, "entry", "entries")
          )}
          {!busy && read.more && (
            <>
              {" "}
              <button type="button" class="quiet small" onClick={() => setWanted({ key, limit: limit + step })}>
                Read {count(step)} more
              </button>{" "}
              Or narrow the filters.
            </>
          )}
        </p>
      )}
      {shown.current && (
        <Grid
          label="Entries"
          subject={key}
          columns={columns}
          rows={read?.rows ?? []}
          count={read?.count ?? 0}
          busy={busy}
          open={(entry) => go(address(project, "entries", entry.entry_id))}
        />
      )}
    </>
  );
}

/** useNames looks for the answers of all entries that are read, a little at a time. */
function useNames(read: Read | undefined, found: (found: Found) => void): string[] {
  const state = useRef({ rows: [] as Entry[], count: 0, running: false, names: new Names(), defaults: [] as string[] });
  const [defaults, setDefaults] = useState<string[]>([]);
  useEffect(() => {
    if (!read) return;
    if (state.current.rows !== read.rows) state.current = { rows: read.rows, count: 0, running: false, names: new Names(), defaults: [] };
    const now = state.current;
    now.count = read.count;
    if (now.running) return;
    now.running = true;
    const work = () => {
      if (state.current !== now) return;
      const until = performance.now() + slice;
      const before = now.names.seen;
      for (const entry of now.rows.slice(before, now.count)) {
        now.names.add(entry);
        if (performance.now() > until) break;
      }
      // The columns follow from the first entries, so that they stay.
      if (before < enoughForColumns) setDefaults((now.defaults = defaultsOf(now.names)));
      if (now.names.seen < now.count) return void setTimeout(work);
      now.running = false;
      found({ names: now.names, defaults: now.defaults });
    };
    work();
  }, [read]);
  // Ends the work when the page is left.
  useEffect(() => () => void (state.current = { ...state.current }), []);
  return defaults;
}

function useColumns(project: string, filters: Filters, embeddables: Embeddable[] | undefined, chosen: readonly string[]): Column<Entry>[] {
  const { sort, direction } = filters;
  return useMemo(() => {
    const titles = new Map(embeddables?.map((e) => [e.embeddable_id, nameOf(e)]));
    const by = (name: Filters["sort"]): Column<Entry>["sort"] => ({
      order: sort !== name ? "none" : direction === "asc" ? "ascending" : "descending",
      toggle: () => filter({ sort: name === "updated" ? "" : name, direction: sort === name && direction === "desc" ? "asc" : "" }),
    });
    // The cells of a row are drawn one after the other, so that one entry is enough to remember.
    let entryOfAnswers: Entry | undefined;
    let answers: Answers | null = null;
    const answersOfRow = (entry: Entry) => {
      if (entry !== entryOfAnswers) answers = answersOf(entry.entry_data);
      entryOfAnswers = entry;
      return answers;
    };
    return [
      {
        id: "id",
        title: "Entry",
        width: 10,
        cell: (entry) => (
          <a href={address(project, "entries", entry.entry_id)} tabIndex={-1}>
            <Text>{entry.entry_id}</Text>
          </a>
        ),
      },
      { id: "embeddable", title: "Embeddable", width: 14, cell: (entry) => <Text>{titles.get(entry.embeddable_id) ?? entry.embeddable_id}</Text> },
      { id: "contact", title: "Contact", width: 9, cell: (entry) => <Text>{entry.contact_id}</Text> },
      { id: "created", title: "Created", width: 12.5, cell: (entry) => <Time at={entry.created_at} />, sort: by("created") },
      { id: "updated", title: "Updated", width: 12.5, cell: (entry) => <Time at={entry.updated_at} />, sort: by("updated") },
      ...chosen.map((name, i): Column<Entry> => ({
        id: `answer ${name}`,
        title: <Text>{name || "(no name)"}</Text>,
        width: 11,
        cell: (entry) => <Cell json={answersOfRow(entry)?.get(name)} raw={i === 0 && answersOfRow(entry) === null ? entry.entry_data : undefined} />,
      })),
    ];
  }, [project, sort, direction, embeddables, encodeNames(chosen), zone.value]);
}

/** Cell shows an answer. For data that has no answers, it shows the data itself, with a mark. */
function Cell({ json, raw }: { json: string | undefined; raw: string | undefined }) {
  if (raw !== undefined) {
    return (
      <>
        <span class="badge busy" title="The data of this entry is not a JSON object.">
          Raw
        </span>{" "}
        <Text>{raw.slice(0, longestCell)}</Text>
      </>
    );
  }
  if (json === undefined || json === "null") return <span class="muted">–</span>;
  const value = text(json);
  return <Text>{value.length > longestCell ? `${value.slice(0, longestCell)}…` : value}</Text>;
}
