import assert from "node:assert/strict";
import { test } from "node:test";

import { APIError, Client, HistoryLostError } from "../dist/index.js";
import { all, cut, page, serve, text } from "./faulty.js";

const removal = (seq) => ({ change: "entry_removed", seq, entry_id: `en_${seq}`, removed_at: "2022-01-01T00:00:00Z", reason: "erased" });
const more = { Link: '<http://host/>; rel="next"', "X-Last-Seq": "9007199254740991" };

test("a feed goes on by its cursors, waits as asked, and gives a page that broke once and whole", async (t) => {
  let asked;
  const server = await serve(t, (request, response, count) => {
    if (count === 1) page(response, [removal(1), removal(2)], { ...more, "X-Next-Cursor": "after_2" });
    else if (count === 2) cut(response, text([removal(3)]), { ...more, "X-Next-Cursor": "after_4" });
    else if (count === 3) page(response, [removal(3), removal(4)], { ...more, "X-Next-Cursor": "after_4" });
    else if (count === 4) {
      asked = Date.now();
      page(response, [], { ...more, "X-Next-Cursor": "after_5", "Retry-After": "1" });
    } else {
      asked = Date.now() - asked;
      page(response, [removal(6)], { "X-Last-Seq": "6", "X-Next-Cursor": "after_6" });
    }
  });
  const lastSeq = 9007199254740991;
  assert.deepEqual(await all(new Client({ baseURL: server.url, retry: { baseMs: 1 } }).changes("pr_1", { cursor: "after_0" })), [
    { changes: [removal(1), removal(2)], nextCursor: "after_2", current: false, lastSeq },
    { changes: [removal(3), removal(4)], nextCursor: "after_4", current: false, lastSeq },
    { changes: [], nextCursor: "after_5", current: false, lastSeq },
    { changes: [removal(6)], nextCursor: "after_6", current: true, lastSeq: 6 },
  ]);
  assert.deepEqual(
    server.requests.map((url) => new URL(url, "http://host").searchParams.get("cursor")),
    ["after_0", "after_2", "after_2", "after_4", "after_5"],
  );
  assert.ok(asked >= 990, `the next request came ${asked} ms after an answer with Retry-After: 1`);
});

test("a follower goes on after the reader is current", async (t) => {
  const server = await serve(t, (request, response, count) => {
    page(response, count === 3 ? [removal(3)] : [], { "X-Last-Seq": String(count), "X-Next-Cursor": `after_${count}` });
  });
  const seen = [];
  for await (const { changes, nextCursor } of new Client({ baseURL: server.url }).follow("pr_1")) {
    seen.push(nextCursor);
    if (changes.length > 0) break;
  }
  assert.deepEqual(seen, ["after_1", "after_2", "after_3"]);
  assert.match(server.requests[0], /wait=30/);
});

test("a lost history ends a feed with the ends of the stretch", async (t) => {
  for (const until of [20, null]) {
    const server = await serve(t, (request, response) => {
      response.writeHead(410).end(JSON.stringify({ error: { code: "history_lost", message: "Lost." }, projectId: "pr_1", after: 10, until }));
    });
    await assert.rejects(all(new Client({ baseURL: server.url }).changes("pr_1", { cursor: "c" })), (error) => {
      assert.ok(error instanceof HistoryLostError && error instanceof APIError);
      assert.deepEqual([error.name, error.status, error.after, error.until], ["HistoryLostError", 410, 10, until]);
      return true;
    });
    assert.equal(server.requests.length, 1);
  }
});

test("an answer without its cursor ends a feed with an error", async (t) => {
  const server = await serve(t, (request, response) => page(response, [removal(1)], { "X-Last-Seq": "1" }));
  await assert.rejects(all(new Client({ baseURL: server.url }).changes("pr_1")), /no X-Next-Cursor/);
  assert.equal(server.requests.length, 1);
});
