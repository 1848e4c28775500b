// Calls a target through the credential proxy with the client libraries of vendors, as docs/how-to/proxy.md shows. The
// target stands for all vendors. No request of any library goes to another host than the proxy.
import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, InvokeModelCommand } from "@aws-sdk/client-bedrock-runtime";
import OpenAI, { toFile } from "openai";
import { GoogleGenAI } from "@google/genai";
import { auth, drive } from "@googleapis/drive";
import hubspot from "@hubspot/api-client";
import { WebClient } from "@slack/web-api";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { createClient } from "@supabase/supabase-js";
import { Octokit } from "octokit";
import openapi from "openapi-fetch";
import Stripe from "stripe";
import twilio from "twilio";

const { PROXY, TARGET, ORIGIN } = process.env;
const proxy = `${PROXY}/proxy/for/pr_demo/prod/to/`;
const headers = { Origin: ORIGIN }; // browsers send it
// The hosts of vendors are paths of the target.
const paths = { github: "/github", googleapis: "/google", stripe: "", twilio: "" };
const vendors = /(?:api|codeload|files|uploads|www)\.(github|googleapis|stripe|twilio)\.com/;
const local = (url) => String(url).replace(vendors, (_, vendor) => TARGET + paths[vendor]);
const through = (url) => proxy + local(url).replace("://", "/");
const key = "rk_not_for_others";
const keyed = { ...headers, "X-Proxy-Api-Key": key };
const throughProxy = (url, init = {}) => { // as on the page
  const all = new Headers(init.headers);
  all.set("X-Proxy-Api-Key", key);
  all.set("Origin", ORIGIN);
  const target = local(url);
  return fetch(target.startsWith(proxy) ? target : through(target), { ...init, headers: all });
};
const byBrowser = (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } });
const hosts = new Set();
subscribe("undici:request:create", ({ request }) => hosts.add(request.origin));
subscribe("http.client.request.start", ({ request }) => hosts.add(`${request.protocol}//${request.getHeader("host")}`));
const upload = Buffer.alloc(3 << 20, "{{ cred_main }} is no placeholder in here. ");
const slow = { timeout: 500, maxRetries: 0 };

async function testOpenAI() {
  const openai = new OpenAI({ baseURL: `${proxy}https/${TARGET}/openai/v1`, apiKey: "{{ cred_main }}", defaultHeaders: headers });
  const messages = [{ role: "user", content: "{{ cred_main }}" }];
  const answer = await openai.chat.completions.create({ model: "m", messages });
  assert.equal(answer.choices[0].message.content, "{{ cred_main }}");
  const words = [];
  for await (const chunk of await openai.chat.completions.create({ model: "m", messages, stream: true })) {
    words.push(chunk.choices[0].delta.content);
    if (words.length === 1) await openai.models.retrieve("continue");
  }
  assert.deepEqual(words, ["one", "two"]);
  const file = await openai.files.create({ file: await toFile(upload, "a.jsonl"), purpose: "batch" });
  assert.equal(file.bytes, upload.length);
  assert.equal((await openai.models.retrieve("again/a b")).id, "again/a b");
  await assert.rejects(openai.models.retrieve("slow", slow), OpenAI.APIConnectionTimeoutError);
  await assert.rejects(openai.models.retrieve("none"), OpenAI.NotFoundError);
  const server = new OpenAI({ baseURL: `https://${TARGET}/openai/v1`, apiKey: "{{ cred_main }}", fetch: throughProxy });
  assert.equal((await server.models.retrieve("again/a b")).id, "again/a b");
}

