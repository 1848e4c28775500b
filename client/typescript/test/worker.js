// Runs in a worker of a page: counts entries.
import { Client } from "/dist/index.js";

const client = new Client({ baseURL: location.origin, apiKey: location.hash.slice(1) });
let count = 0;
for await (const _ of client.entries("pr_demo", { limit: 900 })) count++;
postMessage(count);
