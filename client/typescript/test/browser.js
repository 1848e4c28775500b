// Runs in a page: reads like a program in a browser, and sends the results to the test.
import { Client } from "/dist/index.js";

const retries = [];
const retry = { baseMs: 10, onRetry: (error) => retries.push(error.name) };
const client = new Client({ baseURL: location.origin, apiKey: location.hash.slice(1), retry });
const entries = [];
for await (const entry of client.entries("pr_demo", { limit: 3000 })) entries.push(entry);
let lastSeq;
for await (const page of client.changes("pr_demo", { limit: 10 })) {
  lastSeq = page.lastSeq;
  break;
}
const errors = [];
const stopped = AbortSignal.abort(new Error("stopped"));
for (const call of [() => client.entry("pr_demo", "en_nope"), () => client.project("redirect"), () => client.project("pr_demo", { signal: stopped })]) {
  await call().catch((error) => errors.push([error.name, error.status, error.code]));
}
const worker = new Worker(`/worker.js${location.hash}`, { type: "module" });
const inWorker = await new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
await fetch("/result", { method: "POST", body: JSON.stringify({ entries, inWorker, lastSeq, errors, retries }) });
