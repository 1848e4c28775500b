// Where the data of a page comes from, as commands.
import { asked } from "../load.ts";
import { csv, curl, lectern } from "../shell.ts";
import { CopyButton, Opened } from "./parts.tsx";

/** Commands shows the requests of the page, as commands of curl and of lectern. Lists of entries can also be CSV. */
export const Commands = () => <Opened name="This view as curl, lectern or CSV" kind="commands small">{() => asked().map((address) => <Command key={address} url={new URL(address)} />)}</Opened>;

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
