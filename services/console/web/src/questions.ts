// The questions of an embeddable: their titles and their order from its definition, and how their answers are shown. Nothing here
// reads the API or the window.
import type { AnswerKeys, Answers, EntryQuery } from "@lectern/client";
import { areSure, type Proportion } from "./difference.ts";
import { toJSON } from "./numbers.ts";
import { type Counted, isNumber } from "./ranges.ts";

/** Narrowed has the filters that figures take beside an embeddable and a period. */
export type Narrowed = Pick<EntryQuery, "completed" | "version" | "furthest_page" | "answer" | "answer_key">;

/** Of selects the entries of the answers. */
export interface Of extends Narrowed {
  embeddable_id: string;
  created_after: string | undefined;
  created_before: string | undefined;
}

/** Distribution is how often each answer to a question was given. Nothing is counted if nearly all answers are different. */
export type Distribution = Pick<Answers, "entries" | "unreadable" | "none" | "multiple" | "others" | "numbers"> & { values: Counted[] };

/** countedIn returns the values that have a count. */
export const countedIn = (values: Answers["values"]): Counted[] => values.flatMap(({ value, entries }) => (entries === undefined ? [] : [{ value, entries }]));

type Key = AnswerKeys["keys"][number];

/** distributionOf returns the answers to a question from the answer about all questions, or undefined if that has only its key. */
export function distributionOf({ entries, unreadable }: AnswerKeys, { values, others = 0, none = 0, multiple = 0, numbers = null }: Key): Distribution | undefined {
  return values && { entries, unreadable, values: countedIn(values), others, none, multiple, numbers };
}

/** answeredIn returns how many entries have an answer. */
export const answeredIn = ({ entries, none, unreadable }: Distribution): number => entries - none - unreadable;

/** From this number of different answers on, single ones say little. */
const many = 11;

/** Kind is how answers are shown: each with its number, numbers in ranges, or the latest texts. */
export type Kind = "choices" | "numbers" | "texts";

/** personal finds the questions whose answers say who somebody is, in their titles and keys. */
const personal = /^name$|\b(e-?mail|phone|mobile|((first|last|full|given|family|middle|your|contact)[ -]?|sur)names?)\b/i;

/**
 * kindOf chooses how answers are shown. Texts are free texts if most of those listed were given once, or if most answers are not
 * listed at all. So are many different names and numbers of phones, however often each was given. labels are the title and the key of the question.
 */
