// The entries of a project: a page of a table at a time, with filters, answers as columns, and downloads.
import type { Entry, EntryQuery } from "@lectern/client";
import { useState } from "preact/hooks";
import { type Answers, answersOf, encodeNames, Names, words } from "../answers.ts";
import { type Chosen, chosenIn, filters, lastPage, ofEmbeddable, orders } from "../filters.ts";
import { created, lengthOf, mostCounted, usePeriod, useSpan } from "../insights.ts";
import { useLoad } from "../load.ts";
import { useAsked, useEmbeddables, useNames } from "../names.ts";
import { fixedSpan } from "../period.ts";
import type { Texts } from "../questions.ts";
import { address, filter, filtered, here } from "../router.ts";
import { count } from "../time.ts";
import { Columns } from "../ui/columns.tsx";
import { DownloadDialog } from "../ui/download.tsx";
import { EmbeddableSelect } from "../ui/embeddables.tsx";
import { FirstEntry } from "../ui/first.tsx";
import { Completed, Filters } from "../ui/filters.tsx";
import { EmbeddableHead } from "../ui/frame.tsx";
import { Chip, PageHead, Removing, Select, Text, Time, TitleOf } from "../ui/parts.tsx";
import { PeriodFilter, spanText } from "../ui/period.tsx";
import { SearchField } from "../ui/search.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import { type Column, Table } from "../ui/table.tsx";

/** How many entries a page of the table has. */
const rows = 50;
/** How many answers are columns before the visitor chooses. */
const defaultColumns = 4;
/** How much of an answer a cell draws, and of the title of a question the head of its column, in characters. */
const longestCell = 120;
const longestHead = 60;

// The cursors of the pages that were read, so that the next page begins where one ended.
const cursors = new Map<string, string>();