async function testAnthropic() {
  const anthropic = new Anthropic({ baseURL: `${proxy}https/${TARGET}/anthropic`, apiKey: "{{ cred_main }}", defaultHeaders: headers });
  const request = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hello" }] };
  assert.equal((await anthropic.messages.create(request)).content[0].text, "hello");
  const words = [];
  for await (const event of await anthropic.messages.create({ ...request, stream: true })) {
    words.push(event.delta.text);
    if (words.length === 1) await anthropic.models.retrieve("continue");
  }
  assert.deepEqual(words, ["one", "two"]);
  const file = await anthropic.beta.files.upload({ file: await Anthropic.toFile(upload, "a.bin", { type: "application/octet-stream" }) });
  assert.equal(file.bytes, upload.length);
  assert.equal((await anthropic.models.retrieve("again")).id, "again");
  await assert.rejects(anthropic.models.retrieve("slow", {}, slow), Anthropic.APIConnectionTimeoutError);
  await assert.rejects(anthropic.models.retrieve("none"), Anthropic.NotFoundError);
  const server = new Anthropic({ baseURL: `https://${TARGET}/anthropic`, apiKey: "{{ cred_main }}", fetch: throughProxy });
  assert.equal((await server.models.retrieve("again")).id, "again");
}

async function testStripe() {
  const stripe = new Stripe("{{ cred_main }}", {
    httpClient: Stripe.createFetchHttpClient((url, init) => fetch(through(url), { ...init, headers: [...init.headers, ["Origin", ORIGIN]] })),
  });
  assert.equal((await stripe.customers.create({ name: "a&b" })).name, "a&b");
  const file = await stripe.files.create({ purpose: "dispute_evidence", file: { data: upload, name: "a.bin", type: "application/octet-stream" } });
  assert.equal(file.bytes, upload.length);
  const pdf = [];
  for await (const chunk of await stripe.quotes.pdf("qt_1")) pdf.push(chunk);
  assert.equal(Buffer.concat(pdf).toString(), "%PDF");
  assert.equal((await stripe.customers.retrieve("again")).id, "again");
  await assert.rejects(stripe.customers.retrieve("slow", {}, { timeout: 500, maxNetworkRetries: 0 }), Stripe.errors.StripeConnectionError);
  await assert.rejects(stripe.customers.retrieve("none"), Stripe.errors.StripeInvalidRequestError);
  const server = new Stripe("{{ cred_main }}", { httpClient: Stripe.createFetchHttpClient(throughProxy) });
  assert.equal((await server.customers.create({ name: "a&b" })).name, "a&b");
}

async function testTwilio() {
  class Client extends twilio.RequestClient {
    request = (options) => super.request({ ...options, uri: through(options.uri), headers: { ...options.headers, ...headers } });
  }
  const sid = "AC" + "0".repeat(32);
  const client = (options) => twilio(sid, "{{ cred_main }}", { httpClient: new Client(options) });
  const message = await client({}).messages.create({ to: "+1", from: "+2", body: "a&b" });
  assert.equal(message.body, "a&b");
  const listed = await client({}).messages.list({ pageSize: 1, limit: 2 });
  assert.deepEqual(listed.map((m) => m.body), ["one", "two"]);
  assert.equal((await client({ autoRetry: true }).messages("again").fetch()).body, "again");
  await assert.rejects(client({ timeout: 500 }).messages("slow").fetch(), /timeout/);
  await assert.rejects(client({}).messages("none").fetch(), { status: 404 });
}

async function testOctokit() {
  const browser = new Octokit({ baseUrl: `${proxy}https/${TARGET}/github`, auth: "{{ cred_main }}", request: { fetch: byBrowser } });
  const octokit = new Octokit({ auth: "{{ cred_main }}", request: { fetch: throughProxy } });
  for (const client of [browser, octokit]) {
    const issues = await client.paginate(client.rest.issues.listForRepo, { owner: "o", repo: "r" });
    assert.deepEqual(issues.map((i) => i.id), [1, 2, 3]);
  }
  const asset = await octokit.rest.repos.uploadReleaseAsset({ owner: "o", repo: "r", release_id: 1, name: "a.bin", data: upload });
  assert.equal(asset.data.id, 4);
  const archive = await octokit.rest.repos.downloadZipballArchive({ owner: "o", repo: "r", ref: "main" });
  assert.equal(archive.status, 302);
  const zip = await throughProxy(archive.headers["x-proxy-location"]);
  assert.equal(await zip.text(), "[]");
}