export function kindOf(of: Distribution, ...labels: string[]): Kind {
  const { values, others, multiple, numbers } = of;
  const different = values.length >= many || (values.length === 0 && others > 0);
  if (different && labels.some((label) => personal.test(label.replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ")))) return "texts";
  if (multiple === 0 && different && (values.length > 0 || numbers?.entries === answeredIn(of)) && values.every(({ value }) => isNumber(value)) && (others === 0 || numbers)) return "numbers";
  const single = values.filter(({ entries }) => entries === 1).length;
  const free = others * 2 > answeredIn(of) || (values.length >= many && single * 2 > values.length);
  return free && values.every(({ value }) => typeof value === "string") ? "texts" : "choices";
}

/** Given has the answers to a question, in a period and in the one before. */
export interface Given {
  now: Distribution;
  before: Distribution | undefined;
}

/** shareOf returns how many of those who answered gave a value, or undefined if nobody answered or the value is not listed. */
export function shareOf(of: Distribution | undefined, value: unknown): Proportion | undefined {
  if (!of) return undefined;
  const all = answeredIn(of);
  const some = of.values.find((one) => toJSON(one.value) === toJSON(value))?.entries ?? (of.others === 0 ? 0 : undefined);
  return all === 0 || some === undefined ? undefined : { some, all };
}

/** Changed is an answer whose share of those who answered is not that of the period before. */
export interface Changed<T> {
  question: T;
  value: unknown;
  now: number;
  old: number;
}

/** changedIn returns the choices whose shares changed by more than chance explains, those that changed most first. */
export function changedIn<T extends { key: string; title: string; given: Given | undefined }>(questions: readonly T[]): Changed<T>[] {
  const compared = questions.flatMap((question) => {
    const { now, before } = question.given ?? {};
    if (!now || !before || kindOf(now, question.title, question.key) !== "choices") return [];
    const values = new Map([...now.values, ...before.values].map(({ value }) => [toJSON(value), value]));
    return [...values.values()].flatMap((value) => {
      const [a, b] = [shareOf(now, value), shareOf(before, value)];
      return a && b ? [{ question, value, a, b }] : [];
    });
  });
  const sure = areSure(compared.map(({ a, b }) => [a, b]));
  const changed = compared.filter((_, i) => sure[i]).map(({ question, value, a, b }) => ({ question, value, now: a.some / a.all, old: b.some / b.all }));
  return changed.sort((a, b) => Math.abs(b.now - b.old) - Math.abs(a.now - a.old));
}

/** Texts are those of the choices of a question, by the values that entries have. */
export type Texts = ReadonlyMap<string, string>;

/** Asked is a question in a definition: its title, "" without one, and its place among the others. */
export interface Asked {
  title: string;
  place: number;
}

// A definition is JSON of any form. These members name a question, and these say its title, as far as forms agree on them.
const namedBy = ["name", "key", "id", "ref", "variable", "field"];
const titledBy = ["label", "question", "title", "headline", "text"];

function titleIn(value: unknown): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "";
  const members = new Map<string, unknown>(Object.entries(value));
  return titledBy.map((name) => members.get(name)).find((title): title is string => typeof title === "string" && title.trim() !== "") ?? "";
}

/** askedIn finds questions in a definition, by the keys of their answers. Parts with a title come before parts that only mention a key. */
export function askedIn(definition: string, keys: Iterable<string>): ReadonlyMap<string, Asked> {
  const wanted = new Set(keys);
  const found = new Map<string, Asked>();
  let place = 0;
  const note = (key: unknown, title: string) => {
    if (typeof key === "string" && wanted.has(key) && (title ? !found.get(key)?.title : !found.has(key))) found.set(key, { title, place: place++ });
  };
  // A stack of its own, because a definition can be of any depth.
  const left = [parsed(definition)];
  while (left.length > 0) {
    const value = left.pop();
    if (value === null || typeof value !== "object") continue;
    const members = Object.entries(value) as [string, unknown][];
    const title = titleIn(value);
    if (!Array.isArray(value)) for (const [name, member] of members) if (namedBy.includes(name)) note(member, title);
    for (const [name, member] of members) if (!Array.isArray(value) && titleIn(member)) note(name, titleIn(member));
    for (const [, member] of members.reverse()) left.push(member);
  }
  return found;
}

/** choicesIn finds the texts of choices in a definition: by the keys of their questions, then by the values that an entry has. */
export function choicesIn(definition: string, keys: Iterable<string>): ReadonlyMap<string, Texts> {
  const wanted = new Set(keys);
  const found = new Map<string, Map<string, string>>();
  // Each part is within the question of, if there is one. A choice is an object in one of its lists.
  const left: { value: unknown; of?: string | undefined; choice?: boolean }[] = [{ value: parsed(definition) }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, of, choice } = next;
    if (value === null || typeof value !== "object") continue;
    const members = new Map<string, unknown>(Object.entries(value));
    const named = Array.isArray(value) ? undefined : namedBy.map((name) => members.get(name)).find((key): key is string => typeof key === "string" && wanted.has(key));
    const title = titleIn(value);
    if (choice && of !== undefined && title) {
      const id = ["value", ...namedBy].map((name) => members.get(name)).find((id) => typeof id === "string" || typeof id === "number");
      if (id !== undefined) found.set(of, (found.get(of) ?? new Map<string, string>()).set(String(id), title));
    }
    for (const member of members.values()) left.push({ value: member, of: named ?? of, choice: Array.isArray(value) && of !== undefined });
  }
  return found;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** inOrder sorts questions as the definition has them. Those that it does not have come last, in the order that they are in. */
export function inOrder<T extends { key: string }>(questions: readonly T[], asked: ReadonlyMap<string, Asked>): T[] {
  const place = ({ key }: T) => asked.get(key)?.place ?? Number.MAX_SAFE_INTEGER;
  return [...questions].sort((a, b) => place(a) - place(b));
}