/** Entries is the page. */
export function Entries({ project }: { project: string }) {
  const { query: place } = here.value;
  const { period } = usePeriod("0");
  const chosen = chosenIn(place, period);
  const { faults, page } = chosen;
  const { embeddable_id, contact_id, group_id, completed, version, furthest_page, answer, answer_key, search } = chosen.query;
  // The last days depend on the newest entry, as they do for figures.
  const fixed = fixedSpan(period, Date.now());
  const found = useSpan(project, embeddable_id, "0", !fixed);
  const span = fixed ?? found.value;
  const query: EntryQuery = { ...chosen.query, ...(span && created(span)) };
  const ready = fixed !== undefined || found.state !== "loading";
  const [dialog, setDialog] = useState<"" | "columns" | "download">("");
  const embeddables = useEmbeddables(project);
  const key = JSON.stringify([project, query]);

  const load = useLoad<{ entries: Entry[]; more: boolean }>(
    async ({ client, signal, next }) => {
      if (faults.length > 0) return { entries: [], more: false };
      const cursor = cursors.get(`${key} ${page}`);
      // Without a cursor, because the address was opened directly, the pages before are read, too.
      const all = cursor || page === 1 ? rows : rows * page;
      const entries = await Array.fromAsync(client.entries(project, { ...query, cursor, limit: all, pageSize: all }, { signal }));
      const after = next();
      if (after) cursors.set(`${key} ${page + 1}`, after);
      return { entries: entries.slice(all - rows), more: after !== undefined };
    },
    ["entries", key, page, faults],
    ready,
  );
  const { created_after, created_before } = query;
  const [counted, setCounted] = useState(""); // the list that the visitor wants to be counted to its end
  const total = useLoad(
    async ({ client, signal }) => (faults.length > 0 ? undefined : lengthOf(client, project, query, counted === key, signal)),
    ["total", key, faults, counted === key, load.state === "failed"], // again with the list
    ready,
  );
  const known = total.stale ? undefined : total.value;
  const pager = (label: string, { entries, more }: { entries: Entry[]; more: boolean }) => (
    <Pager label={label} page={page} shown={entries.length} more={more} total={more ? known : (page - 1) * rows + entries.length} countAll={more && counted !== key && (known ?? 0) > mostCounted && (() => setCounted(key))} />
  );
  const columns = chosen.columns ?? frequent(load.value?.entries ?? []);
  const filteredBy = filters.some((name) => place.get(name)) || period.named !== "0" || period.from || period.to;
  const lead = "What visitors answered: an entry for each of them and each embeddable.";
  const actions = (
    <>
      {embeddable_id && <button type="button" class="quiet" onClick={() => setDialog("columns")}>Columns</button>}
      <button type="button" class="quiet" disabled={faults.length > 0 || !ready} onClick={() => setDialog("download")}>Download</button>
    </>
  );

  return (
    <>
      {embeddable_id ? <EmbeddableHead project={project} id={embeddable_id} current="entries" lead={lead}>{actions}</EmbeddableHead> : <PageHead title="Entries" lead={lead}>{actions}</PageHead>}
      <form class="filters" role="search" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <PeriodFilter period={period} />
        <SearchField value={search ?? ""} />
        <EmbeddableSelect embeddables={embeddables} value={embeddable_id ?? ""} choose={(id) => filter({ ...ofEmbeddable, embeddable: id })} />
        <Completed value={completed} />
        <Select label="Order" value={chosen.order.id} options={orders.map(({ id, name }) => [id, name])} choose={(sort) => filter({ sort })} />
        {contact_id && <Chip remove={() => filter({ contact: "" })}>contact <Text>{contact_id}</Text></Chip>}
        {group_id && <Chip remove={() => filter({ group: "" })}>group <Text>{group_id}</Text></Chip>}
        {faults.length === 0 && <Filters project={project} embeddable={embeddable_id} of={{ version, furthest_page, answer, answer_key }} />}
        {filteredBy && (
          <Removing remove={clear}>Clear filters</Removing>
        )}
      </form>
      {span && period.named !== "0" && !period.from && !period.to && <p class="muted small">{spanText(span)}</p>}
      {faults.length > 0 ? (
        <Faults faults={faults} />
      ) : (
        <Loaded load={found.state === "failed" ? { ...load, ...found, value: undefined } : load} what="entries" rows={8}>
          {(list) =>
            list.entries.length > 0 ? (
              <>
                {pager("Pages of entries", list)}
                <EntryTable project={project} entries={list.entries} columns={columns} chosen={chosen} />
                {list.entries.length > 20 && pager("Pages of entries, below", list)}
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

function Faults({ faults }: { faults: string[] }) {
  return (
    <div class="notice problem" role="alert" data-state="invalid">
      <h2>The address has filters that cannot be read</h2>
      <ul class="wrap">
        {faults.map((fault) => (
          <li key={fault}><Text most={300}>{fault}</Text></li>
        ))}
      </ul>
      <p class="actions">
        <button type="button" onClick={clear}>Show all entries</button>
      </p>
    </div>
  );
}

function Pager({ label, page, shown, more, total, countAll }: { label: string; page: number; shown: number; more: boolean; total: number | undefined; countAll: false | (() => void) }) {
  const first = (page - 1) * rows + 1;
  const to = (page: number) => filtered({ page: page > 1 ? String(page) : "" });
  return (
    <nav class="pager" aria-label={label}>
      <span class="muted" data-total={total}>
        {count(first)} to {count(first + shown - 1)}{total !== undefined && ` of ${countAll ? `more than ${count(mostCounted)}` : count(total)}`}
      </span>
      {countAll && <button type="button" class="quiet small" onClick={countAll}>Count all</button>}
      {page > 1 && <a class="button quiet" rel="prev" aria-keyshortcuts="k" href={to(page - 1)}>Previous</a>}
      {more && (page < lastPage ? <a class="button quiet" rel="next" aria-keyshortcuts="j" href={to(page + 1)}>Next</a> : <span class="muted">Narrow the filters to see more.</span>)}
    </nav>
  );
}

function EntryTable({ project, entries, columns, chosen }: { project: string; entries: Entry[]; columns: string[]; chosen: Chosen }) {
  const title = useNames(project);
  const { asked, texts } = useAsked(project, chosen.query.embeddable_id ?? "", columns);
  const updated = chosen.order.sort === "updated_at";
  const rows = entries.map((entry) => ({ entry, answers: answersOf(entry.entry_data) }));
  type Row = (typeof rows)[number];
  const answer = (key: string, i: number): Column<Row> => {
    const name = asked.get(key)?.title || key || "(no name)";
    return {
      name: name.slice(0, longestHead),
      head: <Text most={longestHead}>{name}</Text>,
      cell: ({ entry, answers }) => (answers ? <Cell json={answers.get(key)} texts={texts.get(key)} /> : i === 0 && <Raw data={entry.entry_data} />),
    };
  };
  const summary = (answers: Answers) => [...answers].filter(([, json]) => words(json)).slice(0, 8).map(([name, json]) => <span key={name}><Text>{name.slice(0, 40)}</Text> <b><Text>{words(json).slice(0, 40)}</Text></b></span>);
  const ofAll: Column<Row>[] = [
    { name: "Answers", kind: "answered whole", cell: ({ entry, answers }) => (answers ? summary(answers) : <Raw data={entry.entry_data} />) },
    { name: "Embeddable", kind: "muted", cell: ({ entry }) => <Text>{title(entry.embeddable_id)}</Text> },
  ];
  return (
    <Table
      region="Entries"
      around="card table"
      kind="stack"
      rows={rows}
      id={({ entry }) => entry.entry_id}
      attributes={({ entry }) => ({ "data-entry": entry.entry_id })}
      columns={[
        { name: "Entry", kind: "whole", heads: true, cell: ({ entry }) => <a href={address(project, "entries", entry.entry_id)}><TitleOf entry={entry} /></a> },
        ...(chosen.query.embeddable_id === undefined ? ofAll : columns.map(answer)),
        { name: updated ? "Updated" : "Created", kind: "muted", cell: ({ entry }) => <Time at={updated ? entry.updated_at : entry.created_at} /> },
      ]}
    />
  );
}

function Raw({ data }: { data: string }) {
  return (
    <>
      <span class="badge busy" title="The data of this entry is not a JSON object.">Raw</span> <Text most={longestCell}>{data}</Text>
    </>
  );
}

function Cell({ json, texts }: { json: string | undefined; texts: Texts | undefined }) {
  if (json === undefined || json === "null") return <span class="muted">–</span>;
  return <Text most={longestCell}>{words(json, texts)}</Text>;
}
