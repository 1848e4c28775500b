import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { nameOf, useEmbeddables } from "../names.ts";
import { address, go, pageNames, pages } from "../router.ts";
import { byId, byMail, type Hit, isSearch } from "../search.ts";
import { Text } from "./parts.tsx";

/** Dialog is a modal dialog. Escape and a click outside close it. */
export function Dialog({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    // The browser reports a close later, perhaps when another dialog has taken the place of this one.
    <dialog ref={element} aria-label={label} onClose={() => element.current && close()} onClick={(e) => e.target === element.current && element.current?.close()}>
      <div class="inside">{children}</div>
    </dialog>
  );
}

/** The key after g that opens each page. */
export const keys: Record<string, (typeof pages)[number]> = { o: "overview", e: "entries", b: "embeddables", x: "experiments", c: "connect" };

const help: [string, string][] = [
  ["/", "Search embeddables, experiments, entries and contacts"],
  ["?", "Show this help"],
  ...Object.entries(keys).map(([key, page]): [string, string] => [`g ${key}`, `Open ${pageNames[page]}`]),
  ["7 3 9 0", "Show 7, 30 or 90 days, or all time"],
  ["t y s w", "Show today, yesterday, this week or last week"],
  ["m l n", "Show this month, last month or this year"],
  ["f a v e", "Of an embeddable: open its funnel, answers, versions or entries"],
  ["j k", "Go to older or newer entries"],
  ["Esc", "Close a dialog"],
];

/** Help lists the keys. */
export function Help({ close }: { close: () => void }) {
  return (
    <Dialog label="Keyboard" close={close}>
      <h2>Keyboard</h2>
      <dl class="keys">
        {help.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((k) => (
                <kbd key={k}>{k}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="actions">
        <button type="button" autofocus onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}

/** How many hits among the embeddables and the experiments are listed. */
const mostHits = 50;

/** Search finds pages, embeddables and experiments by name or id, entries by id, contacts by id or e-mail address, and leads to the search in answers. */
export function Search({ project, close }: { project: string; close: () => void }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  // Search works without the titles, if they cannot be read.
  const { value: embeddables = [] } = useEmbeddables(project);
  const { value: experiments = [] } = useLoad(({ client, signal }) => Array.fromAsync(client.experiments(project, {}, { signal })), ["experiments", project]);

  const id = text.trim();
  const wanted = id.toLowerCase();
  const found = useLoad<Hit[]>(
    async ({ client, signal }) => {
      if (id !== "") await new Promise((typed) => setTimeout(typed, 150));
      signal.throwIfAborted();
      const [ids, people] = await Promise.all([byId(client, project, id, signal), byMail(client, project, id, signal)]);
      return [...ids, ...people.filter(({ to }) => !ids.some((hit) => hit.to === to))];
    },
    ["search", project, id],
  );
  const matches = (...names: (string | null)[]) => names.some((name) => name?.toLowerCase().includes(wanted));
  const hits: Hit[] = [
    ...pages.filter((page) => matches(pageNames[page])).map((page) => ({ label: pageNames[page], what: "Page", to: address(project, page) })),
    ...(wanted === "" ? [] : [
      ...(found.stale ? [] : (found.value ?? [])),
      ...embeddables.filter((e) => matches(e.title, e.embeddable_id)).slice(0, mostHits).map((e) => ({ label: nameOf(e), what: "Embeddable", to: address(project, "funnel", e.embeddable_id) })),
      ...experiments.filter((e) => matches(e.name, e.id)).slice(0, mostHits).map((e) => ({ label: e.name || e.id, what: "Experiment", to: address(project, "experiments", e.id) })),
    ]),
  ];
  const nothing = hits.length === 0;
  if (isSearch(id)) hits.push({ label: id, what: "Entries with these words", to: address(project, "entries", "", { search: id }) });
  const chosen = Math.min(active, hits.length - 1);
  // The visitor pressed Enter before the answer was there.
  const entered = useRef(false);
  useEffect(() => {
    if (entered.current && found.state !== "loading") open(hits[0]);
    entered.current &&= found.state === "loading";
  });
  const said =
    found.state === "loading" ? "Looking…"
    : found.error ? found.error.message
    : nothing ? `Nothing has this title or id.${isSearch(id) ? " Enter looks for the words in entries." : ""}`
    : "Embeddables and experiments by title or id, contacts by id or e-mail, entries by id or by an answer.";

  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    close();
    go(hit.to);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" && hits.length > 0) setActive((chosen + 1) % hits.length);
    else if (event.key === "ArrowUp" && hits.length > 0) setActive((chosen - 1 + hits.length) % hits.length);
    else if (event.key === "Enter" && found.state === "loading" && active === 0) entered.current = true;
    else if (event.key === "Enter") open(hits[chosen]);
    else return;
    event.preventDefault();
  };

  return (
    <Dialog label="Search" close={close}>
      <input
        autofocus
        role="combobox"
        aria-label="Search"
        aria-expanded={hits.length > 0}
        aria-controls="hits"
        aria-activedescendant={hits.length ? `hit-${chosen}` : undefined}
        placeholder="Title, id, e-mail, name or phone"
        value={text}
        onInput={(e) => (setText(e.currentTarget.value), setActive(0), (entered.current = false))}
        onKeyDown={press}
        spellcheck={false}
      />
      <ul id="hits" role="listbox" aria-label="Found" class="hits">
        {hits.map((hit, i) => (
          <li key={hit.to + hit.what} id={`hit-${i}`} role="option" aria-selected={i === chosen} onClick={() => open(hit)} onPointerMove={() => setActive(i)}>
            <Text>{hit.label}</Text> <span class="muted small">{hit.what}</span>
          </li>
        ))}
      </ul>
      <p class="muted small" role="status" data-search={found.state}>
        {said}
      </p>
    </Dialog>
  );
}
