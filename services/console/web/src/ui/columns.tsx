// The choice of answers that are columns of the table.
import { useState } from "preact/hooks";
import type { AnswerKey } from "../insights.ts";
import { count, counted } from "../time.ts";
import { Dialog } from "./dialogs.tsx";
import { Text } from "./parts.tsx";

interface Props {
  keys: readonly AnswerKey[];
  chosen: readonly string[];
  /** Undefined means the most frequent answers. */
  choose: (columns: string[] | undefined) => void;
  close: () => void;
}

/** Columns lists the answers with the number of entries that have each. */
export function Columns({ keys, chosen, choose, close }: Props) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const listed = keys.filter(({ key }) => key.toLowerCase().includes(wanted));
  const toggle = (name: string) => choose(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <Dialog label="Columns" close={close}>
      <h2>Columns</h2>
      <p class="muted small">{counted(keys.length, "answer", "answers")}, each with the number of entries that have it. A new column comes last.</p>
      <input type="search" autofocus aria-label="Search the answers" placeholder="Search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} spellcheck={false} />
      <ul class="answernames" tabIndex={-1}>
        {listed.map(({ key, entries }) => (
          <li key={key}>
            <label>
              <input type="checkbox" checked={chosen.includes(key)} onChange={() => toggle(key)} />
              <Text>{key || "(no name)"}</Text>
              <small class="muted number">{count(entries)}</small>
            </label>
          </li>
        ))}
      </ul>
      {listed.length === 0 && <p class="muted">No answer has a name like this.</p>}
      <p class="actions">
        <button type="button" onClick={close}>Done</button>
        <button type="button" class="quiet" onClick={() => choose(undefined)}>Most frequent</button>
        <button type="button" class="quiet" onClick={() => choose([])}>None</button>
      </p>
    </Dialog>
  );
}
