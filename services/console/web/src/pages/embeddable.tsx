import { APIError, type Client, type EmbeddableVersion } from "@lectern/client";
import { useMemo, useState } from "preact/hooks";
import type { Hunk } from "../compare.ts";
import { useLoad } from "../load.ts";
import { versionIn } from "../numbers.ts";
import { filter, here } from "../router.ts";
import { count, counted } from "../time.ts";
import { EmbeddableHead } from "../ui/frame.tsx";
import { CopyButton, More, Select, Time } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { LongText } from "../ui/value.tsx";

/** The names, in addresses, of the definition that is in use now, and of no definition. */
const production = "production";
const none = "-";

/** How many versions the page lists at first, and more when the visitor asks for it. */
const step = 50;

/** EmbeddablePage shows the versions of an embeddable, one definition, or the difference of any two. */
export function EmbeddablePage({ project, id }: { project: string; id: string }) {
  const [most, setMost] = useState(step);
  const load = useLoad(({ client, signal }) => client.embeddable(project, id, { signal }), ["embeddable", project, id]);
  const versions = useLoad(
    async ({ client, signal }) => {
      const found = await Array.fromAsync(client.versions(project, id, { limit: most + 1, pageSize: most + 1 }, { signal }));
      return { list: found.slice(0, most), more: found.length > most };
    },
    ["versions", project, id, most],
  );
  return (
    <>
      <EmbeddableHead project={project} id={id} current="embeddables" lead={<>The saved versions of <code class="wrap">{id}</code>, and what changed between two.</>} />
      <Loaded load={load} what="the embeddable" rows={4}>
        {(embeddable) => (
          <Loaded load={versions} what="the versions" rows={4}>
            {(found) => (
              <>
                <Compared project={project} id={id} inProduction={embeddable.json_string_prod} versions={found.list} />
                <Versions {...found} showMore={() => setMost(most + step)} />
              </>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  );
}

function Compared({ project, id, inProduction, versions }: { project: string; id: string; inProduction: string; versions: EmbeddableVersion[] }) {
  const { query } = here.value;
  // Without a choice, the newest change: the last version against the one before it.
  const numbers = versions.map((v) => String(v.version_number));
  const after = query.get("with") || numbers[0] || production;
  const before = query.get("compare") || numbers[1] || none;
  const listed = [...new Set([...numbers, ...[before, after].filter((name) => /^\d+$/.test(name))])].sort((a, b) => Number(b) - Number(a));
  const names = [[production, "in production"], ...listed.map((name) => [name, `version ${name}`])] as [string, string][];
  const load = useLoad(
    async ({ client, signal }) => {
      const read = (name: string) => definition(client, project, id, name, inProduction, signal);
      const [one, other] = await Promise.all([before === none ? null : read(before), read(after)]);
      return { before: one, after: other, by: await import("../compare.ts") };
    },
    ["definitions", project, id, before, after],
  );
  return (
    <div class="card">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Select label="Compare" value={before} options={[[none, "none"], ...names]} choose={(compare) => filter({ compare })} />
        <Select label="with" value={after} options={names} choose={(name) => filter({ with: name })} />
      </form>
      <Loaded load={load} what="the definitions" rows={6}>
        {(texts) => (texts.before === null ? <Single text={texts.after} by={texts.by} /> : <Difference before={texts.before} after={texts.after} by={texts.by} />)}
      </Loaded>
    </div>
  );
}

/** show compares two versions, or shows one, and scrolls to it. */
function show(from: number | undefined, to: number): void {
  filter({ compare: String(from ?? none), with: String(to) });
  document.querySelector("main")?.scrollIntoView();
}

function Versions({ list: versions, more, showMore }: { list: EmbeddableVersion[]; more: boolean; showMore: () => void }) {
  return (
    <section class="card" aria-labelledby="versions">
      <h2 id="versions">{more ? `The newest ${count(versions.length)} versions` : counted(versions.length, "version", "versions")}</h2>
      {versions.length === 0 ? (
        <p class="muted">No version was saved yet.</p>
      ) : (
        <Table
          region="Table of versions"
          rows={versions.map(({ version_number: number, saved_at }, i) => ({ number, saved_at, before: versions[i + 1]?.version_number }))}
          columns={[
            { name: "Version", cell: ({ number }) => number },
            { name: "Saved", cell: ({ saved_at }) => <Time at={saved_at} /> },
            {
              name: "Compare",
              cell: ({ number, before }) => (
                <button type="button" class="quiet small" aria-label={before === undefined ? `Show ${number}` : `Compare ${number} with ${before}`} onClick={() => show(before, number)}>
                  {before === undefined ? "Show" : `with ${before}`}
                </button>
              ),
            },
          ]}
        />
      )}
      {more && <More show={showMore}>Show {count(step)} more</More>}
    </section>
  );
}

async function definition(client: Client, project: string, id: string, name: string, inProduction: string, signal: AbortSignal): Promise<string> {
  if (name === production) return inProduction;
  const number = versionIn(name);
  if (number === undefined) {
    throw new APIError(`"${name}" is no version; allowed: ${production}, or a version's number.`, { status: 404 });
  }
  return (await client.version(project, id, number, { signal })).json_string;
}

/** Comparing is loaded with the first definition. */
type Comparing = typeof import("../compare.ts");

function Single({ text, by }: { text: string; by: Comparing }) {
  const { text: lines, valid } = useMemo(() => by.definitionLines(text), [text]);
  return (
    <>
      {valid || <p class="muted small">This definition is not JSON. It is shown as it is stored.</p>}
      <Lines hunks={[{ folded: false, lines: lines.split("\n").map((line, i) => ({ kind: "same", text: line, after: i + 1 })) }]} label="Definition" />
      <p class="actions">
        <CopyButton text={() => text} label="Copy as it is stored" />
      </p>
    </>
  );
}

function Difference({ before, after, by }: { before: string; after: string; by: Comparing }) {
  const result = useMemo(() => {
    const [one, other] = [by.definitionLines(before), by.definitionLines(after)];
    return { valid: one.valid && other.valid, comparison: by.compare(one.text, other.text) };
  }, [before, after]);
  const { comparison } = result;
  if (!comparison) return <Empty title="The two differ too much to be compared line by line" />;
  if (comparison.added + comparison.removed === 0) return <p class="muted">{before === after ? "The two are the same." : "The two are the same but for spaces between values."}</p>;
  return (
    <>
      {result.valid || <p class="muted small">One of the two is not JSON. It is compared as it is stored.</p>}
      <p data-added={comparison.added} data-removed={comparison.removed}>
        <span class="plus">{counted(comparison.added, "line", "lines")} added</span>, <span class="minus">{count(comparison.removed)} removed</span>
      </p>
      <Lines hunks={comparison.hunks} label="Difference" />
    </>
  );
}

/** How many lines are drawn at first. A definition may have a hundred thousand. */
const drawn = 2000;

/** How much of a line is drawn at first, in characters. */
const longestLine = 2000;

function Lines({ hunks, label }: { hunks: Hunk[]; label: string }) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [limit, setLimit] = useState(drawn);
  let left = limit;
  let hidden = 0;
  const rows = hunks.map((hunk, h) => {
    if (hunk.folded && !open.has(h)) {
      return (
        <button key={h} type="button" class="fold small" onClick={() => setOpen(new Set(open).add(h))}>
          {counted(hunk.lines.length, "line is", "lines are")} the same. Show
        </button>
      );
    }
    const shown = hunk.lines.slice(0, Math.max(0, left));
    hidden += hunk.lines.length - shown.length;
    left -= shown.length;
    return shown.map((line) => (
      <div key={`${line.before ?? ""} ${line.after ?? ""}`} class={`line ${line.kind}`}>
        <span class="at">{line.before}</span>
        <span class="at">{line.after}</span>
        <span class="mark">
          {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "}
          {line.kind !== "same" && <span class="hidden">{line.kind}: </span>}
        </span>
        <span class="text"><LongText first={longestLine}>{line.text}</LongText></span>
      </div>
    ));
  });
  return (
    <>
      <div class="lines" role="region" tabIndex={0} aria-label={label}>
        {rows}
      </div>
      {hidden > 0 && <More show={() => setLimit(limit + 10 * drawn)}>Show {count(Math.min(hidden, 10 * drawn))} more lines</More>}
    </>
  );
}
