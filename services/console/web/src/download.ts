// Makes files of entries. A file is given only after everything was read.
import type { Entry } from "@lectern/client";
import { type Answers, answersOf, Names, text } from "./answers.ts";

/** A file's entries are kept in pieces outside of the script's memory, each of at most so many entries and characters. */
const pieceEntries = 2000;
const pieceLength = 2_000_000;

/** How long work on entries may keep the page from drawing, in milliseconds. */
const slice = 12;

/** Entries are the source of a file. */
export interface Entries {
  /** The entries as NDJSON. */
  pieces: Blob[];
  names: Names;
  count: number;
}

/** read reads entries to the end. progress is called with how many there are so far. */
export async function read(list: AsyncIterable<Entry>, progress: (count: number) => void): Promise<Entries> {
  const names = new Names();
  const pieces: Blob[] = [];
  let lines: string[] = [];
  let length = 0;
  const close = () => {
    pieces.push(new Blob(lines));
    lines = [];
    length = 0;
    progress(names.seen);
  };
  const pause = pauses();
  for await (const entry of list) {
    names.add(entry);
    const line = JSON.stringify(entry) + "\n";
    lines.push(line);
    length += line.length;
    if (lines.length === pieceEntries || length > pieceLength) close();
    await pause();
  }
  if (lines.length > 0) close();
  return { pieces, names, count: names.seen };
}

/** pauses returns a function that lets the page draw and react, if the work since the last time took long enough. */
function pauses(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < slice) return undefined;
    return new Promise((done) =>
      setTimeout(() => {
        since = performance.now();
        done();
      }),
    );
  };
}

/** ndjson makes a file with an entry in each line, as the API gives it. */
export const ndjson = (entries: Entries): Blob => new Blob(entries.pieces, { type: "application/x-ndjson" });

const fields = ["entry_id", "group_id", "project_id", "embeddable_id", "contact_id", "created_at", "updated_at"] as const;

/**
 * csv makes a file of RFC 4180: the fields of the entry, then a column for each answer. A column entry_data comes last if
 * entries have data that columns cannot hold. safe makes it a file for spreadsheets: see safeText.
 */
export async function csv(entries: Entries, options: { safe: boolean; signal: AbortSignal; progress: (count: number) => void }): Promise<Blob> {
  const { names } = entries;
  const most = new Set(names.mostFrequent());
  const known = [...names.counts.keys()].filter((name) => most.has(name));
  const whole = names.without > 0 || names.full;
  const write = (value: string) => quoted(options.safe ? safeText(value) : value);
  const head = [...fields, ...titles(known), ...(whole ? ["entry_data"] : [])];
  // Excel takes a file without this mark for one in the code page of the machine. Programs take the mark for a part of
  // the first column's name.
  const parts: BlobPart[] = [options.safe ? "\ufeff" : "", head.map(write).join(",") + "\r\n"];
  const pause = pauses();
  let done = 0;
  for (const piece of entries.pieces) {
    const rows: string[] = [];
    for (const line of (await piece.text()).split("\n")) {
      if (line === "") continue;
      const entry = JSON.parse(line) as Entry;
      const answers: Answers = answersOf(entry.entry_data) ?? new Map<string, string>();
      const row = fields.map((field) => write(entry[field]));
      for (const name of known) {
        const json = answers.get(name);
        row.push(json === undefined ? "" : write(text(json)));
      }
      if (whole) row.push(answers.size > 0 && [...answers.keys()].every((name) => most.has(name)) ? "" : write(entry.entry_data));
      rows.push(row.join(",") + "\r\n");
      await pause();
    }
    options.signal.throwIfAborted();
    parts.push(new Blob(rows));
    options.progress((done += rows.length));
  }
  return new Blob(parts, { type: "text/csv;charset=utf-8" });
}

/** titles names the columns of answers. A name that a field has, or that another has in other case, gets a prefix. */
function titles(names: readonly string[]): string[] {
  const taken = new Set<string>([...fields, "entry_data"]);
  return names.map((name) => {
    let title = name === "" || taken.has(name.toLowerCase()) ? `data_${name}` : name;
    for (let n = 2; taken.has(title.toLowerCase()); n++) title = `data_${name}_${n}`;
    taken.add(title.toLowerCase());
    return title;
  });
}

/** quoted writes a cell as encoding/csv of Go does, which the command line uses. */
const quoted = (value: string): string => (/^\\\.$|[",\r\n]|^\p{White_Space}/u.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

/** lossy matches digits of which a spreadsheet would drop some: leading zeros, and those after the fifteenth. */
const lossy = /^-?(0[0-9]|([0-9]\.?){16})[0-9.]*$/;

const number = /^-?[0-9.]+([eE][+-]?[0-9]+)?$/;

/**
 * safeText puts an apostrophe before each text that a spreadsheet would take for a formula, as OWASP advises against CSV
 * injection. These begin with =, +, -, @ or their wide forms, also after spaces and quotes. A spreadsheet that separates
 * cells by semicolons or tabs ignores quotes within a cell, so a cell also starts after each of these and after a line break.
 * It leaves numbers unchanged, except those that would lose digits. safeCell of cli/internal/export does the same: the table
 * testdata/safe.json there has cases for both.
 */
export function safeText(value: string): string {
  if (lossy.test(value)) return `'${value}`;
  if (number.test(value)) return value;
  return value.replace(/(?:^|[;\t\r\n])[\s"]*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$&'").replace(/^(?=[\t\r\n])/, "'");
}
