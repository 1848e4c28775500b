import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { Client, IncompleteError } from "../dist/index.js";
import { all, cut, entries, entry, page, serve, text } from "./faulty.js";

const quick = { baseMs: 1 };

test("a page that breaks in its middle neither loses nor doubles a record", async (t) => {
  const second = text(entries(1000, 2000));
  const kinds = {
    "within a record": { bytes: second.slice(0, second.length / 2 - 5) },
    "between records": { bytes: text(entries(1000, 1400)) },
    "within compressed bytes": { bytes: gzipSync(second).subarray(0, 2000), headers: { "Content-Encoding": "gzip" } },
    "at a length that was announced": { bytes: text(entries(1000, 1400)), headers: { "Content-Length": second.length } },
    "before the first record": { bytes: "" },
    "within a record, where only the closing marks the end": {
      bytes: second.slice(0, second.length / 2 - 5),
      headers: { "Transfer-Encoding": "identity", Connection: "close" },
    },
  };
  for (const [name, { bytes, headers }] of Object.entries(kinds)) {
    await t.test(name, async (t) => {
      let breaks = 2;
      const server = await serve(t, (request, response) => {
        const cursor = new URL(request.url, "http://host").searchParams.get("cursor");
        if (cursor === "after_1000" && breaks-- > 0) cut(response, bytes, { "X-Next-Cursor": "after_2000", ...headers });
        else if (cursor === "after_1000") page(response, entries(1000, 2000), { "X-Next-Cursor": "after_2000" });
        else if (cursor === "after_2000") page(response, entries(2000, 2500));
        else page(response, entries(0, 1000), { "X-Next-Cursor": "after_1000" });
      });
      const errors = [];
      const client = new Client({ baseURL: server.url, retry: { ...quick, onRetry: (error) => errors.push(error) } });
      assert.deepEqual(await all(client.entries("pr_1")), entries(0, 2500));
      assert.equal(errors.length, 2);
      for (const error of errors) assert.ok(error instanceof IncompleteError, String(error));
    });
  }
});

test("a page that changed before it came again gives unchanged records once, and changed ones as they are now", async (t) => {
  // The first answer breaks after 998 of 1,000 records. Then 3 new records push others to the next page, and one record
  // has changed. Two records have the same text.
  const twin = entry("twin");
  const first = [twin, twin, ...entries(2, 1000)];
  const changed = entry(5, "changed");
  const again = [entry("new_1"), entry("new_2"), entry("new_3"), changed, twin, twin, ...entries(2, 5), ...entries(6, 997)];
  const server = await serve(t, (request, response, count) => {
    if (count === 1) cut(response, text(first.slice(0, 998)), { "X-Next-Cursor": "after_999" });
    else if (request.url.includes("cursor=")) page(response, entries(997, 1010));
    else page(response, again, { "X-Next-Cursor": "after_996" });
  });
  const got = await all(new Client({ baseURL: server.url, retry: quick }).entries("pr_1"));
  assert.deepEqual(got, [...first.slice(0, 998), entry("new_1"), entry("new_2"), entry("new_3"), changed, ...entries(998, 1010)]);
  assert.match(server.requests.at(-1), /cursor=after_996/);
});

test("a page that always breaks at the same place is an IncompleteError after all attempts", async (t) => {
  const server = await serve(t, (request, response) => cut(response, text(entries(0, 10)), { "X-Next-Cursor": "on" }));
  const got = [];
  await assert.rejects(async () => {
    for await (const record of new Client({ baseURL: server.url, retry: { ...quick, attempts: 3 } }).entries("pr_1")) got.push(record);
  }, IncompleteError);
  assert.deepEqual(got, entries(0, 10));
  assert.equal(server.requests.length, 3, "attempts are counted from the last one that brought a record");
});

