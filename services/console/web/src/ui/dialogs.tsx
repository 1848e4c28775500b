import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { nameOf, useEmbeddables } from "../api.ts";
import { address, go, type Page, pageNames, pages } from "../router.ts";
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
export const keys: Record<string, Page> = { o: "overview", e: "entries", f: "funnel", b: "embeddables", x: "experiments", c: "connect" };

const help: [string, string][] = [
  ["/", "Search pages, embeddables, entries and contacts"],
  ["?", "Show this help"],
  ...Object.entries(keys).map(([key, page]): [string, string] => [`g ${key}`, `Open ${pageNames[page]}`]),
  ["↑ ↓", "Move through a table, as do Page Up, Page Down, Home and End"],
  ["Enter", "Open the row"],
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

/** How many hits among the embeddables are listed. */
const mostHits = 50;

/** Search finds pages and embeddables by name, and opens entries and contacts by id. */
export function Search({ project, close }: { project: string; close: () => void }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  // Search works without the titles, if they cannot be read.
  const { value: embeddables = [] } = useEmbeddables(project);

  const id = text.trim();
  const wanted = id.toLowerCase();
  const matches = (hit: Hit) => hit.label.toLowerCase().includes(wanted);
  const hits: Hit[] = [
    ...pages.map((page) => ({ label: pageNames[page], what: "Page", to: address(project, page) })).filter(matches),
    ...embeddables.flatMap((e) => [
      { label: nameOf(e), what: "Funnel", to: address(project, "funnel", e.embeddable_id) },
      { label: nameOf(e), what: "Embeddable", to: address(project, "embeddables", e.embeddable_id) },
    ]).filter((hit) => wanted !== "" && matches(hit)).slice(0, mostHits),
    ...(id ? [
      { label: id, what: "Entry with this id", to: address(project, "entries", id) },
      { label: id, what: "Entries of this contact", to: address(project, "entries", "", { contact: id }) },
    ] : []),
  ];
  const chosen = Math.min(active, hits.length - 1);

  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    close();
    go(hit.to);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setActive((chosen + 1) % hits.length);
    else if (event.key === "ArrowUp") setActive((chosen - 1 + hits.length) % hits.length);
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
        aria-expanded="true"
        aria-controls="hits"
        aria-activedescendant={hits.length ? `hit-${chosen}` : undefined}
        placeholder="Page, embeddable, or id"
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
    </Dialog>
  );
}
