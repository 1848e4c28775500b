// Reads a local run of Lectern: LECTERN names the program, which `make up` builds.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import ts from "typescript";

import { Client } from "../dist/index.js";
import { all } from "./faulty.js";

const run = promisify(execFile);
const here = new URL("..", import.meta.url).pathname;
const project = "pr_demo";
const program = process.env.LECTERN ?? join(here, "../../bin/lectern");

describe("a local run", { timeout: 600_000 }, () => {
  let folder, lectern, url, key, client;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "lectern-typescript-"));
    await chmod(folder, 0o755); // Postgres runs as another user.
    const variables = await up("127.0.0.1:0");
    [, url] = variables.match(/LECTERN_URL=["']?([^\s"']+)/);
    [, key] = variables.match(/LECTERN_API_KEY=["']?([^\s"']+)/);
    client = new Client({ baseURL: url, apiKey: key });
  });
  after(async () => {
    await down();
    await rm(folder, { recursive: true, force: true });
  });

  /** up starts a local run at an address, and returns its demo.env. */
  async function up(address) {
    const arguments_ = ["up", "--quiet", "--listen", address, "--listen-internal", "127.0.0.1:0", "--folder", join(folder, "run")];
    lectern = spawn(program, arguments_, { stdio: ["ignore", "ignore", "inherit"] });
    const environment = join(folder, "run/demo.env");
    while (!existsSync(environment)) {
      assert.equal(lectern.exitCode, null, "lectern up ended");
      await sleep(100);
    }
    return readFile(environment, "utf8");
  }

  /** down stops the local run. */
  async function down() {
    if (lectern && lectern.exitCode === null) {
      lectern.kill("SIGTERM");
      await once(lectern, "exit");
    }
  }

  /** curl returns the records of a URL, read by another program. */
  async function curl(address) {
    const { stdout } = await run("curl", ["-sf", "-H", `X-Api-Key: ${key}`, "-H", "Accept: application/x-ndjson", url + address], { maxBuffer: 1 << 30 });
    return stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  }

  test("lists and the feed equal what curl reads", async () => {
    const entries = await curl(`/projects/${project}/entries?limit=1000000`);
    assert.equal(entries.length, 10_000);
    assert.deepEqual(await all(client.entries(project)), entries);
    assert.deepEqual(await all(client.entries(project, { pageSize: 777, direction: "ASC", sort: "created_at" })),
      await curl(`/projects/${project}/entries?limit=1000000&direction=ASC&sort=created_at`));
    assert.deepEqual(await all(client.pageViews(project, { include_urls: true, limit: 1500 })),
      await curl(`/projects/${project}/entries-page-views?include_urls=true&limit=1500`));
    const pages = await all(client.changes(project, { limit: 20_000 }));
    assert.deepEqual(pages.flatMap((page) => page.changes), await curl(`/projects/${project}/entries-changes?limit=1000000`));
    assert.equal(pages.at(-1).current, true);
    assert.equal(pages.at(-1).changes.at(-1).seq, pages.at(-1).lastSeq);
    const rest = await all(client.changes(project, { after: pages[0].changes.at(-1).seq, limit: 20_000 }));
    assert.deepEqual(rest, pages.slice(1));
    assert.equal(await client.changesCursor(project), pages.at(-1).nextCursor);
  });

  test("every other method gives what curl reads", async () => {
    const base = `/projects/${project}`;
    const [entry] = await all(client.entries(project, { limit: 1 }));
    const [embeddable] = await all(client.embeddables(project, { limit: 1 }));
    const [version] = await all(client.versions(project, embeddable.embeddable_id, { limit: 1 }));
    const [experiment] = await all(client.experiments(project, { status: "running" }));
    assert.equal(experiment.status, "running");
    const ofEntry = `${base}/entries/${entry.entry_id}`;
    const ofEmbeddable = `${base}/embeddables/${embeddable.embeddable_id}`;
    assert.deepEqual(await all(client.events(project, entry.entry_id, { pageSize: 2 })), await curl(`${ofEntry}/events?limit=1000`));
    assert.deepEqual(await all(client.embeddables(project, { pageSize: 1 })), await curl(`${base}/embeddables`));
    assert.deepEqual(await all(client.versions(project, embeddable.embeddable_id, { direction: "ASC" })),
      await curl(`${ofEmbeddable}/versions?limit=1000&direction=ASC`));
    assert.deepEqual(await all(client.experiments(project)), await curl(`${base}/experiments`));
    for (const [address, record] of [
      [ofEntry, await client.entry(project, entry.entry_id)],
      [ofEmbeddable, await client.embeddable(project, embeddable.embeddable_id)],
      [`${ofEmbeddable}/versions/${version.version_number}`, await client.version(project, embeddable.embeddable_id, version.version_number)],
      [`${base}/experiments/${experiment.id}`, await client.experiment(project, experiment.id)],
      [base, await client.project(project)],
    ]) {
      assert.deepEqual([record], await curl(address), address);
    }
    const history = await client.experimentHistory(project, experiment.id);
    assert.ok(history.length > 0);
    assert.deepEqual(history, await curl(`${base}/experiments/${experiment.id}/history`));
    await assert.rejects(client.entry(project, "en_nope"), { status: 404, code: "entry_not_found", context: { entryId: "en_nope" } });
    await assert.rejects(all(new Client({ baseURL: url }).entries(project)), { status: 401, code: "unauthorized" });
  });

  test("a page and a worker in a browser read the same, and meet faults alike", async (t) => {
    const browser = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`).find(existsSync);
    if (!browser && process.env.CI !== "true") return t.skip("needs Chromium");
    let breaks = 2;
    let redirected = 0;
    const other = http.createServer((request, response) => {
      redirected++;
      response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("[]");
    });
    const front = http.createServer();
    const result = new Promise((resolve) => {
      front.on("request", async (request, response) => {
        if (request.url === "/") {
          response.writeHead(200, { "Content-Type": "text/html" }).end('<!doctype html><script type="module" src="/browser.js"></script>');
        } else if (/^\/(browser|worker|dist\/\w+)\.js$/.test(request.url)) {
          const file = request.url.startsWith("/dist/") ? request.url : `test${request.url}`;
          response.writeHead(200, { "Content-Type": "text/javascript" }).end(await readFile(join(here, file)));
        } else if (request.url === "/result") {
          let body = "";
          for await (const chunk of request) body += chunk;
          response.end();
          resolve(JSON.parse(body));
        } else if (request.url.startsWith("/projects/redirect")) {
          response.writeHead(302, { Location: `http://127.0.0.1:${other.address().port}/` }).end();
        } else if (request.url.startsWith("/projects/")) {
          const forward = http.request(url + request.url, { headers: { ...request.headers, host: new URL(url).host } }, (answer) => {
            response.writeHead(answer.statusCode, answer.headers);
            const cut = request.url.includes("cursor=") && breaks-- > 0;
            if (cut) answer.once("data", (chunk) => response.write(chunk.subarray(0, chunk.length / 2), () => response.destroy()));
            else answer.pipe(response);
          });
          forward.end();
        } else {
          response.writeHead(404).end();
        }
      });
    });
    for (const server of [front, other]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    const address = `http://127.0.0.1:${front.address().port}/`;
    const profile = join(folder, "chromium");
    const chromium = spawn(browser, [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", `--user-data-dir=${profile}`, `${address}#${key}`,
    ], { stdio: "ignore", detached: true });
    try {
      const late = sleep(60_000, undefined, { ref: false }).then(() => assert.fail("the page gave no result"));
      const { entries, inWorker, lastSeq, errors, retries } = await Promise.race([result, late]);
      const want = await curl(`/projects/${project}/entries?limit=3000`);
      assert.deepEqual(entries, want);
      assert.deepEqual(retries, ["IncompleteError", "IncompleteError"]);
      assert.equal(inWorker, 900);
      assert.ok(lastSeq > 0);
      assert.deepEqual(errors, [["APIError", 404, "entry_not_found"], ["APIError", 0, ""], ["Error", null, null]]);
      assert.equal(redirected, 0);
    } finally {
      process.kill(-chromium.pid, "SIGKILL");
      for (const server of [front, other]) {
        server.closeAllConnections();
        server.close();
      }
    }
  });

  test("the package installs into a fresh project, type-checks there and runs", async () => {
    const fresh = join(folder, "fresh");
    await cp(new URL("fresh", import.meta.url), fresh, { recursive: true });
    const npm = (folder, ...of) => run("npm", of, { cwd: folder });
    await npm(here, "pack", "--ignore-scripts", "--pack-destination", folder); // scripts/test-typescript has built the package
    const { version } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
    const packed = join(folder, `lectern-client-${version}.tgz`);
    const { stdout: listing } = await run("tar", ["tzf", packed]);
    for (const name of ["package.json", "README.md", "LICENSE", "dist/index.js", "dist/index.d.ts", "dist/cjs/index.js", "dist/cjs/index.d.ts"]) assert.match(listing, new RegExp(`^package/${name}$`, "m"));
    assert.doesNotMatch(listing, /test|node_modules|src/);
    await npm(fresh, "install", "--offline", "--no-audit", "--no-fund", packed);
    await run(join(here, "node_modules/.bin/tsc"), ["--project", fresh]).catch(({ stdout }) => assert.fail(stdout));
    const { stdout } = await run("node", [join(fresh, "read.js")], { env: { ...process.env, LECTERN_URL: url, LECTERN_API_KEY: key } });
    assert.equal(stdout, "10000 entries, entry_not_found\n");
    const { stdout: required } = await run("node", [join(fresh, "required.cjs")]);
    assert.equal(required, "CommonJS: connection error\n");
  });

  test("the nightly export of the documentation runs through a rotation of its key and a restart of the service", async (t) => {
    const page = await readFile(join(here, "../../docs/how-to/typescript.md"), "utf8");
    const [, source] = page.match(/```ts\n(import \{ open[^]*?)```/);
    const { outputText } = ts.transpileModule(source, { compilerOptions: { module: "esnext", target: "es2022" } });
    const work = join(folder, "export");
    await mkdir(work);
    await writeFile(join(work, "export.mjs"), outputText.replace("@lectern/client", join(here, "dist/index.js")));
    const keyFile = join(work, "api-key");
    await writeFile(keyFile, key);
    const want = await curl(`/projects/${project}/entries?limit=1000000&direction=ASC`);

    // Before the fourth page, the key is replaced and the old one revoked; before the seventh, Lectern starts again.
    const keys = (...of) => run(program, ["keys", ...of, "--env-file", join(folder, "run/demo.env")]);
    // Without a file, it fails at once.
    const environment = { ...process.env, LECTERN_URL: url, LECTERN_PROJECT_ID: project };
    await assert.rejects(run("node", ["export.mjs"], { cwd: work, env: { ...environment, LECTERN_API_KEY_FILE: "" } }), ({ stderr }) => /ENOENT/.test(stderr));

    let requests = 0;
    let restarted;
    const front = http.createServer(async (request, response) => {
      requests++;
      if (requests === 4) {
        const { stdout: list } = await keys("list", "-o", "ndjson");
        const old = list.trim().split("\n").map((line) => JSON.parse(line)).flat().filter((k) => k.state === "active");
        const { stdout: minted } = await keys("mint", "--name", "nightly");
        await writeFile(keyFile, minted.trim());
        for (const { id } of old) await keys("revoke", id);
        while ((await fetch(url + request.url, { headers: { "X-Api-Key": key } })).status !== 401) await sleep(100);
      } else if (requests === 7) {
        await down();
        response.destroy();
        restarted = up(new URL(url).host);
        return;
      }
      const forward = http.request(url + request.url, { headers: { ...request.headers, host: new URL(url).host } }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      forward.on("error", () => response.destroy());
      forward.end();
    });
    front.listen(0, "127.0.0.1");
    await once(front, "listening");
    t.after(() => front.close());
    await run("node", ["export.mjs"], {
      cwd: work,
      env: { ...environment, LECTERN_URL: `http://127.0.0.1:${front.address().port}`, LECTERN_API_KEY_FILE: keyFile },
    });
    const got = (await readFile(join(work, "entries.ndjson"), "utf8")).trimEnd().split("\n").map((line) => JSON.parse(line));
    await restarted;
    assert.deepEqual(got, want);
    assert.ok(requests >= 12, `${requests} requests: want ten pages, one again after a 401, and one after a broken connection`);
  });
});
