// The embeddables of a project with their figures, as several pages show them.
import type { Embeddable } from "@lectern/client";
import { type Counted as Counts, entriesPeriod } from "../insights.ts";
import type { Load } from "../load.ts";
import { nameOf } from "../names.ts";
import type { Span } from "../period.ts";
import { address } from "../router.ts";
import { count, percent } from "../time.ts";
import { Trend } from "./bars.tsx";
import { Change, Text } from "./parts.tsx";
import { Table } from "./table.tsx";

/** EmbeddableSelect lets the visitor choose one embeddable, or all. If they cannot be read, it is a field for the id. */
export function EmbeddableSelect({ embeddables, value, choose }: { embeddables: Load<Embeddable[]>; value: string; choose: (id: string) => void }) {
  const list = embeddables.value ?? [];
  return (
    <label class="wide">
      <span>Embeddable</span>
      {embeddables.state === "failed" ? (
        <input name="embeddable" value={value} onChange={(e) => choose(e.currentTarget.value.trim())} placeholder="Any" spellcheck={false} autocapitalize="off" autocomplete="off" />
      ) : (
        <select name="embeddable" value={value} onChange={(e) => choose(e.currentTarget.value)}>
          <option value="">All</option>
          {value && !list.some((e) => e.embeddable_id === value) && <option value={value}>{value}</option>}
          {list.map((e) => (
            <option key={e.embeddable_id} value={e.embeddable_id}>{nameOf(e)}</option>
          ))}
        </select>
      )}
    </label>
  );
}

type Counted = Pick<Counts, "embeddable_id" | "entries" | "started" | "completed">;

interface Props {
  project: string;
  embeddables: readonly Embeddable[];
  /** The figures of one period. Without them, the table has none. */
  counts: readonly Counted[] | undefined;
  span?: Span | undefined;
  before?: readonly Counted[] | undefined;
  /** The figures of intervals in a row, the oldest first. */
  trend?: { interval: "day" | "week" | "month"; counts: readonly Counts[] } | undefined;
  /** How many rows there are at most. */
  most?: number;
}

/** EmbeddableTable lists embeddables, those with most entries first, also those that have entries and no stored definition. Its links show the same period. */
export function EmbeddableTable({ project, embeddables, counts, span, before, trend, most = Infinity }: Props) {
  const of = (list: readonly Counted[] | undefined, id: string) => list?.find((one) => one.embeddable_id === id);
  const names = new Map(embeddables.map((e) => [e.embeddable_id, nameOf(e)]));
  for (const { embeddable_id: id } of counts ?? []) if (id !== null && !names.has(id)) names.set(id, id);
  const rows = [...names].map(([id, name]) => ({ id, name, now: of(counts, id), old: of(before, id) }));
  if (counts) rows.sort((a, b) => (b.now?.entries ?? 0) - (a.now?.entries ?? 0));
  const starts = [...new Set(trend?.counts.map((one) => one.from ?? ""))].filter(Boolean).sort();
  const list = (id: string) => address(project, "entries", "", { embeddable: id, ...entriesPeriod(span) });
  return (
    <Table
      region="Table of embeddables"
      kind="stack"
      rows={rows.slice(0, most)}
      id={({ id }) => id}
      columns={[
        { name: "Embeddable", kind: "wide wrap whole", cell: ({ id, name }) => <a href={address(project, "funnel", id)}><Text>{name}</Text></a> },
        counts && { name: "Entries", kind: "number", cell: ({ id, now }) => <a href={list(id)}>{count(now?.entries ?? 0)}</a> },
        before && { name: "Change", kind: "number muted", cell: ({ now, old }) => (old ? <Change now={now?.entries ?? 0} old={old.entries} /> : "–") },
        counts && { name: "Completion rate", kind: "number", cell: ({ now }) => (now && now.started > 0 ? percent(now.completed / now.started) : <span class="muted">–</span>) },
        trend && {
          name: "Trend",
          kind: "apart",
          cell: ({ id }) => <Trend label={`Entries a ${trend.interval}`} values={starts.map((from) => trend.counts.find((one) => one.from === from && one.embeddable_id === id)?.entries ?? 0)} />,
        },
        {
          name: "Links",
          head: <span class="hidden">Links</span>,
          kind: "links apart whole",
          cell: ({ id }) => (
            <>
              <a href={address(project, "answers", id)}>Answers</a> <a href={address(project, "embeddables", id)}>Versions</a> <a href={list(id)}>Entries</a>
            </>
          ),
        },
      ]}
    />
  );
}
