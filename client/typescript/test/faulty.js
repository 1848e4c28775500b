import { once } from "node:events";
import http from "node:http";

/** serve starts a server that answers with handle and closes after the test t. It records the URL of each request. */
export async function serve(t, handle) {
  const requests = [];
  const server = http.createServer((request, response) => {
    requests.push(request.url);
    handle(request, response, requests.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

/** entry returns a record with the fields that the tests compare. */
export const entry = (n, data = "") => ({ entry_id: `en_${n}`, entry_data: data });

/** entries returns the entries with the numbers from first to end - 1. */
export const entries = (first, end) => Array.from({ length: end - first }, (_, i) => entry(first + i));

/** text returns a page as the server sends it. */
export const text = (records) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

/** page answers with a complete page of records. */
export function page(response, records, headers = {}) {
  response.writeHead(200, { "Content-Type": "application/x-ndjson", ...headers });
  response.end(text(records));
}

/** cut sends the bytes and then breaks the connection. */
export function cut(response, bytes, headers = {}) {
  response.writeHead(200, { "Content-Type": "application/x-ndjson", ...headers });
  response.write(bytes, () => setTimeout(() => response.destroy(), 20));
}

/** refuse answers with an error in the format of the API. */
export function refuse(response, status, code, headers = {}, context = {}) {
  response.writeHead(status, { "Content-Type": "application/json", "X-Request-Id": "req_1", ...headers });
  response.end(JSON.stringify({ error: { code, message: `It is ${code}.` }, ...context }));
}

/** all reads a list to its end. */
export async function all(list) {
  const records = [];
  for await (const record of list) records.push(record);
  return records;
}
