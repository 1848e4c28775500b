// The filters of the entries page, as its address has them.
import type { EntryQuery } from "@lectern/client";
import { decodeNames } from "./answers.ts";
import { versionIn } from "./numbers.ts";
import { type Period, periodIn } from "./period.ts";
import type { Narrowed } from "./questions.ts";
import { isSearch, longest, shortest } from "./search.ts";

/** The last page of the table that an address can have. Further pages are reached from it. */
export const lastPage = 200;

/** The orders of the table. */
export const orders = [
  { id: "", name: "Newest first", sort: "created_at", direction: "DESC" },
  { id: "oldest", name: "Oldest first", sort: "created_at", direction: "ASC" },
  { id: "updated", name: "Last updated first", sort: "updated_at", direction: "DESC" },
] as const;

/** The filters that mean something for one embeddable alone. */
export const ofEmbeddable = { columns: "", version: "", furthest_page: "", answer: "", answer_key: "" };

/** The names of the filters in an address, beside the period. */
export const filters = ["embeddable", "contact", "group", "completed", "version", "furthest_page", "answer", "search"];

export interface Chosen {
  query: EntryQuery;
  faults: string[];
  order: (typeof orders)[number];
  columns: string[] | undefined;
  page: number;
}

/** chosenIn reads the filters of an address, beside the named periods. */
export function chosenIn(query: URLSearchParams, { from, to, reversed }: Period): Chosen {
  const faults: string[] = [];
  const get = (name: string) => query.get(name) ?? "";
  const want = (name: string, valid: boolean, form: string) => void (get(name) && !valid && faults.push(`${name} is “${get(name)}”. ${form}`));
  const id = (name: string) => {
    if (get(name).length > 256) faults.push(`${name} is longer than the 256 characters of an id.`);
    return get(name) || undefined;
  };
  const number = (name: string) => {
    const n = versionIn(get(name));
    want(name, n !== undefined, "It must be a whole number.");
    return n;
  };
  for (const [name, read] of [["from", from], ["to", to]] as const) want(name, get(name) === read, "It must be a date such as 2026-09-30.");
  if (reversed) faults.push(`The first day, ${from}, is after the last day, ${to}.`);
  const order = orders.find((one) => one.id === get("sort"));
  want("sort", order !== undefined, "It can be oldest or updated.");
  const page = Number(get("page") || 1);
  want("page", Number.isInteger(page) && page >= 1 && page <= lastPage, `It must be from 1 to ${lastPage}.`);
  want("completed", ["true", "false"].includes(get("completed")), "It can be true or false.");
  const completed = get("completed") ? get("completed") === "true" : undefined;
  if (get("furthest_page") && !get("embeddable")) faults.push("furthest_page is of one embeddable. Choose the embeddable, too.");
  want("answer", isJSON(get("answer")), "It must be JSON, such as \"Yes\" or 100.");
  if (get("answer_key") && !get("answer")) faults.push("answer_key needs an answer.");
  want("search", isSearch(get("search")), `It must have from ${shortest} to ${longest} characters.`);
  let columns: string[] | undefined;
  try {
    columns = get("columns") ? decodeNames(get("columns")) : undefined;
  } catch {
    faults.push("columns is not a list of answers. Choose the columns again.");
  }
  const { sort, direction } = order ?? orders[0];
  return {
    faults,
    order: order ?? orders[0],
    columns,
    page,
    query: {
      embeddable_id: id("embeddable"), contact_id: id("contact"), group_id: id("group"), completed, version: number("version"), furthest_page: number("furthest_page"),
      answer: get("answer") || undefined, answer_key: id("answer_key"), search: get("search") || undefined, sort, direction,
    },
  };
}

/** narrowedIn reads the filters of figures from an address. */
export function narrowedIn(query: URLSearchParams): Narrowed {
  const { completed, version, furthest_page, answer, answer_key } = chosenIn(query, periodIn(query)).query;
  return { completed, version, furthest_page, answer, answer_key };
}

/** listed returns these filters for the address of the list of entries that a figure counts. */
export function listed({ completed, version, furthest_page, answer, answer_key }: Narrowed): Record<string, string | undefined> {
  return { completed: completed?.toString(), version: version?.toString(), furthest_page: furthest_page?.toString(), answer, answer_key };
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
