import { APIError, type Change, Client, type Entry, type ErrorCode } from "@lectern/client";

declare const process: { env: Record<string, string | undefined> };

const client = new Client({ baseURL: process.env["LECTERN_URL"] ?? "", apiKey: process.env["LECTERN_API_KEY"] });
let entries = 0;
for await (const entry of client.entries("pr_demo", { updated_after: new Date(0), sort: "created_at", direction: "ASC" })) {
  const record: Entry = entry;
  const id: string = record.entry_id;
  if (id !== "") entries++;
}

export function idOf(change: Change): string {
  switch (change.change) {
    case "entry":
      return change.entry.entry_id;
    case "event":
      return change.event.event_key;
    case "entry_removed":
      return change.entry_id;
  }
}

// @ts-expect-error: no list has this parameter
client.entries("pr_demo", { offset: 10 });
// @ts-expect-error: entries have no such order
client.entries("pr_demo", { sort: "entry_id" });

let code: ErrorCode | "" = "";
try {
  await client.entry("pr_demo", "en_nope");
} catch (error) {
  if (error instanceof APIError) code = error.code;
}
console.log(`${entries} entries, ${code}`);
