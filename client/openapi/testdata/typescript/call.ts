// Calls every operation with openapi-fetch, typed by what openapi-typescript made, and writes the
// operations that were answered as they should be, one a line.
import createClient from "openapi-fetch";
import type { paths } from "./generated.js";

function environment(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

const baseUrl = environment("LECTERN_URL");
// Lists come as JSON or, asked for, as lines of it: this client is typed by the first.
const client = createClient<paths, "application/json">({ baseUrl });
const other = createClient<paths>({ baseUrl });
const key = { "X-Api-Key": environment("LECTERN_API_KEY") };
const url = environment("TARGET_URL");
const projectId = "pr_demo";
const proxied = { "X-Project-ID": projectId, "X-Environment": "prod" };
const origin = { Origin: "https://app.example.com" };

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

// answered gives the data of an operation whose answer was good.
function answered<T>(operation: string, { data, error, response }: Answer<T>, good: (data: T) => boolean): T {
  if (response.status !== 200 || data === undefined || !good(data)) {
    throw new Error(`${operation}: ${response.status} ${JSON.stringify(error ?? data)}`);
  }
  console.log(operation);
  return data;
}

const entries = await client.GET("/projects/{projectId}/entries", {
  params: { path: { projectId }, query: { limit: 1, direction: "ASC", sort: "updated_at", updated_after: "2020-01-01" } },
  headers: key,
});
answered("listEntries", entries, (list) => list.length === 1 && list[0]?.entry_id === "en_1");
const cursor = entries.response.headers.get("X-Next-Cursor") ?? "";
answered(
  "listEntries",
  await client.GET("/projects/{projectId}/entries", {
    params: { path: { projectId }, query: { direction: "ASC", updated_after: "2020-01-01", cursor } },
    headers: key,
  }),
  (list) => list.length === 1 && list[0]?.entry_id === "en_2",
);
answered(
  "getEntry",
  await client.GET("/projects/{projectId}/entries/{entryId}", { params: { path: { projectId, entryId: "en_1" } }, headers: key }),
  (entry) => entry.entry_data === '{"n":1}',
);
answered(
  "listEntryEvents",
  await client.GET("/projects/{projectId}/entries/{entryId}/events", { params: { path: { projectId, entryId: "en_1" } }, headers: key }),
  (events) => events[0]?.page_id === "pg_1" && events[0].custom_event_name === null,
);
answered(
  "listEntriesPageViews",
  await client.GET("/projects/{projectId}/entries-page-views", {
    params: { path: { projectId }, query: { include_urls: true } },
    headers: key,
  }),
  (items) => items.length === 2 && items.some((item) => item.page_views[0]?.url === null),
);
const changes = await client.GET("/projects/{projectId}/entries-changes", {
  params: { path: { projectId }, query: { types: "entry,entry_removed", limit: 1, wait: 1 } },
  headers: key,
});
answered("listEntriesChanges", changes, (list) => list[0]?.change === "entry" && list[0].entry.entry_id === "en_1");
answered(
  "listEmbeddables",
  await client.GET("/projects/{projectId}/embeddables", { params: { path: { projectId } }, headers: key }),
  (list) => list[0]?.embeddable_id === "emb_1",
);
const embeddable = { projectId, embeddableId: "emb_1" };
answered(
  "getEmbeddable",
  await client.GET("/projects/{projectId}/embeddables/{embeddableId}", { params: { path: embeddable }, headers: key }),
  (e) => e.json_string_prod === "{}",
);
answered(
  "listEmbeddableVersions",
  await client.GET("/projects/{projectId}/embeddables/{embeddableId}/versions", { params: { path: embeddable }, headers: key }),
  (list) => list[0]?.version_number === 1,
);
answered(
  "getEmbeddableVersion",
  await client.GET("/projects/{projectId}/embeddables/{embeddableId}/versions/{versionNumber}", {
    params: { path: { ...embeddable, versionNumber: 1 } },
    headers: key,
  }),
  (version) => version.json_string === "{}",
);
answered(
  "listExperiments",
  await client.GET("/projects/{projectId}/experiments", { params: { path: { projectId }, query: { status: "running" } } }),
  (list) => list[0]?.id === "exp_1",
);
answered(
  "getExperiment",
  await client.GET("/projects/{projectId}/experiments/{experimentId}", { params: { path: { projectId, experimentId: "exp_1" } } }),
  (experiment) => experiment.outcome === null && experiment.status === "running",
);
answered(
  "listExperimentStatusChanges",
  await client.GET("/projects/{projectId}/experiments/{experimentId}/history", { params: { path: { projectId, experimentId: "exp_1" } } }),
  (changes) => changes.length === 1 && changes[0]?.status === "running",
);
answered("getProject", await client.GET("/projects/{projectId}", { params: { path: { projectId } } }), (project) => project.title === "Demo");
answered(
  "lookUpProjectRegion",
  await client.POST("/api/projects/region", {
    body: { projectId, at: "2022-01-01T00:00:00Z" },
    headers: { "x-api-key": environment("LECTERN_INTERNAL_API_KEY") },
  }),
  (region) => region.region === "Europe/Berlin" && region.offsetInMinutes === 60,
);
answered("getDescriptionYAML", await other.GET("/openapi.yaml", { parseAs: "text" }), (text) => String(text).startsWith("openapi: 3.0.3"));
answered("getDescriptionJSON", await client.GET("/openapi.json"), (description) => "paths" in description);
answered("getReference", await other.GET("/docs", { parseAs: "text" }), (page) => page.includes("<html"));
answered("getReferenceAsset", await other.GET("/docs/{asset}", { params: { path: { asset: "start.js" } }, parseAs: "text" }), (text) => text.length > 0);

const plain = { ...origin, "Content-Type": "text/plain" };
const params = { query: { url }, header: proxied };
const bodySerializer = (body?: string) => body ?? "";
answered("proxyGet", await other.GET("/proxy", { params, headers: origin, parseAs: "text" }), (text) => text === "GET ");
answered(
  "proxyPost",
  await other.POST("/proxy", {
    params: { query: { url }, header: { ...proxied, "X-Use-Body-Templating": "true" } },
    headers: plain,
    body: "{{ cred_echo }}",
    bodySerializer,
    parseAs: "text",
  }),
  (text) => text === "POST a-credential",
);
answered(
  "proxyPut",
  await other.PUT("/proxy", { params, headers: plain, body: "{{ cred_echo }}", bodySerializer, parseAs: "text" }),
  (text) => text === "PUT {{ cred_echo }}",
);
answered("proxyPatch", await other.PATCH("/proxy", { params, headers: plain, body: "x", bodySerializer, parseAs: "text" }), (text) => text === "PATCH x");
answered("proxyDelete", await other.DELETE("/proxy", { params, headers: origin, parseAs: "text" }), (text) => text === "DELETE ");

// Refusals are typed too.
const none = await client.GET("/projects/{projectId}/entries/{entryId}", { params: { path: { projectId, entryId: "en_nope" } }, headers: key });
if (none.response.status !== 404 || none.error?.error.code !== "entry_not_found") {
  throw new Error(`an entry that is not there: ${none.response.status} ${JSON.stringify(none.error)}`);
}
