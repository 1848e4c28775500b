// Small parts that several pages use.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Entry, FunnelPage } from "@lectern/client";
import { titleOf } from "../answers.ts";
import { place } from "../numbers.ts";
import { count, dateTime, exactTime, percent } from "../time.ts";

/** How much of a text is drawn, in characters. */
const longestText = 1000;

/** Time shows a moment in the chosen zone. */
export function Time({ at, show = dateTime }: { at: string; show?: (at: number) => string }) {
  const moment = Date.parse(at);
  if (Number.isNaN(moment)) return <span>{at}</span>;
  return (
    <time dateTime={at} title={exactTime(moment)}>
      {show(moment)}
    </time>
  );
}

/**
 * Text shows a text that somebody else wrote. It keeps the direction of the text to itself, so that marks for
 * right-to-left writing cannot reorder the text around it. It is cut after most characters: a browser takes minutes to break a
 * word of a million characters into lines.
 */
export function Text({ children, most = longestText }: { children: string; most?: number }) {
  return <bdi>{children.length <= most ? children : `${children.slice(0, most)}…`}</bdi>;
}

/** Named shows a text for people, followed by what the data has in its place. */
export const Named = ({ name, code }: { name: string; code: string | undefined }) => <><Text>{name}</Text>{code !== undefined && <> <code class="muted"><Text>{code}</Text></code></>}</>;

/** QuestionName names a question by its title and the key of its answers, or by the key alone if the definition has no title. */
export const QuestionName = ({ title, name }: { title: string | undefined; name: string }) => <Named name={title || name || "(no name)"} code={title ? name : undefined} />;

/** PageHead is the title of a page, with the parts to its right. It also names the window. */
export function PageHead({ title, lead, children }: { title: string; lead?: ComponentChildren; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title.slice(0, longestText)} · Lectern`;
  }, [title]);
  return (
    <header class="pagehead">
      <div>
        <h1>
          <Text>{title}</Text>
        </h1>
        {lead && <p class="muted">{lead}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

/** CopyButton copies a text. */
export function CopyButton({ text, label = "Copy" }: { text: () => string; label?: string }) {
  const [said, setSaid] = useState(label);
  const copy = async () => {
    try {
      // Browsers have no clipboard for pages without HTTPS.
      await navigator.clipboard.writeText(text());
      setSaid("Copied");
    } catch {
      setSaid("Not allowed");
    }
    setTimeout(() => setSaid(label), 1500);
  };
  return (
    <button type="button" class="quiet small" onClick={copy}>
      <span aria-live="polite">{said}</span>
    </button>
  );
}

/** Badge shows one word of a status. tone chooses its colour. */
export function Badge({ tone, children }: { tone: "good" | "busy" | "off" | "plain"; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Figure shows a number with its name, within a list of figures. to is the list of the entries that it counts. */
export function Figure({ name, id, value, note, to }: { name: ComponentChildren; id: string; value: string; note?: ComponentChildren; to?: string | undefined }) {
  return (
    <div class="figure">
      <dt class="muted small wrap">{name}</dt>
      <dd>
        <b data-figure={id}>{to ? <a href={to}>{value}</a> : value}</b> {note && <span class="muted small">{note}</span>}
      </dd>
    </div>
  );
}

/** Percents of fewer say little: three more than three are 100 %. */
const leastBase = 20;

/** Change shows how a number differs from an earlier one: in percent of it unless that is small, or a ratio in points. */
export function Change({ now, old, points = false }: { now: number; old: number; points?: boolean }) {
  const by = Math.abs(now - old);
  return <span class={now === old ? "" : now > old ? "plus" : "minus"}>{now >= old ? "+" : "−"}{points ? `${(100 * by).toFixed(1)} points` : old < leastBase ? count(by) : percent(by / old)}</span>;
}

/** Select is a list of values with their names. The value of undefined is "", which is no choice. */
export function Select({ label, value, options, choose }: { label: string; value: unknown; options: readonly [value: string, name: string][]; choose: (value: string) => void }) {
  return (
    <label>
      <span>{label}</span>
      <select value={String(value ?? "")} onChange={(e) => choose(e.currentTarget.value)}>
        {options.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
      </select>
    </label>
  );
}

/** Opened shows something once the visitor opens it. */
export function Opened({ name, kind, children }: { name: string; kind?: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class={kind} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary class="small">{name}</summary>
      {open && children()}
    </details>
  );
}

/** More is a button that shows more of something. */
export const More = ({ children, show }: { children: ComponentChildren; show: () => void }) => <p class="actions"><button type="button" class="quiet" onClick={show}>{children}</button></p>;

/** Field is a name with its value, within a list of them. */
export function Field({ name, note, children }: { name: string; note?: ComponentChildren; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}{note && <div class="muted small">{note}</div>}</dd>
    </div>
  );
}

/** Removing is a button that removes filters. The focus moves to the first filter, because the button is gone then. */
export function Removing({ children, remove, kind = "" }: { children: ComponentChildren; remove: () => void; kind?: string }) {
  const click = ({ currentTarget }: { currentTarget: HTMLButtonElement }) => {
    currentTarget.form?.querySelector<HTMLElement>("button, select, input")?.focus();
    remove();
  };
  return <button type="button" class={`quiet ${kind}`} onClick={click}>{children}</button>;
}

/** Chip is a filter that the visitor can remove. */
export function Chip({ children, remove }: { children: ComponentChildren; remove: () => void }) {
  return (
    <Removing kind="chip" remove={remove}>
      {children} <span aria-hidden="true">×</span>
      <span class="hidden">: remove the filter</span>
    </Removing>
  );
}

/** TitleOf shows the title of an entry, from its answers. */
export function TitleOf({ entry }: { entry: Entry }) {
  const title = titleOf(entry);
  return title ? <Text>{title}</Text> : <span>No answers yet</span>;
}

/** pageName names a page of a funnel. A key can be very long. */
export function pageName({ page_key, page_index }: Pick<FunnelPage, "page_key" | "page_index">): string {
  return page_key ? (page_key.length > 100 ? `${page_key.slice(0, 100)}…` : page_key) : `page ${place(page_index)}`;
}
