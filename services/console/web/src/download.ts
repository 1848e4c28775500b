// Makes files of entries. A file is given only after everything was read. Loaded when the visitor downloads.
import { APIError, type Client, type Embeddable, type EmbeddableWithDefinition, type Entry } from "@lectern/client";
import { type Answers, answersOf, Names, text, words } from "./answers.ts";
import { nameOf } from "./names.ts";
import { zone } from "./preferences.ts";
import { type Asked, askedIn, choicesIn, inOrder, type Texts } from "./questions.ts";
import { clock, isoDay } from "./time.ts";

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
  /** The ids of their embeddables. */
  embeddables: Set<string>;
  count: number;
}

/** Options are what each table takes. progress is called with how many rows there are so far. */
interface Options {
  signal: AbortSignal;
  progress: (count: number) => void;
}

/** read reads entries to the end. progress is called with how many there are so far. */
export async function read(list: AsyncIterable<Entry>, progress: (count: number) => void): Promise<Entries> {
  const names = new Names();
  const embeddables = new Set<string>();
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
    embeddables.add(entry.embeddable_id);
    const line = JSON.stringify(entry) + "\n";
    lines.push(line);
    length += line.length;
    if (lines.length === pieceEntries || length > pieceLength) close();
    await pause();
  }
  if (lines.length > 0) close();
  return { pieces, names, embeddables, count: names.seen };
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

/** columnsOf returns the answers that have a column, and whether entries have data that these columns cannot hold. */
function columnsOf({ names }: Entries): { known: string[]; whole: boolean } {
  const most = new Set(names.mostFrequent());
  return { known: [...names.counts.keys()].filter((name) => most.has(name)), whole: names.without > 0 || names.full };
}

/** isHeld reports whether columns hold all answers of an entry. */
const isHeld = (answers: Answers, known: ReadonlySet<string>): boolean => answers.size > 0 && [...answers.keys()].every((name) => known.has(name));

/** table makes a file of RFC 4180, with a row of cells for each entry. */
async function table(entries: Entries, head: string[], row: (entry: Entry, answers: Answers) => string[], { mark, separator = ",", signal, progress }: Options & { mark: boolean; separator?: string }): Promise<Blob> {
  const line = (cells: string[]) => cells.map((cell) => quoted(cell, separator)).join(separator) + "\r\n";
  // Excel takes a file without this mark for one in the code page of the machine. Programs take the mark for a part of
  // the first column's name.
  const parts: BlobPart[] = [mark ? "\ufeff" : "", line(head)];
  const pause = pauses();
  let done = 0;
  for (const piece of entries.pieces) {
    const rows: string[] = [];
    for (const json of (await piece.text()).split("\n")) {
      if (json === "") continue;
      const entry = JSON.parse(json) as Entry;
      rows.push(line(row(entry, answersOf(entry.entry_data) ?? new Map<string, string>())));
      await pause();
    }
    signal.throwIfAborted();
    parts.push(new Blob(rows));
    progress((done += rows.length));
  }
  return new Blob(parts, { type: "text/csv;charset=utf-8" });
}

/**
 * csv makes a table with the fields of the entry, then a column for each answer. A column entry_data comes last if
 * entries have data that columns cannot hold. safe makes it a file for spreadsheets: see safeText.
 */
export function csv(entries: Entries, options: Options & { safe: boolean }): Promise<Blob> {
  const { known, whole } = columnsOf(entries);
  const columns = new Set(known);
  const write = (value: string) => (options.safe ? safeText(value) : value);
  const head = [...fields, ...titles(known), ...(whole ? ["entry_data"] : [])];
  return table(entries, head.map(write), (entry, answers) => [
    ...fields.map((field) => write(entry[field])),
    ...known.map((name) => write(text(answers.get(name) ?? "null"))),
    ...(whole ? [isHeld(answers, columns) ? "" : write(entry.entry_data)] : []),
  ], { ...options, mark: options.safe });
}

/** formsOf reads embeddables with their definitions in production. The result lacks those that are not stored, and all if the key may not read them. */
export async function formsOf(client: Client, project: string, ids: ReadonlySet<string>, signal: AbortSignal): Promise<EmbeddableWithDefinition[]> {
  const found: EmbeddableWithDefinition[] = [];
  try {
    for await (const { embeddable_id } of client.embeddables(project, {}, { signal })) {
      if (ids.has(embeddable_id)) found.push(await client.embeddable(project, embeddable_id, { signal }));
    }
  } catch (error) {
    if (!(error instanceof APIError) || error.status !== 403) throw error;
  }
  return found;
}

/** askedOf joins the questions of definitions. A key that has different titles in them has none. */
function askedOf(forms: readonly EmbeddableWithDefinition[], keys: readonly string[]): Map<string, Asked> {
  const all = new Map<string, Asked>();
  for (const [i, { json_string_prod }] of forms.entries()) {
    for (const [key, { title, place }] of askedIn(json_string_prod, keys)) {
      const other = all.get(key);
      if (!other) all.set(key, { title, place: i * 1e6 + place });
      else if (title && other.title && title !== other.title) all.set(key, { ...other, title: "" });
    }
  }
  return all;
}

/**
 * reading makes a table for people: the titles of questions as heads, in their order, and the texts of choices. Its cells are safe.
 * Where the browser's language writes a decimal comma, so do the cells, and semicolons separate them, as Excel reads them.
 */
export function reading(entries: Entries, forms: readonly EmbeddableWithDefinition[], options: Options): Promise<Blob> {
  const { known, whole } = columnsOf(entries);
  const columns = new Set(known);
  const asked = askedOf(forms, known);
  const keys = inOrder(known.map((key) => ({ key })), asked).map(({ key }) => key);
  const head = [`Created (${zone.peek()})`, "Updated", "Embeddable", "Contact", "Entry"];
  const taken = new Set(head);
  for (const key of keys) {
    const title = asked.get(key)?.title.replace(/\s+/g, " ").trim() || key;
    const name = taken.has(title) ? `${title} (${key})` : title;
    taken.add(name);
    head.push(name);
  }
  const names = new Map(forms.map((form: Embeddable) => [form.embeddable_id, nameOf(form)]));
  const choices = new Map(forms.map(({ embeddable_id, json_string_prod }) => [embeddable_id, choicesIn(json_string_prod, keys)]));
  const comma = (1.5).toLocaleString().includes(",");
  const time = (at: string) => `${isoDay(Date.parse(at))} ${clock(Date.parse(at))}`;
  const cell = (json: string, texts: Texts | undefined) => {
    const said = /^\[\s*\]$/.test(json) ? "" : words(json, texts);
    const safe = safeText(said);
    return comma && said === json && number.test(safe) ? safe.replace(".", ",") : safe;
  };
  return table(entries, [...head, ...(whole ? ["Data"] : [])].map(safeText), (entry, answers) => [
    time(entry.created_at), time(entry.updated_at),
    ...[names.get(entry.embeddable_id) ?? entry.embeddable_id, entry.contact_id, entry.entry_id].map(safeText),
    ...keys.map((key) => cell(answers.get(key) ?? "null", choices.get(entry.embeddable_id)?.get(key))),
    ...(whole ? [isHeld(answers, columns) ? "" : safeText(entry.entry_data)] : []),
  ], { ...options, mark: true, separator: comma ? ";" : "," });
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
const quoted = (value: string, separator: string): string => (value.includes(separator) || /^\\\.$|["\r\n]|^\p{White_Space}/u.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

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
