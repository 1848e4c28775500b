// The embeddables of a project, their names, and the titles of their questions.
import type { Embeddable } from "@lectern/client";
import { useMemo } from "preact/hooks";
import { type Load, useLoad } from "./load.ts";
import { type Asked, askedIn, choicesIn, type Texts } from "./questions.ts";

/** nameOf returns the title of an embeddable, or its id if it has none. */
export const nameOf = (embeddable: Embeddable): string => embeddable.title || embeddable.embeddable_id;

/** useEmbeddables reads the embeddables of a project. */
export function useEmbeddables(project: string): Load<Embeddable[]> {
  return useLoad(({ client, signal }) => Array.fromAsync(client.embeddables(project, {}, { signal })), ["embeddables", project]);
}

/** useNames returns a function that names an embeddable by its id. Until the titles are read, it returns the id. */
export function useNames(project: string): (id: string) => string {
  const { value } = useEmbeddables(project);
  return useMemo(() => {
    const names = new Map(value?.map((embeddable) => [embeddable.embeddable_id, nameOf(embeddable)]));
    return (id) => names.get(id) ?? id;
  }, [value]);
}

/** useAsked reads questions and the texts of their choices in the definition of an embeddable, by the keys of the answers. ready says that the definition is read, or cannot be read: answers do not wait for a service that is not available. */
export function useAsked(project: string, id: string, keys: readonly string[]): { asked: ReadonlyMap<string, Asked>; texts: ReadonlyMap<string, Texts>; ready: boolean } {
  const embeddables = useEmbeddables(project);
  const stored = embeddables.value?.some((one) => one.embeddable_id === id) ?? false;
  const load = useLoad(({ client, signal }) => client.embeddable(project, id, { signal }), ["embeddable", project, id], stored);
  const reading = ({ state, value, waiting }: Load<unknown>) => state === "loading" && value === undefined && !waiting;
  const definition = load.value?.json_string_prod ?? "";
  const same = [definition, JSON.stringify(keys)]; // a caller may make the list of keys again
  return {
    asked: useMemo(() => askedIn(definition, keys), same),
    texts: useMemo(() => choicesIn(definition, keys), same),
    ready: !reading(embeddables) && !(stored && reading(load)),
  };
}
