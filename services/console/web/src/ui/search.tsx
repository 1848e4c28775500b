// The search of the entries page: by what answers contain, or by a complete id.
import { useEffect, useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { filter } from "../router.ts";
import { byId, isSearch, longest, shortest } from "../search.ts";
import { Text } from "./parts.tsx";

/** SearchField takes a text that answers contain. A text that is too short is not sent. */
export function SearchField({ value }: { value: string }) {
  const [typed, setTyped] = useState(value);
  const [short, setShort] = useState(false);
  useEffect(() => {
    setTyped(value);
    setShort(false);
  }, [value]);
  const take = (text: string) => {
    setShort(text !== "" && !isSearch(text));
    if (text === "" || isSearch(text)) filter({ search: text });
  };
  return (
    <label class="wide">
      <span>Search</span>
      <input
        type="search"
        name="search"
        value={typed}
        maxLength={longest}
        placeholder="E-mail, name, phone or id"
        aria-invalid={short}
        aria-describedby={short ? "short" : undefined}
        onInput={(e) => (setTyped(e.currentTarget.value), e.currentTarget.value === "" && take(""))}
        onChange={(e) => take(e.currentTarget.value.trim())}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
      />
      {short && <span id="short" class="small" role="alert">Type at least {shortest} characters.</span>}
    </label>
  );
}

/** ById offers the entry or the contact that has the text as its id. */
export function ById({ project, id }: { project: string; id: string }) {
  const { value } = useLoad(({ client, signal }) => byId(client, project, id, signal), ["by id", project, id]);
  return value && value.length > 0 ? (
    <ul class="rows card" aria-label="Found by id">
      {value.map(({ label, what, to }) => (
        <li key={to}><a href={to}><Text>{label}</Text></a> <span class="muted small">{what} with this id</span></li>
      ))}
    </ul>
  ) : null;
}
