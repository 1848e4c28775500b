import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { limited } from "../api.ts";
import { useLoad } from "../load.ts";
import { address } from "../router.ts";
import { session } from "../session.ts";
import { keyHeader, shell, variable } from "../shell.ts";
import { count } from "../time.ts";
import { Copied } from "../ui/commands.tsx";
import { Awake } from "../ui/first.tsx";
import { Badge, CopyButton, PageHead, Time, TitleOf } from "../ui/parts.tsx";
import { Loaded, Problem } from "../ui/state.tsx";
import { ProjectList, useProjects } from "./projects.tsx";

interface Sample {
  id: string;
  name: string;
  what: string;
  curl: (v: Values) => string;
  go: (v: Values) => string;
  typescript: (v: Values) => string;
}

interface Values {
  url: string;
  project: string;
  /** The key, or undefined to read it from the environment. */
  key: string | undefined;
}

// Go and TypeScript take it as one text, whatever it holds.
const quoted = (text: string) => JSON.stringify(text);

const goProgram = ({ url, key }: Values, body: string, imports: string[]) => `package main

import (
	"context"
	"fmt"
	"log"
${key === undefined ? `	"os"\n` : ""}${imports.map((name) => `	"${name}"\n`).join("")}
	"github.com/lectern-dev/lectern/client"
)

func main() {
	c, err := client.New(${quoted(url)}, client.WithAPIKey(${key === undefined ? `os.Getenv("${variable}")` : quoted(key)}))
	if err != nil {
		log.Fatal(err)
	}
${body}
}
`;

const typescriptClient = ({ url, key }: Values) => `import { Client } from "@lectern/client";

const client = new Client({ baseURL: ${quoted(url)}, apiKey: ${key === undefined ? `process.env.${variable} ?? ""` : quoted(key)} });
`;

const samples: Sample[] = [
  {
    id: "entries",
    name: "Read entries",
    what: "All entries that were updated in 2026, the oldest first.",
    curl: ({ url, project, key }) => `curl -H ${keyHeader(key)} -H 'Accept: application/x-ndjson' \\
  ${shell(`${url}/projects/${encodeURIComponent(project)}/entries?updated_after=2026-01-01&direction=ASC&limit=1000000`)}
`,
    go: (v) =>
      goProgram(
        v,
        `	query := client.EntryQuery{UpdatedAfter: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Direction: client.Ascending}
	for entry, err := range c.Entries(context.Background(), ${quoted(v.project)}, query) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.EntryID, entry.Data)
	}`,
        ["time"],
      ),
    typescript: (v) => `${typescriptClient(v)}
for await (const entry of client.entries(${quoted(v.project)}, { updated_after: "2026-01-01", direction: "ASC" })) {
  console.log(entry.entry_id, entry.entry_data);
}
`,
  },
  {
    id: "changes",
    name: "Follow changes",
    what: "Everything that is stored or removed, from the beginning, then as it happens. Keep the cursor to go on later.",
    curl: ({ url, project, key }) => `curl -i -H ${keyHeader(key)} \\
  ${shell(`${url}/projects/${encodeURIComponent(project)}/entries-changes?wait=60`)}
# Next time, add &cursor= with the value of X-Next-Cursor.
`,
    go: (v) =>
      goProgram(
        v,
        `	for page, err := range c.Follow(context.Background(), ${quoted(v.project)}, client.ChangeQuery{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Changes), "changes; next time from", page.NextCursor)
	}`,
        [],
      ),
    typescript: (v) => `${typescriptClient(v)}
for await (const page of client.follow(${quoted(v.project)})) {
  console.log(page.changes.length, "changes; next time from", page.nextCursor);
}
`,
  },
];

const languages = [
  { id: "curl", name: "curl" },
  { id: "go", name: "Go" },
  { id: "typescript", name: "TypeScript" },
] as const;

/** Connect shows requests with the values of this project, and the limits of the key. */
export function Connect({ project }: { project: string }) {
  const [language, setLanguage] = useState<(typeof languages)[number]["id"]>("curl");
  const key = session.value?.key ?? "";
  const shown: Values = { url: location.origin, project, key: undefined };
  return (
    <>
      <PageHead title="Connect" lead="Send entries in, and read them from your own programs. The requests have the values of this project." />
      <Sending project={project} />
      <div class="card">
        <div class="actions" role="group" aria-label="Language">
          {languages.map(({ id, name }) => (
            <button key={id} type="button" class="quiet small" aria-pressed={language === id} onClick={() => setLanguage(id)}>
              {name}
            </button>
          ))}
        </div>
        {samples.map((sample) => (
          <section key={sample.id} class="sample" aria-labelledby={`sample-${sample.id}`}>
            <Code id={`sample-${sample.id}`} title={sample.name} label={`${sample.name}, ${language}`} text={sample[language](shown)} withKey={key && sample[language]({ ...shown, key })}>
              {sample.what}
            </Code>
          </section>
        ))}
        <p class="muted small">
          Go: <code>go get github.com/lectern-dev/lectern/client</code>. TypeScript: <code>npm install @lectern/client</code>. The whole API is described at{" "}
          <a href="/docs" target="_blank" rel="noreferrer">
            /docs
          </a>
          .
        </p>
      </div>
      <Limits project={project} />
      {session.value?.tokens && <Others />}
    </>
  );
}

