import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import { APIError, Client, ConnectionError, IncompleteError } from "../dist/index.js";
import { all, cut, entries, entry, page, refuse, serve, text } from "./faulty.js";

const key = "rk_secret_0123456789";

test("an error of the API has its code, message, request and context", async (t) => {
  const server = await serve(t, (request, response) => refuse(response, 404, "entry_not_found", {}, { entryId: "en_1" }));
  await assert.rejects(new Client({ baseURL: server.url }).entry("pr_1", "en_1"), (error) => {
    assert.ok(error instanceof APIError && error instanceof Error);
    const { name, message, status, code, requestId, context } = error;
    assert.deepEqual({ name, message, status, code, requestId, context }, {
      name: "APIError", message: "It is entry_not_found.", status: 404, code: "entry_not_found", requestId: "req_1", context: { entryId: "en_1" },
    });
    return true;
  });
  assert.equal(server.requests.length, 1);
});

test("what may pass is tried again; a list goes on as if nothing had been", async (t) => {
  const started = Date.now();
  const server = await serve(t, (request, response, count) => {
    if (count === 1) refuse(response, 429, "rate_limited", { "Retry-After": "1" });
    else if (count === 2) refuse(response, 503, "unavailable", { "Retry-After": new Date(Date.now() + 2000).toUTCString() });
    else if (count === 3) response.writeHead(502, { "Content-Type": "text/html" }).end("<h1>Bad gateway</h1>");
    else if (count === 4) response.writeHead(504).end();
    else if (count === 5) response.destroy();
    else page(response, entries(0, 3));
  });
  const told = [];
  const retry = { baseMs: 1, onRetry: (error, waitMs) => told.push([error.name, error.status, error.code, waitMs]) };
  assert.deepEqual(await all(new Client({ baseURL: server.url, retry }).entries("pr_1")), entries(0, 3));
  assert.deepEqual(told.map((of) => of.slice(0, 3)), [
    ["APIError", 429, "rate_limited"], ["APIError", 503, "unavailable"], ["APIError", 502, ""], ["APIError", 504, ""], ["ConnectionError", undefined, undefined],
  ]);
  const [seconds, date, ...others] = told.map((of) => of[3]);
  assert.ok(seconds >= 1000 && seconds <= 1001, `${seconds} ms after Retry-After: 1`);
  assert.ok(date > 200 && date <= 2002, `${date} ms after a date two seconds away`);
  others.forEach((wait, i) => assert.ok(wait >= 2 ** (i + 1) && wait <= 2 ** (i + 2), `${wait} ms before attempt ${i + 4}`));
  assert.ok(Date.now() - started >= 1200, "it did not wait");
});

test("another function reads the JSON", async (t) => {
  const server = await serve(t, (request, response) => page(response, entries(0, 2)));
  const client = new Client({ baseURL: server.url, parse: (json) => json.length });
  assert.deepEqual(await all(client.entries("pr_1")), entries(0, 2).map((one) => JSON.stringify(one).length));
});

test("attempts and waits have bounds", async (t) => {
  const server = await serve(t, (request, response) => refuse(response, 503, "unavailable", request.url.includes("/long") ? { "Retry-After": "3" } : {}));
  const client = new Client({ baseURL: server.url, retry: { attempts: 3, baseMs: 1, longestMs: 2000 } });
  await assert.rejects(client.project("short"), { status: 503 });
  assert.equal(server.requests.length, 3);
  await assert.rejects(client.project("long"), { status: 503, retryAfterMs: 3000 });
  assert.equal(server.requests.length, 4);
});

test("a single record that is cut off is asked for again", async (t) => {
  const whole = JSON.stringify(entry(1));
  const headers = { "Content-Type": "application/json", "Content-Length": whole.length };
  const server = await serve(t, (request, response, count) => {
    if (count <= 2) cut(response, whole.slice(0, 9), headers);
    else response.writeHead(200, headers).end(whole);
  });
  assert.deepEqual(await new Client({ baseURL: server.url, retry: { baseMs: 1 } }).entry("pr_1", "en_1"), entry(1));
  server.requests.length = 0;
  const once = new Client({ baseURL: (await serve(t, (request, response) => cut(response, whole.slice(0, 9), headers))).url, retry: { attempts: 1 } });
  await assert.rejects(once.entry("pr_1", "en_1"), IncompleteError);
});

test("no answer is a ConnectionError", async (t) => {
  const server = await serve(t, (request, response) => response.destroy());
  await assert.rejects(new Client({ baseURL: server.url, apiKey: key, retry: { attempts: 2, baseMs: 1 } }).project("pr_1"), ConnectionError);
  assert.equal(server.requests.length, 2);
});