test("records come while their page streams in, and a consumer that stops ends the transfer", async (t) => {
  let closed;
  const server = await serve(t, (request, response) => {
    closed = once(response, "close");
    response.writeHead(200, { "Content-Type": "application/x-ndjson", "X-Next-Cursor": "on" });
    response.write(text(entries(0, 2)));
  });
  for await (const record of new Client({ baseURL: server.url }).entries("pr_1")) {
    assert.deepEqual(record, entry(0));
    break;
  }
  await closed;
  assert.equal(server.requests.length, 1);
});

test("records of 5 MB, characters across chunks, and empty lists", async (t) => {
  const long = [entry(1, "€ä😀".repeat(500_000)), entry(2), entry(3, "y".repeat(5 << 20))];
  const server = await serve(t, async (request, response) => {
    if (request.url.includes("/empty/")) return page(response, []);
    response.writeHead(200, { "Content-Type": "application/x-ndjson" });
    const bytes = Buffer.from(text(long));
    for (let at = 0; at < bytes.length; at += 65_521) response.write(bytes.subarray(at, at + 65_521));
    response.end();
  });
  const client = new Client({ baseURL: server.url });
  assert.deepEqual(await all(client.entries("pr_1")), long);
  assert.deepEqual(await all(client.entries("empty")), []);
});

test("queries reach the server by the API's names", async (t) => {
  const server = await serve(t, (request, response) => {
    const limit = Number(new URL(request.url, "http://host").searchParams.get("limit"));
    page(response, entries(0, limit), { "X-Next-Cursor": "on", "X-Last-Seq": "0", Link: '<x>; rel="next"' });
  });
  const client = new Client({ baseURL: `${server.url}/api/` });
  const query = {
    limit: 5, pageSize: 3, cursor: "from", sort: "created_at", direction: "ASC", embeddable_id: "a&b=c d",
    updated_after: new Date("2022-01-01T01:00:00+01:00"), updated_before: "2022-02-01", contact_id: undefined,
  };
  assert.equal((await all(client.entries("a/b ü", query))).length, 5);
  assert.equal((await all(client.pageViews("pr_1", { limit: 1, include_urls: true }))).length, 1);
  assert.deepEqual(await all(client.experiments("pr_1", { limit: 0 })), []);
  let pages = 0;
  for await (const _ of client.follow("pr_1", { types: ["entry", "entry_removed"], after: 5, limit: 7, wait: 9 })) if (++pages === 2) break;
  assert.equal(await client.changesCursor("pr_1", { types: ["event"] }), "on");
  const filters = "sort=created_at&direction=ASC&embeddable_id=a%26b%3Dc+d&updated_after=2022-01-01T00%3A00%3A00.000Z&updated_before=2022-02-01";
  assert.deepEqual(server.requests, [
    `/api/projects/a%2Fb%20%C3%BC/entries?${filters}&limit=3&cursor=from`,
    `/api/projects/a%2Fb%20%C3%BC/entries?${filters}&limit=2&cursor=on`,
    "/api/projects/pr_1/entries-page-views?include_urls=true&limit=1",
    "/api/projects/pr_1/entries-changes?types=entry%2Centry_removed&wait=9&limit=7&after=5",
    "/api/projects/pr_1/entries-changes?types=entry%2Centry_removed&wait=9&limit=7&cursor=on",
    "/api/projects/pr_1/entries-changes?types=event&after=now",
  ]);
});

test("what cannot be sent is refused before a request", async (t) => {
  const server = await serve(t, (request, response) => page(response, []));
  const client = new Client({ baseURL: server.url });
  for (const pageSize of [0, 1.5, 1_000_001, NaN]) await assert.rejects(all(client.entries("pr_1", { pageSize })), /pageSize .*1 to 1,000,000/);
  await assert.rejects(all(client.entries("pr_1", { limit: NaN })), /limit NaN/);
  for (const id of ["", ".", ".."]) assert.throws(() => client.entries(id), new RegExp(`identifier "${id}"`));
  assert.deepEqual(server.requests, []);
});
