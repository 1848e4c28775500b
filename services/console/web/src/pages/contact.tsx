// Everything that one contact did, on one line of time.
import type { Entry } from "@lectern/client";
import { useMemo } from "preact/hooks";
import { answersOf, nameIn } from "../answers.ts";
import { useLoad } from "../load.ts";
import { useNames } from "../names.ts";
import { address } from "../router.ts";
import { shell } from "../shell.ts";
import { count, counted, day } from "../time.ts";
import { AnswerList } from "../ui/answered.tsx";
import { Copied } from "../ui/commands.tsx";
import { PageHead, Text, Time } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import { Value } from "../ui/value.tsx";

/** How many entries, and how many answers of each, are shown. */
const mostEntries = 100;
const mostAnswers = 12;

/** ContactPage shows the entries of a contact, the newest first. */
export function ContactPage({ project, id }: { project: string; id: string }) {
  const title = useNames(project);
  const load = useLoad(
    async ({ client, signal }) => {
      // By updated_at, because only this order has an index with the contact.
      const found = await Array.fromAsync(client.entries(project, { contact_id: id, limit: mostEntries + 1 }, { signal }));
      const entries = found.slice(0, mostEntries).sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
      return { entries, more: found.length > mostEntries };
    },
    ["contact", project, id],
  );
  return (
    <>
      <PageHead title={load.value?.entries.map(nameIn).find(Boolean) ?? id} lead={<>Contact <code class="wrap">{id}</code>: all entries of one visitor, the newest first.</>} />
      <Loaded load={load} what="the entries" rows={6}>
        {({ entries, more }) =>
          entries.length === 0 ? (
            <Empty title="No entry has this contact">
              <p>The id may be mistyped, or the contact’s entries were removed.</p>
            </Empty>
          ) : (
            <>
              <p class="muted" data-entries={entries.length}>
                {more ? `The ${count(mostEntries)} entries that were updated last.` : `${counted(entries.length, "entry", "entries")}, ${between(entries)}.`}
              </p>
              <ol class="timeline">
                {entries.map((entry) => (
                  <li key={entry.entry_id} class="card">
                    <div class="cardhead">
                      <h2><a href={address(project, "entries", entry.entry_id)}><Text>{title(entry.embeddable_id)}</Text></a></h2>
                      <span class="muted"><Time at={entry.created_at} /></span>
                    </div>
                    <Answers project={project} entry={entry} />
                  </li>
                ))}
              </ol>
              {more && <p><a href={address(project, "entries", "", { contact: id, sort: "updated", days: "0" })}>All entries of this contact</a></p>}
              <div data-erase>
                <p class="muted small">A platform engineer erases all entries of this contact:</p>
                <Copied command={`lectern erase --project=${shell(project)} --contact=${shell(id)}`} />
              </div>
            </>
          )
        }
      </Loaded>
    </>
  );
}

function between(entries: readonly Entry[]): string {
  const [first, last] = [entries.at(-1), entries[0]].map((entry) => day(Date.parse(entry?.created_at ?? "")));
  return first === last ? `on ${first}` : `${first} to ${last}`;
}

function Answers({ project, entry }: { project: string; entry: Entry }) {
  const answers = useMemo(() => answersOf(entry.entry_data), [entry.entry_data]);
  if (!answers) return <Value json={entry.entry_data} />;
  if (answers.size === 0) return <p class="muted">Nothing was answered.</p>;
  return (
    <>
      <AnswerList project={project} embeddable={entry.embeddable_id} answers={answers} most={mostAnswers} />
      {answers.size > mostAnswers && <p class="small"><a href={address(project, "entries", entry.entry_id)}>and {count(answers.size - mostAnswers)} more</a></p>}
    </>
  );
}