async function testSlack() {
  const slack = new WebClient("{{ cred_main }}", { slackApiUrl: `https://${TARGET}/slack/api/`, fetch: throughProxy });
  assert.equal((await slack.chat.postMessage({ channel: "c", text: "a&b" })).message.text, "a&b");
  assert.equal((await slack.filesUploadV2({ channel_id: "c", file: upload, filename: "a.bin" })).ok, true);
}

async function testGemini() {
  const gemini = new GoogleGenAI({ apiKey: "{{ cred_main }}", httpOptions: {
    baseUrl: `https://${TARGET}/gemini`, fetch: throughProxy,
  } });
  const request = { model: "m", contents: "hello" };
  assert.equal((await gemini.models.generateContent(request)).text, "hello");
  const words = [];
  for await (const chunk of await gemini.models.generateContentStream(request)) {
    words.push(chunk.text);
    if (words.length === 1) await gemini.files.get({ name: "files/continue" });
  }
  assert.deepEqual(words, ["one", "two"]);
  const file = await gemini.files.upload({ file: new Blob([upload]), config: { mimeType: "application/octet-stream" } });
  assert.equal(file.name, "files/1");
}

async function testSupabase() {
  const realtime = { transport: class {} };
  for (const supabase of [
    createClient(`${proxy}https/${TARGET}/supabase`, "{{ cred_main }}", { global: { headers }, realtime }),
    createClient(`https://${TARGET}/supabase`, "{{ cred_main }}", { global: { fetch: throughProxy }, realtime }),
  ]) {
    const { data, error } = await supabase.from("items").select("*").eq("name", "a&b");
    assert.equal(error, null);
    assert.deepEqual(data, [{ id: 1, query: "select=*&name=eq.a%26b" }]);
    assert.deepEqual((await supabase.from("items").insert({ name: "x" }).select()).data, [{ name: "x" }]);
    assert.equal((await supabase.storage.from("files").upload("a.bin", upload)).data.path, "a.bin");
  }
}

async function testOthers() {
  const api = openapi({ baseUrl: `${proxy}https/${TARGET}/open`, headers: { ...keyed, "X-Api-Key": "{{ cred_main }}" } });
  assert.equal((await api.GET("/items/{id}", { params: { path: { id: "1" } } })).data.path, "/open/items/1");

  const client = new auth.OAuth2();
  client.setCredentials({ access_token: "{{ cred_main }}" });
  const files = drive({ version: "v3", auth: client, fetchImplementation: throughProxy });
  assert.equal((await files.files.get({ fileId: "1" })).data.path, "/google/drive/v3/files/1");

  const hub = new hubspot.Client({ accessToken: "{{ cred_main }}", basePath: `${proxy}https/${TARGET}/open` });
  assert.equal((await (await hub.apiRequest({ path: "/crm/v3/owners", headers: keyed })).json()).path, "/open/crm/v3/owners");

  const bedrock = new BedrockRuntimeClient({
    region: "us-east-1", endpoint: `${proxy}https/${TARGET}/open`, requestHandler: new NodeHttpHandler(),
    token: { token: "{{ cred_main }}" }, authSchemePreference: ["httpBearerAuth"],
  });
  bedrock.middlewareStack.add((next) => (args) => {
    Object.assign(args.request.headers, keyed);
    return next(args);
  }, { step: "build" });
  const invoked = await bedrock.send(new InvokeModelCommand({ modelId: "m:0", body: "{}" }));
  assert.equal(JSON.parse(new TextDecoder().decode(invoked.body)).path, "/open/model/m%3A0/invoke");
}

const tests = [testOpenAI, testAnthropic, testStripe, testTwilio, testOctokit, testSlack, testGemini, testSupabase, testOthers];
for (const test of tests.filter((t) => !process.argv[2] || process.argv[2] === t.name)) {
  await test();
  console.log(test.name);
}
assert.deepEqual([...hosts], [PROXY]);