test("an error of fetch that is no fault of the network passes as it is", async () => {
  const steers = Object.assign(new Error("Dynamic server usage"), { digest: "DYNAMIC_SERVER_USAGE" }); // as Next.js throws it
  const asked = [];
  const fetch = async (url, options) => {
    asked.push(Object.keys(options).sort());
    throw steers;
  };
  await assert.rejects(new Client({ baseURL: "http://127.0.0.1:1", apiKey: key, fetch }).project("pr_1"), (error) => error === steers);
  assert.deepEqual(asked, [["headers", "method", "redirect", "signal"]]); // once, and without options that only browsers know
  const client = new Client({ baseURL: "http://127.0.0.1:1", apiKey: () => asked.push("key") && Promise.reject(steers) });
  await assert.rejects(client.project("pr_1"), (error) => error === steers);
  assert.equal(asked.length, 2); // as headers() within the function for the key does
});

test("a lost connection is a ConnectionError wherever fetch runs", async () => {
  for (const [message, fault] of [
    // Under Jest, errors of fetch are of another realm.
    ["connect ECONNREFUSED", runInNewContext(`new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })`)],
    // Cloudflare's Workers mark errors of the network.
    ["Network connection lost.", Object.assign(new Error("Network connection lost."), { retryable: true })],
  ]) {
    let asked = 0;
    const fetch = async () => {
      asked++;
      throw fault;
    };
    const client = new Client({ baseURL: "http://127.0.0.1:1", apiKey: key, fetch, retry: { attempts: 2, baseMs: 1 } });
    await assert.rejects(client.project("pr_1"), (error) => error instanceof ConnectionError && error.message === `no answer: ${message}`);
    assert.equal(asked, 2);
  }
});

test("the key stays with its host, and out of errors", async (t) => {
  const other = await serve(t, (request, response) => page(response, []));
  const server = await serve(t, (request, response) => {
    assert.equal(request.headers["x-api-key"], key);
    if (request.url.includes("/redirect")) response.writeHead(302, { Location: `${other.url}/${key}` }).end();
    else refuse(response, 400, "invalid_parameter", {}, { echo: key, error: { code: "invalid_parameter", message: `No ${key}.` } });
  });
  const client = new Client({ baseURL: server.url, apiKey: key });
  for (const [project, want] of [["redirect", /redirect .*not followed/], ["echo", /^No \[redacted\]\.$/]]) {
    await assert.rejects(client.project(project), (error) => {
      assert.match(error.message, want);
      assert.ok(!`${error.stack} ${JSON.stringify(error)}`.includes(key), "the key is in the error");
      return true;
    });
  }
  assert.deepEqual(other.requests, []);
  assert.throws(() => new Client({ baseURL: server.url, apiKey: `rk_\n${key}` }), (error) => !error.message.includes(key));
});

test("answers that are not the API's end at once", async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url.includes("/html")) response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end("<p>Log in</p>");
    else if (request.url.includes("/garbage")) response.writeHead(200, { "Content-Type": "application/x-ndjson" }).end(`${text(entries(0, 1))}{"entry_id":\n`);
    else response.writeHead(500, { "Content-Type": "application/json" }).end('{"error":"a text"}');
  });
  const client = new Client({ baseURL: server.url });
  await assert.rejects(all(client.entries("html")), /text\/html; charset=utf-8 instead of application\/x-ndjson/);
  await assert.rejects(all(client.entries("garbage")), /not JSON/);
  await assert.rejects(client.project("other"), { name: "APIError", status: 500, code: "", message: "the server answered 500 Internal Server Error" });
  assert.equal(server.requests.length, 3);
});

test("an aborted signal ends a call at once, with its reason", async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url.includes("/body")) response.writeHead(200, { "Content-Type": "application/x-ndjson" }).write(text(entries(0, 1)));
    else if (request.url.includes("/retry")) refuse(response, 503, "unavailable", { "Retry-After": "60" });
    else if (request.url.includes("/feed")) page(response, [], { Link: "more", "X-Next-Cursor": "on", "X-Last-Seq": "1", "Retry-After": "60" });
  });
  const client = new Client({ baseURL: server.url });
  const calls = {
    "before an answer": (signal) => client.project("none", { signal }),
    "within a body": (signal) => all(client.entries("body", {}, { signal })),
    "in the wait for another attempt": (signal) => client.project("retry", { signal }),
    "in the wait of a feed": (signal) => all(client.changes("feed", {}, { signal })),
  };
  for (const [name, call] of Object.entries(calls)) {
    await t.test(name, async () => {
      const reason = new Error("stopped");
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), 100);
      const started = Date.now();
      await assert.rejects(call(controller.signal), (error) => error === reason);
      assert.ok(Date.now() - started < 5000);
      await assert.rejects(call(AbortSignal.abort(reason)), (error) => error === reason);
    });
  }
  await t.test("between records that have come already", async (t) => {
    const whole = await serve(t, (request, response) => page(response, entries(0, 100)));
    const controller = new AbortController();
    const reason = new Error("stopped");
    const got = [];
    await assert.rejects(async () => {
      for await (const record of new Client({ baseURL: whole.url }).entries("pr_1", {}, { signal: controller.signal })) {
        if (got.push(record) === 3) controller.abort(reason);
      }
    }, (error) => error === reason);
    assert.equal(got.length, 3);
  });
});

