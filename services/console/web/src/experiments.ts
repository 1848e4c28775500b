// What the pages of experiments share: the statuses, and the fields with JSON in a string.
import type { Experiment, StatusChange } from "@lectern/client";
import { parseJSON, toJSON, versionIn } from "./numbers.ts";
import { isoDay } from "./time.ts";

/** statuses are the statuses in the order in which they are shown. The last one stands for none, and for those that this version of the console does not know. */
export const statuses = [
  { status: "running", name: "Running", tone: "good" },
  { status: "paused", name: "Paused", tone: "busy" },
  { status: "winner_picked", name: "Winner picked", tone: "plain" },
  { status: "completed", name: "Completed", tone: "plain" },
  { status: "draft", name: "Draft", tone: "off" },
  { status: "discarded", name: "Discarded", tone: "off" },
  { status: "none", name: "No status", tone: "off" },
] as const;

/** statusOf finds a status. */
export const statusOf = (status: string | null) => statuses.find((one) => one.status === status) ?? statuses[6];

export interface Variant {
  key: string;
  /** The fields of the variant, as names and texts. */
  fields: [string, string][];
}

/** flowsOf returns the ids of the embeddables that an experiment is about, each once. */
export const flowsOf = (e: Experiment): string[] => [...new Set([e.flowId, ...(e.flow_ids ?? [])])];

/** textOf writes a value of JSON for people. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : toJSON(value);
}

function parse(json: string | null): unknown {
  if (json === null) return null;
  try {
    return parseJSON(json);
  } catch {
    return undefined;
  }
}

/** variantsOf reads the variants of an experiment. It returns undefined if they are not a JSON object. */
export function variantsOf(experiment: Experiment): Variant[] | undefined {
  const value = parse(experiment.variants);
  if (value === null) return [];
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.entries(value as object).map(([key, fields]: [string, unknown]) => ({
    key,
    fields: fields !== null && typeof fields === "object" && !Array.isArray(fields) ? Object.entries(fields).map(([name, field]): [string, string] => [name, textOf(field)]) : [["", textOf(fields)]],
  }));
}

const fieldOf = ({ fields }: Variant, ...names: string[]) => fields.find(([name]) => names.includes(name))?.[1];

/** nameOfVariant returns the name of a variant, or else its key. */
export const nameOfVariant = (variant: Variant): string => fieldOf(variant, "name") || variant.key;

/** versionOf returns the version of the embeddable that a variant shows, if it says one. */
export const versionOf = (variant: Variant): number | undefined => versionIn(fieldOf(variant, "version_number", "embeddable_version_number") ?? "");

/** flowOf returns the id of the embeddable that a variant shows, if it says one. */
export const flowOf = (variant: Variant): string | undefined => fieldOf(variant, "flowId", "flow_id", "embeddable_id");

/** alone returns the variants whose visitors can be told apart: each has a version, or an embeddable, that no other one has. */
export function alone(variants: readonly Variant[]): Variant[] {
  const shows = (variant: Variant) => JSON.stringify([flowOf(variant) ?? "", versionOf(variant) ?? ""]);
  return variants.filter((one) => shows(one) !== '["",""]' && variants.every((other) => other === one || shows(other) !== shows(one)));
}

/** Ran is when an experiment ran: the first day, and the last one if it has ended, each as 2026-09-30. */
export interface Ran {
  from: string;
  to: string;
}

/** ranIn returns when an experiment ran, in whole days, as lists and funnels have them. */
export function ranIn(e: Experiment, history: StatusChange[]): Ran {
  const runs = (change: StatusChange) => change.status === "running" || change.status === "paused";
  const began = history.find(runs)?.changed_at ?? e.created_at;
  const ended = history[history.findLastIndex(runs) + 1]?.changed_at;
  return { from: isoDay(Date.parse(began)), to: ended === undefined || e.status === "draft" ? "" : isoDay(Date.parse(ended)) };
}

/** nameOfWinner returns the name of the variant that won, or else its key. "" while none has. */
export function nameOfWinner(e: Experiment): string {
  const winner = variantsOf(e)?.find(({ key }) => key === e.winner_variant);
  return winner ? nameOfVariant(winner) : e.winner_variant ?? "";
}

/** attachmentsOf reads the attachments of an experiment. It returns undefined if they are not a JSON array. */
export function attachmentsOf(experiment: Experiment): { name: string; url: string }[] | undefined {
  const value = parse(experiment.attachments);
  if (value === null) return [];
  if (!Array.isArray(value)) return undefined;
  return value.map((item: unknown) => {
    const field = (name: string) => (item !== null && typeof item === "object" ? textOf((item as Record<string, unknown>)[name] ?? "") : "");
    return { name: field("name") || field("url") || textOf(item), url: field("url") };
  });
}
