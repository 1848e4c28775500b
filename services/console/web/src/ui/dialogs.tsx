import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { APIError } from "@lectern/client";
import { titleOf } from "../answers.ts";
import { collect, nameOf, useEmbeddables, useLoad } from "../api.ts";
import { address, go, pageNames, pages } from "../router.ts";
import { Text } from "./parts.tsx";

/** Dialog is a modal dialog. Escape and a click outside close it. */
export function Dialog({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={label} onClose={close} onClick={(e) => e.target === element.current && element.current?.close()}>
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

interface Hit {
  label: string;
  what: string;
  to: string;
}

/** How many hits among the embeddables and the experiments are listed. */
const mostHits = 50;

/** Search finds pages, embeddables and experiments by name or id, and entries and contacts by id. */
export function Search({ project, close }: { project: string; close: () => void }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  // Search works without the titles, if they cannot be read.
  const { value: embeddables = [] } = useEmbeddables(project);
  const { value: experiments = [] } = useLoad(({ client, signal }) => collect(client.experiments(project, {}, { signal })), [project]);

  const id = text.trim();
  const wanted = id.toLowerCase();
  // Only what exists is offered, so that no hit leads nowhere.
  const found = useLoad<Hit[]>(
    async ({ client, signal }) => {
      if (id === "" || id.length > 256) return [];
      await new Promise((typed) => setTimeout(typed, 150));
      signal.throwIfAborted();
      const [[entry], [contact]] = await Promise.all([
        client.entry(project, id, { signal }).then((entry) => [entry], none),
        collect(client.entries(project, { contact_id: id, limit: 1 }, { signal })).catch(none),
      ]);
      return [
        ...(entry ? [{ label: titleOf(entry) || id, what: "Entry", to: address(project, "entries", id) }] : []),
        ...(contact ? [{ label: id, what: "Contact", to: address(project, "contacts", id) }] : []),
      ];
    },
    [project, id],
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
  const chosen = Math.min(active, hits.length - 1);
  const said =
    found.state === "loading" ? "Looking…"
    : found.error ? found.error.message
    : hits.length === 0 ? "Nothing has this title or id. Ids of entries and contacts must be complete."
    : "Embeddables and experiments by title or id, entries and contacts by id.";

  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    close();
    go(hit.to);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" && hits.length > 0) setActive((chosen + 1) % hits.length);
    else if (event.key === "ArrowUp" && hits.length > 0) setActive((chosen - 1 + hits.length) % hits.length);
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
        placeholder="Title or id"
        value={text}
        onInput={(e) => (setText(e.currentTarget.value), setActive(0))}
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

/** none stands for a record that does not exist, or that the key may not read. It throws other errors. */
function none(error: unknown): [] {
  if (error instanceof APIError && [400, 403, 404].includes(error.status)) return [];
  throw error;
}