test("a base that is no address is named", () => {
  for (const baseURL of ["", "api", "/api", "api.example.com", "ftp://api.example.com"]) {
    assert.throws(() => new Client({ baseURL }), { name: "TypeError", message: `baseURL "${baseURL}": want http://HOST or https://HOST` });
  }
  for (const baseURL of ["https://me:secret@host", "https://host?a=secret", "https://host#secret"]) {
    assert.throws(() => new Client({ baseURL }), { message: 'baseURL of host "host": want neither user, query nor fragment' });
  }
});

test("a key may be rotated: after a 401, the request is repeated once if the key has changed", async (t) => {
  const sent = [];
  const server = await serve(t, (request, response) => {
    sent.push(request.headers["x-api-key"]);
    if (request.headers["x-api-key"] === "rk_new") page(response, entries(0, 2));
    else refuse(response, 401, "unauthorized");
  });
  const read = (...keys) => {
    sent.length = 0;
    const apiKey = async () => (keys.length > 1 ? keys.shift() : keys[0]);
    return all(new Client({ baseURL: server.url, apiKey }).entries("pr_1"));
  };
  assert.deepEqual(await read("rk_old", "rk_new"), entries(0, 2));
  assert.deepEqual(sent, ["rk_old", "rk_new"]);
  await assert.rejects(read("rk_old"), { code: "unauthorized" });
  assert.deepEqual(sent, ["rk_old"]);
  await assert.rejects(read("rk_old", "rk_older", "rk_new"), { code: "unauthorized" });
  assert.deepEqual(sent, ["rk_old", "rk_older"]);
});

test("a function that has no key for a moment is called again", async (t) => {
  const server = await serve(t, (request, response) => page(response, entries(0, 1)));
  let calls = 0;
  const apiKey = () => {
    if (++calls === 1) throw new Error("the store is away");
    return key;
  };
  const told = [];
  const retry = { baseMs: 1, onRetry: (error) => told.push(error.message) };
  assert.deepEqual(await all(new Client({ baseURL: server.url, apiKey, retry }).entries("pr_1")), entries(0, 1));
  assert.deepEqual(told, ["no API key: the store is away"]);
});

test("white space around a key is dropped; a key that cannot be sent ends a call at once", async (t) => {
  const sent = [];
  const server = await serve(t, (request, response) => {
    sent.push(request.headers["x-api-key"]);
    page(response, entries(0, 1));
  });
  const read = (apiKey) => all(new Client({ baseURL: server.url, apiKey, retry: { onRetry: (error) => assert.fail(error) } }).entries("pr_1"));
  for (const apiKey of [`${key}\n`, () => `${key}\n`]) assert.deepEqual(await read(apiKey), entries(0, 1));
  for (const bad of [undefined, null, 7, `rk_\n${key}`]) {
    await assert.rejects(read(async () => bad), (error) => error instanceof TypeError && !(error instanceof ConnectionError) && !error.message.includes(key));
  }
  assert.deepEqual(sent, [key, key]);
});

test("projects reads all pages", async (t) => {
  const server = await serve(t, (request, response) => {
    const [projectId, next] = { "/me/projects": ["pr_1", { "X-Next-Cursor": "c 2" }], "/me/projects?cursor=c+2": ["pr_2", {}] }[request.url];
    response.writeHead(200, { "Content-Type": "application/json", ...next }).end(`[{"projectId":"${projectId}"}]`);
  });
  assert.deepEqual(await new Client({ baseURL: server.url, apiKey: key }).projects(), [{ projectId: "pr_1" }, { projectId: "pr_2" }]);
});

test("a token is sent in place of a key, and renewed after a 401; never both", async (t) => {
  const sent = [];
  const server = await serve(t, (request, response) => {
    sent.push([request.url, request.headers.authorization, request.headers["x-api-key"]]);
    if (request.headers.authorization === "Bearer old.jwt") refuse(response, 401, "unauthorized", {}, { error: { code: "unauthorized", message: "No old.jwt." } });
    else response.writeHead(200, { "Content-Type": "application/json" }).end('[{"projectId":"pr_1","title":"One","scopes":["entries:read"]}]');
  });
  const tokens = ["old.jwt", "new.jwt\n"];
  const token = async () => (tokens.length > 1 ? tokens.shift() : tokens[0]);
  assert.deepEqual(await new Client({ baseURL: server.url, token }).projects(), [{ projectId: "pr_1", title: "One", scopes: ["entries:read"] }]);
  assert.deepEqual(sent, [["/me/projects", "Bearer old.jwt", undefined], ["/me/projects", "Bearer new.jwt", undefined]]);
  await assert.rejects(new Client({ baseURL: server.url, token: "old.jwt" }).projects(), { status: 401, message: "No [redacted]." });
  assert.throws(() => new Client({ baseURL: server.url, token, apiKey: key }), { name: "TypeError", message: "apiKey and token: want one of them" });
});
