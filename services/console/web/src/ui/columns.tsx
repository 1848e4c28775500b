// The choice of answers that are columns of the table.
import type { AnswerQuery } from "@lectern/client";
import { useState } from "preact/hooks";
import { questions } from "../insights.ts";
import { useLoad } from "../load.ts";
import { useAsked } from "../names.ts";
import { count, counted } from "../time.ts";
import { Dialog } from "./dialogs.tsx";
import { QuestionName } from "./parts.tsx";
import { Loaded } from "./state.tsx";

interface Props {
  project: string;
  /** The entries of which the answers are listed. */
  of: Omit<AnswerQuery, "key">;
  chosen: readonly string[];
  /** Undefined means the most frequent answers. */
  choose: (columns: string[] | undefined) => void;
  close: () => void;
}

/** Columns lists the answers with the number of entries that have each. */
export function Columns({ project, of, chosen, choose, close }: Props) {
  const [search, setSearch] = useState("");
  const load = useLoad(({ client, signal }) => questions(client, project, of, signal), ["questions", project, of]);
  const { asked } = useAsked(project, of.embeddable_id, load.value?.map(({ key }) => key) ?? []);
  const toggle = (name: string) => choose(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <Dialog label="Columns" close={close}>
      <h2>Columns</h2>
      <input type="search" autofocus aria-label="Search the answers" placeholder="Search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} spellcheck={false} />
      <Loaded load={load} what="the answers" rows={4}>
        {(keys) => {
          const listed = keys.filter(({ key }) => `${asked.get(key)?.title ?? ""} ${key}`.toLowerCase().includes(search.trim().toLowerCase()));
          return (
            <>
              <p class="muted small">{counted(keys.length, "answer", "answers")}, each with the number of entries that have it. A new column comes last.</p>
              <ul class="answernames" tabIndex={-1}>
                {listed.map(({ key, entries }) => (
                  <li key={key}>
                    <label>
                      <input type="checkbox" checked={chosen.includes(key)} onChange={() => toggle(key)} />
                      <span><QuestionName title={asked.get(key)?.title} name={key} /></span>
                      <small class="muted number">{count(entries)}</small>
                    </label>
                  </li>
                ))}
              </ul>
              {listed.length === 0 && <p class="muted">No answer has a name like this.</p>}
            </>
          );
        }}
      </Loaded>
      <p class="actions">
        <button type="button" onClick={close}>Done</button>
        <button type="button" class="quiet" onClick={() => choose(undefined)}>Most frequent</button>
        <button type="button" class="quiet" onClick={() => choose([])}>None</button>
      </p>
    </Dialog>
  );
}