/** Code shows a text that can be copied, below what it is for. withKey is the text with the key in it, if there is one to copy. */
function Code({ id, title, label, text, withKey, children }: { id: string; title: string; label: string; text: string; withKey?: string; children: ComponentChildren }) {
  return (
    <>
      <div class="pagehead">
        <div>
          <h2 id={id}>{title}</h2>
          <p class="muted small">{children}</p>
        </div>
        <div class="actions">
          <CopyButton text={() => text} />
          {withKey && <CopyButton text={() => withKey} label="Copy with the key" />}
        </div>
      </div>
      <pre class="raw code" tabIndex={0} role="region" aria-label={label}>{text}</pre>
    </>
  );
}

/** first returns the command that sends an entry. */
function first(project: string, now: string): string {
  const entry = {
    entry_id: "my-first-entry", project_id: project, embeddable_id: "my-form", group_id: "my-group", contact_id: "my-visitor",
    created_at: now, updated_at: now, entry_data: JSON.stringify({ name: "Ada", answer: 42 }),
  };
  const members = Object.entries(entry).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  // A line for each member, of which the shell makes one.
  const lines = members.map((member, i) => shell(`${i === 0 ? "{" : ""}${member}${i + 1 < members.length ? "," : "}"}`));
  return `curl -H "X-Api-Key: $LECTERN_INGEST_API_KEY" "$LECTERN_INTERNAL_URL/internal/entries" \\
  -H 'Content-Type: application/x-ndjson' --data-binary \\
${lines.join("\\\n")}
`;
}

/** Sending shows how the first entry is sent, and that it came. */
function Sending({ project }: { project: string }) {
  const load = useLoad(({ client, signal }) => Array.fromAsync(client.entries(project, { limit: 1 }, { signal })), ["newest", project]);
  const [command] = useState(() => first(project, new Date().toISOString()));
  const newest = load.value?.[0];
  return (
    <section class="card" aria-labelledby="sending">
      <Code id="sending" title="Send an entry" label="The command that sends an entry" text={command}>
        Data goes in at the internal address, with a key for ingest. An operator has both. For a run on this machine they are in <code>.lectern/demo.env</code>.
      </Code>
      <Awake project={project} wake={load.reload} />
      {load.state === "failed" && load.error && <Problem error={load.error} retry={load.reload} />}
      {load.value && (
        <p role="status" data-newest={newest?.entry_id ?? ""}>
          {newest ? (
            <>
              {Date.now() - Date.parse(newest.updated_at) < 86_400_000 && <Badge tone="good">Entries come in</Badge>} The newest entry: <a href={address(project, "entries", newest.entry_id)}><TitleOf entry={newest} /></a>, <Time at={newest.updated_at} />.
            </>
          ) : (
            <>
              <span class="spinner" aria-hidden="true" /> Waiting for the first entry. This line changes when it is there.
            </>
          )}
        </p>
      )}
    </section>
  );
}

/** limitsOf reads the headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
function limitsOf(headers: Headers) {
  const [policy, state] = [headers.get("RateLimit-Policy") ?? "", headers.get("RateLimit") ?? ""];
  const parameter = (header: string, name: string) => Number(new RegExp(`;\\s*${name}=(\\d+)`).exec(header)?.[1] ?? NaN);
  return { policy, state, quota: parameter(policy, "q"), window: parameter(policy, "w"), remaining: parameter(state, "r") };
}

/** Others shows the projects that the visitor may read. */
function Others() {
  return (
    <section class="card" aria-labelledby="projects">
      <h2 id="projects">Your projects</h2>
      <ProjectList load={useProjects()} />
    </section>
  );
}

function Limits({ project }: { project: string }) {
  // One small request, so that the headers are fresh.
  const load = useLoad(
    async ({ client, signal }) => {
      for await (const _ of client.embeddables(project, { limit: 1 }, { signal })) break;
      return true;
    },
    ["limits", project],
  );
  const limits = limited.value && limitsOf(limited.value);
  return (
    <section class="card" aria-labelledby="limits">
      <h2 id="limits">Limits of the key</h2>
      <Loaded load={load} what="the limits">
        {() =>
          limits ? (
            <>
              <div class="figures">
                <p class="figure">
                  <b>{count(limits.quota)}</b> <span class="muted small">requests at once, then {count(limits.quota / limits.window)} a second</span>
                </p>
                <p class="figure">
                  <b data-figure="remaining">{count(limits.remaining)}</b> <span class="muted small">left at the moment</span>
                </p>
              </div>
              <p class="muted small wrap">
                <code>RateLimit-Policy: {limits.policy}</code> <br />
                <code>RateLimit: {limits.state}</code>
              </p>
            </>
          ) : (
            <p class="muted">The server sets no limits.</p>
          )
        }
      </Loaded>
      <div data-mint>
        <p class="muted small">A platform engineer makes another key:</p>
        <Copied command={`lectern keys mint --project=${shell(project)} --name=NAME`} />
      </div>
    </section>
  );
}
