// Shows a value of JSON that a visitor wrote. It can have any length and depth.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { indented, isText, readable, text, textsOf } from "../answers.ts";
import type { Texts } from "../questions.ts";
import { count } from "../time.ts";
import { Named, Text } from "./parts.tsx";

/** How much of a text is shown at first, and how much more each button adds, in characters. A browser draws this at once. */
const firstLength = 600;
const moreLength = 100_000;

/** LongText shows the beginning of a text, and more of it by a button. */
export function LongText({ children, code = false, first = firstLength }: { children: string; code?: boolean; first?: number }) {
  const [length, setLength] = useState(first);
  // A few characters more are no reason for a button.
  const cut = children.length > length * 1.2;
  const shown = <Text most={Infinity}>{cut ? children.slice(0, length) : children}</Text>;
  return (
    <>
      {code ? <pre class="json">{shown}</pre> : <span class="longtext">{shown}</span>}
      {cut && (
        <button type="button" class="quiet small" onClick={() => setLength(length + moreLength)}>
          {children.length <= (length + moreLength) * 1.2 ? "Show all" : "Show more"} ({count(children.length)} characters)
        </button>
      )}
    </>
  );
}

/** Nested values up to this length stand in one line. */
const shortLength = 60;

/** Choice shows the text of a choice with the value that entries have, or else the value. */
function Choice({ value, texts, children }: { value: string; texts: Texts | undefined; children: ComponentChildren }) {
  const chosen = texts?.get(value);
  return chosen === undefined ? <>{children}</> : <Named name={chosen} code={value} />;
}

/** Value shows a value of JSON: a text as it is, nested values indented. */
export function Value({ json, texts: chosen }: { json: string; texts?: Texts | undefined }) {
  const nested = /^[[{]/.test(json);
  const long = useMemo(() => (nested && json.length > shortLength ? indented(json) : ""), [json]);
  const texts = textsOf(json);
  if (texts) return <ul class="names">{texts.map((one, i) => <li key={i}><Choice value={one} texts={chosen}><Text>{readable(one)}</Text></Choice></li>)}</ul>;
  if (/^\[\s*\]$/.test(json)) return <span class="muted">Empty list</span>;
  if (json === "null") return <span class="muted">No answer</span>;
  if (json === '""') return <span class="muted">Empty text</span>;
  if (isText(json)) return <Choice value={text(json)} texts={chosen}><LongText>{readable(text(json))}</LongText></Choice>;
  if (long) return <LongText code>{long}</LongText>;
  return nested ? <code class="wrap">{json}</code> : <Choice value={json} texts={chosen}><LongText>{json}</LongText></Choice>;
}
