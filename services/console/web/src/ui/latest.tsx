// The latest free texts that answer a question. They are read when the visitor opens them.
import type { Client, Entry } from "@lectern/client";
import { answersOf, words } from "../answers.ts";
import { entriesPeriod } from "../insights.ts";
import { useLoad } from "../load.ts";
import type { Of } from "../questions.ts";
import { address, go } from "../router.ts";
import { longest, shortest } from "../search.ts";
import { count, counted } from "../time.ts";
import { Text, Time } from "./parts.tsx";
import { Loaded } from "./state.tsx";
import { Table } from "./table.tsx";

/** How many answers are shown, and in how many of the newest entries they are looked for. */
const mostAnswers = 20;
const mostEntries = 500;
const pageSize = 50;

/** How much of an answer is shown, in characters. */
const longestAnswer = 600;

interface Found {
  answers: { entry: Entry; text: string }[];
  /** How many entries were looked at. */
  seen: number;
}

/** latest reads the newest entries until enough have an answer. The API lists entries by an answer, but not by whether they have one. */
async function latest(client: Client, project: string, of: Of, name: string, enough: number, signal: AbortSignal): Promise<Found> {
  const found: Found = { answers: [], seen: 0 };
  for await (const entry of client.entries(project, { ...of, sort: "created_at", direction: "DESC", limit: mostEntries, pageSize }, { signal })) {
    found.seen++;
    const text = words(answersOf(entry.entry_data)?.get(name) ?? "").trim();
    if (text) found.answers.push({ entry, text });
    if (found.answers.length >= enough) break;
  }
  return found;
}

/** Latest shows the latest answers, and searches in all. */
export function Latest({ project, of, name, answered }: { project: string; of: Of; name: string; answered: number }) {
  const enough = Math.min(mostAnswers, answered);
  const load = useLoad(({ client, signal }) => latest(client, project, of, name, enough, signal), ["latest", project, of, name, enough]);
  const search = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("search")).trim();
    go(address(project, "entries", "", { embeddable: of.embeddable_id, search: text, ...entriesPeriod() }));
  };
  return (
    <>
      <form class="filters" role="search" aria-label={`Search for ${name.slice(0, 100)}`} onSubmit={search}>
        <label class="wide">
          <span>Search in all answers</span>
          <input type="search" name="search" required minLength={shortest} maxLength={longest} spellcheck={false} autocomplete="off" />
        </label>
        <button class="quiet">Search</button>
      </form>
      <Loaded load={load} what="the latest answers" rows={4}>
        {({ answers, seen }) => (
          <>
            {answers.length < enough && <p class="muted small">{counted(answers.length, "answer", "answers")} in the newest {count(seen)} entries.</p>}
            {answers.length > 0 && (
              <Table
                kind="values"
                rows={answers}
                columns={[
                  { name: "Answer", kind: "wrap", cell: ({ text }) => <Text most={longestAnswer}>{text}</Text> },
                  { name: "Entry", kind: "number", cell: ({ entry }) => <a href={address(project, "entries", entry.entry_id)}><Time at={entry.created_at} /></a> },
                ]}
              />
            )}
          </>
        )}
      </Loaded>
    </>
  );
}
