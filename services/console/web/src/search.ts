// Finds entries and contacts by their ids, and contacts by an e-mail address. Only what exists is offered, so that no hit leads nowhere.
import { APIError, type Client } from "@lectern/client";
import { answersOf, nameIn, titleOf, words } from "./answers.ts";
import { address } from "./router.ts";

/** How long a text is that the API looks for in answers, in characters. */
export const shortest = 3;
export const longest = 256;

/** isSearch reports whether the API looks for the words of a text. */
export function isSearch(text: string): boolean {
  const { length } = [...text.trim().replace(/\s+/g, " ")];
  return length >= shortest && length <= longest;
}

/** Hit is a page that a search found. */
export interface Hit {
  label: string;
  what: string;
  to: string;
}

/** byId finds the entry and the contact that have exactly this id. */
export async function byId(client: Client, project: string, id: string, signal: AbortSignal): Promise<Hit[]> {
  if (id === "" || id.length > 256) return [];
  const [[entry], [contact]] = await Promise.all([
    // Ids of contacts may be addresses of e-mail. Ids of entries look like words, and browsers log each entry that does not exist.
    /[\s@]/.test(id) ? [] : client.entry(project, id, { signal }).then((entry) => [entry], none),
    Array.fromAsync(client.entries(project, { contact_id: id, limit: 1 }, { signal })).catch(none),
  ]);
  return [
    ...(entry ? [{ label: titleOf(entry) || id, what: "Entry", to: address(project, "entries", id) }] : []),
    ...(contact ? [{ label: id, what: "Contact", to: address(project, "contacts", id) }] : []),
  ];
}

/** How many entries with an e-mail address are read. They may be of one visitor. */
const mostWithMail = 20;

/** byMail finds the contacts that gave a whole e-mail address as an answer. */
export async function byMail(client: Client, project: string, mail: string, signal: AbortSignal): Promise<Hit[]> {
  if (!/^[^\s@]+@[^\s@]+\.[^\s@]{2,}$/.test(mail) || !isSearch(mail)) return [];
  const found = await Array.fromAsync(client.entries(project, { search: mail, limit: mostWithMail }, { signal })).catch(none);
  // The API also finds longer addresses that have this one in them.
  const same = (json: string) => words(json).trim().toLowerCase() === mail.toLowerCase();
  const theirs = found.filter(({ entry_data }) => [...(answersOf(entry_data)?.values() ?? [])].some(same));
  return [...new Map(theirs.map((entry) => [entry.contact_id, entry])).values()].map((entry) => ({ label: nameIn(entry) || mail, what: "Contact", to: address(project, "contacts", entry.contact_id) }));
}

/** none stands for a record that does not exist, that the key may not read, or that takes too long to look for. It throws other errors. */
function none(error: unknown): [] {
  if (error instanceof APIError && [400, 403, 404, 422].includes(error.status)) return [];
  throw error;
}
