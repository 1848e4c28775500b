// Reads entry_data: JSON of a visitor, within a text. Members keep the wording of the source, so that no
// number loses digits and no depth of nesting matters.
import type { Entry } from "@lectern/client";
import type { Texts } from "./questions.ts";

/** How many answers are columns of a file at most: the most frequent ones. */
const mostColumns = 1000;

/** How long a list of texts is at most, in characters, to be written as such. */
const longestList = 2000;

/** How many answers are counted at most: those that come first. */
const mostNames = 20_000;

/** Answers are the members of an entry_data, each as its JSON. The last one of a name counts. */
export type Answers = ReadonlyMap<string, string>;

/** answersOf returns the members of an entry_data, or null if it is not a JSON object. */
export function answersOf(data: string): Answers | null {
  if (!namesOf(data)) return null;
  const found = new Map<string, string>();
  // The text is valid JSON, so that only strings and the depth need care.
  let depth = 0;
  let start = 0; // of the member's name, then of its value
  let name: string | undefined;
  for (let i = 0; i < data.length; i++) {
    switch (data.charCodeAt(i)) {
      case 0x22: // "
        i = endOfString(data, i) - 1;
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++depth === 1) start = i + 1;
        break;
      case 0x3a: // :
        if (depth === 1 && name === undefined) {
          name = text(data.slice(start, i).trim());
          start = i + 1;
        }
        break;
      case 0x7d: // }
      case 0x5d: // ]
      case 0x2c: // ,
        if (depth === 1 && name !== undefined) {
          found.set(name, data.slice(start, i).trim());
          name = undefined;
          start = i + 1;
        }
        if (data[i] !== ",") depth--;
        else if (depth === 1) start = i + 1;
    }
  }
  return found;
}

/** namesOf returns the names of the members of an entry_data, or null if it is not a JSON object. It is faster than answersOf. */
export function namesOf(data: string): string[] | null {
  try {
    const value: unknown = JSON.parse(data);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : null;
  } catch {
    return null;
  }
}

/** endOfString returns the index after a JSON string that starts at an index. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let escapes = 0;
    while (json[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return json.length;
}

/** isText reports whether a member is a string. */
export const isText = (json: string): boolean => json.startsWith('"');

/** text writes a member for people: strings as they are, null as nothing, all else as its JSON. */
export function text(json: string): string {
  if (isText(json)) return JSON.parse(json) as string;
  return json === "null" ? "" : json;
}

/** textsOf returns the texts of a list of nothing else, or undefined. */
export function textsOf(json: string): string[] | undefined {
  if (!/^\[\s*"/.test(json) || json.length > longestList) return undefined;
  const list = JSON.parse(json) as unknown[];
  return list.every((one): one is string => typeof one === "string") ? list : undefined;
}

/** readable writes a text of a visitor. A text that reads as a number or another value of JSON is in quotes, so that the two differ. */
export const readable = (value: string): string => (value.length < 100 && /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null|[[{"].*)$/s.test(value) ? JSON.stringify(value) : value);

/** words writes a member in one line for people: the texts of choices, if there are some, and a list of texts with commas. */
export const words = (json: string, texts?: Texts): string =>
  texts?.get(text(json)) ?? (json === "true" ? "Yes" : json === "false" ? "No" : textsOf(json)?.map((one) => texts?.get(one) ?? one).join(", ") ?? text(json));

/** How deep lines of nested JSON are indented at most: the text would grow with the square of the depth. */
const deepest = 20;

/** indented writes JSON with a line for each member, in the wording of the source. */
export function indented(json: string): string {
  let depth = 0;
  let isInText = false;
  const newLine = () => "\n" + "  ".repeat(Math.min(depth, deepest));
  // The JSON is valid: outside of texts, only marks and white space change.
  return json.replace(/\\.|"|[[{]\s*[\]}]|[[\]{},:]|\s+/g, (part) => {
    if (part === '"') isInText = !isInText;
    if (isInText || part === '"') return part;
    switch (part.charAt(0)) {
      case "{":
      case "[":
        if (part.length > 1) return part.replace(/\s+/, "");
        depth++;
        return part + newLine();
      case "}":
      case "]":
        depth--;
        return newLine() + part;
      case ",":
        return part + newLine();
      case ":":
        return ": ";
      default:
        return ""; // white space
    }
  });
}

/** How long a title is at most, in characters. */
const longestTitle = 80;

const cut = (title: string): string => (title.length > longestTitle ? `${title.slice(0, longestTitle)}…` : title);

/** textAnswers are the answers of an entry that are texts. */
const textAnswers = (answers: Answers) => [...answers].filter(([, json]) => isText(json) && text(json).trim() !== "").map(([name, json]) => ({ name: name.toLowerCase().replace(/[^a-z]/g, ""), value: text(json) }));

/** nameIn returns the visitor's name or address, if the entry has one. */
export function nameIn({ entry_data }: Pick<Entry, "entry_data">): string {
  const all = textAnswers(answersOf(entry_data) ?? new Map<string, string>());
  const value = (...names: string[]) => all.find(({ name }) => names.includes(name))?.value;
  const name = [value("firstname", "givenname"), value("lastname", "surname", "familyname")].filter(Boolean).join(" ");
  return cut(name || value("name", "fullname", "company") || value("email", "emailaddress", "mail", "phone") || "");
}

/** titleOf returns a title for an entry: the visitor's name or address, or else the first answers. "" without any. */
export function titleOf(entry: Pick<Entry, "entry_data">): string {
  const answers = answersOf(entry.entry_data);
  if (!answers) return entry.entry_data.trim().slice(0, longestTitle);
  const first = textAnswers(answers).slice(0, 2).map((one) => one.value).join(", ");
  return nameIn(entry) || cut(first || [...answers.values()].map(text).find((one) => one.trim()) || "");
}

/** Names counts in how many entries each answer is. */
export class Names {
  /** The answers, in the order in which they were found. */
  readonly counts = new Map<string, number>();
  /** How many entries were looked at. */
  seen = 0;
  /** How many of these are not a JSON object. */
  without = 0;

  add(entry: Entry): void {
    this.seen++;
    const names = namesOf(entry.entry_data);
    if (!names) this.without++;
    else for (const name of names) {
      const before = this.counts.get(name) ?? 0;
      if (before > 0 || this.counts.size < mostNames) this.counts.set(name, before + 1);
    }
  }

  /** mostFrequent returns the answers that can be columns, the most frequent first. */
  mostFrequent(): string[] {
    return [...this.counts].sort((a, b) => b[1] - a[1]).slice(0, mostColumns).map(([name]) => name);
  }

  /** full reports whether there are more answers than columns. */
  get full(): boolean {
    return this.counts.size > mostColumns;
  }
}

/** encodeNames writes a list of names for an address, such as "first_name,email". It keeps names that are no plain words exact. */
export function encodeNames(names: readonly string[]): string {
  return names.length === 0 ? "," : names.map((name) => (/^[\w .-]+$/.test(name) ? name : encodeURIComponent(JSON.stringify(name)))).join(",");
}

/** decodeNames is the inverse of encodeNames. It throws an error for other text. */
export function decodeNames(list: string): string[] {
  const names = list.split(",").filter(Boolean).map((name) => {
    if (!name.startsWith("%22")) return name;
    const value: unknown = JSON.parse(decodeURIComponent(name));
    if (typeof value !== "string") throw new TypeError("a name must be a text");
    return value;
  });
  return [...new Set(names)];
}
