// Where the data of a page comes from, as commands.
import { useState } from "preact/hooks";
import { asked } from "../load.ts";
import { csv, curl, lectern } from "../shell.ts";
import { CopyButton } from "./parts.tsx";

/** Commands shows the requests of the page, as commands of curl and of lectern. Lists of entries can also be CSV. */
export function Commands() {
  const [open, setOpen] = useState(false);
  return (
    <details class="commands small" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary class="small">This view as curl, lectern or CSV</summary>
      {open && asked().map((address) => <Command key={address} url={new URL(address)} />)}
    </details>
  );
}

function Command({ url }: { url: URL }) {
  const file = csv(url);
  return (
    <>
      {[curl(url.href), lectern(url), ...(file ? [file] : [])].map((command) => <Copied key={command} command={command} />)}
    </>
  );
}

/** Copied shows a command that can be copied. */
export const Copied = ({ command }: { command: string }) => <div class="small"><code class="wrap">{command}</code> <CopyButton text={() => command} /></div>;
