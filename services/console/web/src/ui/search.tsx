// The search of the entries page: by the words of answers and ids.
import { useEffect, useState } from "preact/hooks";
import { filter } from "../router.ts";
import { isSearch, longest, shortest } from "../search.ts";

/** SearchField takes words of answers or ids. A text that is too short is not sent. */
export function SearchField({ value }: { value: string }) {
  const [typed, setTyped] = useState(value);
  const [short, setShort] = useState(false);
  useEffect(() => {
    setTyped(value);
    setShort(false);
  }, [value]);
  const take = (text: string) => {
    setShort(text !== "" && !isSearch(text));
    if (text === "" || isSearch(text)) filter({ search: text }, true);
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
