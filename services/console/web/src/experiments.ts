// What the pages of experiments share: the statuses, and the fields with JSON in a string.
import type { Experiment } from "@lectern/client";

export type Status = NonNullable<Experiment["status"]>;

/** statuses are the six statuses, in the order in which they are shown. */
export const statuses: readonly { status: Status; name: string; tone: "good" | "busy" | "off" | "plain" }[] = [
  { status: "running", name: "Running", tone: "good" },
  { status: "paused", name: "Paused", tone: "busy" },
  { status: "draft", name: "Draft", tone: "off" },
  { status: "winner_picked", name: "Winner picked", tone: "plain" },
  { status: "completed", name: "Completed", tone: "plain" },
  { status: "discarded", name: "Discarded", tone: "off" },
];

export interface Variant {
  key: string;
  /** The fields of the variant, as names and texts. */
  fields: [string, string][];
}

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
