// The choice of the answers that are columns.
import { useState } from "preact/hooks";
import { mostColumns, type Names } from "../answers.ts";
import { count, counted } from "../time.ts";
import { Dialog } from "./dialogs.tsx";
import { Text } from "./parts.tsx";

interface Props {
  names: Names;
  chosen: readonly string[];
  /** Takes the names of the answers, or undefined for the default. */
  choose: (names: string[] | undefined) => void;
  close: () => void;
}

/** Columns lists the answers, the most frequent first. */
export function Columns({ names, chosen, choose, close }: Props) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const all = names.mostFrequent();
  // The visitor can also remove a column of the address that no entry has.
  const listed = [...chosen.filter((name) => !all.includes(name)), ...all].filter((name) => name.toLowerCase().includes(wanted));
  const toggle = (name: string) => choose(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <Dialog label="Columns" close={close}>
      <h2>Columns</h2>
      <p class="muted small">
        {counted(names.counts.size, "answer", "answers")} in {counted(names.seen, "entry", "entries")}. Each number says how many entries have the answer. A new column comes last.
        {names.full && ` The ${count(mostColumns)} most frequent are listed.`}
      </p>
      <input type="search" autofocus aria-label="Search the answers" placeholder="Search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} spellcheck={false} />
      <ul class="answernames" tabIndex={-1}>
        {listed.map((name) => (
          <li key={name}>
            <label>
              <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
              <Text>{name || "(no name)"}</Text>
              <small class="muted number">{count(names.counts.get(name) ?? 0)}</small>
            </label>
          </li>
        ))}
      </ul>
      {listed.length === 0 && <p class="muted">No answer has a name like this.</p>}
      <p class="actions">
        <button type="button" onClick={close}>
          Done
        </button>
        <button type="button" class="quiet" onClick={() => choose(undefined)}>
          Most frequent
        </button>
        <button type="button" class="quiet" onClick={() => choose([])}>
          None
        </button>
      </p>
    </Dialog>
  );
}
