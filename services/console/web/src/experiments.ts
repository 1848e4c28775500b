// What the pages of experiments share: the statuses, and the fields with JSON in a string.
import type { Experiment } from "@lectern/client";

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
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function parse(json: string | null): unknown {
  if (json === null) return null;
  try {
    return JSON.parse(json);
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

/** nameOfWinner returns the name of the variant that won, or else its key. "" while none has. */
export function nameOfWinner(e: Experiment): string {
  return variantsOf(e)?.find(({ key }) => key === e.winner_variant)?.fields.find(([field]) => field === "name")?.[1] || e.winner_variant || "";
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
