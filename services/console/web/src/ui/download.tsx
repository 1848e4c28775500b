// The download of the entries that match the filters.
import type { EntryQuery } from "@lectern/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { connect, type Waiting } from "../api.ts";
import { errorOf } from "../errors.ts";
import { zone } from "../preferences.ts";
import { count, counted, isoDay } from "../time.ts";
import { Dialog } from "./dialogs.tsx";
import { Patience, Problem } from "./state.tsx";

type State =
  | { at: "choosing" }
  | { at: "reading" | "writing"; count: number; waiting?: Waiting }
  | { at: "done"; count: number; bytes: number; url: string; name: string }
  | { at: "failed"; error: Error };

const megabytes = (bytes: number): string => (bytes < 100_000 ? `${count(Math.ceil(bytes / 1000))} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`);

/** DownloadDialog reads all entries again, and gives the file when it is complete. Closing the dialog cancels the download. */
export function DownloadDialog({ project, query, close }: { project: string; query: EntryQuery; close: () => void }) {
  const [kind, setKind] = useState<"csv" | "reading" | "ndjson">("csv");
  const [safe, setSafe] = useState(true);
  const [state, setState] = useState<State>({ at: "choosing" });
  const running = useRef<AbortController | null>(null);
  const url = useRef("");
  const link = useRef<HTMLAnchorElement>(null);
  const body = useRef<HTMLDivElement>(null);

  const stop = () => {
    running.current?.abort();
    running.current = null;
    if (url.current) URL.revokeObjectURL(url.current);
    url.current = "";
  };
  useEffect(() => stop, []);
  useEffect(() => {
    if (state.at === "done") link.current?.click();
    // The button that had the focus is gone.
    if (state.at !== "choosing") body.current?.querySelector("button")?.focus();
  }, [state.at]);

  const start = async () => {
    stop();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const update = (next: State) => {
      if (!signal.aborted) setState(next);
    };
    let soFar = 0;
    update({ at: "reading", count: 0 });
    try {
      const { csv, formsOf, ndjson, read, reading } = await import("../download.ts");
      const client = connect({ onRetry: (waiting) => update({ at: "reading", count: soFar, waiting }) });
      const entries = await read(client.entries(project, { ...query, pageSize: 10_000 }, { signal }), (n) => update({ at: "reading", count: (soFar = n) }));
      const options = { signal, progress: (n: number) => update({ at: "writing", count: n }) };
      const file = kind === "ndjson" ? ndjson(entries) : kind === "csv" ? await csv(entries, { ...options, safe }) : await reading(entries, await formsOf(client, project, entries.embeddables, signal), options);
      if (signal.aborted) return;
      url.current = URL.createObjectURL(file);
      update({ at: "done", count: entries.count, bytes: file.size, url: url.current, name: `${project.replace(/[^\w-]/g, "_")}-entries-${isoDay(Date.now())}.${kind === "ndjson" ? kind : "csv"}` });
    } catch (error) {
      update({ at: "failed", error: errorOf(error) });
    }
  };
  const cancel = () => {
    stop();
    setState({ at: "choosing" });
  };

  return (
    <Dialog label="Download" close={close}>
      <h2>Download</h2>
      {state.at === "choosing" && (
        <form class="download" onSubmit={(e) => (e.preventDefault(), void start())}>
          <p class="muted small">The file has all entries that match the filters, also those on other pages.</p>
          <fieldset>
            <legend>File</legend>
            <label>
              <input type="radio" name="kind" autofocus checked={kind === "csv"} onChange={() => setKind("csv")} />
              <span>CSV <span class="muted small">A row for each entry, a column for each answer.</span></span>
            </label>
            <label>
              <input type="radio" name="kind" checked={kind === "reading"} onChange={() => setKind("reading")} />
              <span>CSV to read <span class="muted small">For Excel: titles of questions, texts of choices, times of {zone.value}. Safe for spreadsheets.</span></span>
            </label>
            <label>
              <input type="radio" name="kind" checked={kind === "ndjson"} onChange={() => setKind("ndjson")} />
              <span>NDJSON <span class="muted small">The records as the API gives them, one a line.</span></span>
            </label>
          </fieldset>
          {kind === "csv" && (
            <label class="safe">
              <input type="checkbox" checked={safe} onChange={(e) => setSafe(e.currentTarget.checked)} />
              <span>
                Safe for spreadsheets{" "}
                <span class="muted small">
                  Puts an apostrophe before texts that Excel and others would run as a formula, such as =1+1, and before digits that they would drop, such as 007. Marks the file as UTF-8. Excel cuts cells of more than 32,767 characters. Turn it off for programs that need the exact texts.
                </span>
              </span>
            </label>
          )}
          <p class="actions">
            <button type="submit">Download</button>
            <button type="button" class="quiet" onClick={close}>Close</button>
          </p>
        </form>
      )}
      <div ref={body} class="download">
        {(state.at === "reading" || state.at === "writing") && (
          <>
            {state.waiting && <Patience waiting={state.waiting} />}
            <p role="status" data-state={state.at} aria-live="off">
              <span class="spinner" aria-hidden="true" /> {state.at === "reading" ? `${count(state.count)} entries read…` : `${count(state.count)} rows written…`}
            </p>
            <p class="actions">
              <button type="button" class="quiet" onClick={cancel}>Cancel</button>
            </p>
          </>
        )}
        {state.at === "done" && (
          <>
            <p role="status" data-state="done">
              The file is ready: {counted(state.count, "entry", "entries")}, {megabytes(state.bytes)}.
            </p>
            <p class="actions">
              <button type="button" onClick={close}>Done</button>
              <a ref={link} href={state.url} download={state.name}>Save it again</a>
            </p>
          </>
        )}
        {state.at === "failed" && (
          <>
            <p>No file was made.</p>
            <Problem error={state.error} retry={() => void start()} />
            <p class="actions">
              <button type="button" class="quiet" onClick={close}>Close</button>
            </p>
          </>
        )}
      </div>
    </Dialog>
  );
}
