// Compares two definitions, line by line. A definition is JSON within a string; a text that is not JSON is compared unchanged.
import { diffLines } from "diff";
import { indented } from "./answers.ts";

/**
 * definitionLines writes a definition on lines of their own, so that it can be read and compared. The values keep the
 * wording of the source: numbers keep their digits, and members that are there twice stay.
 */
export function definitionLines(definition: string): { text: string; valid: boolean } {
  try {
    JSON.parse(definition);
    return { text: indented(definition), valid: true };
  } catch {
    return { text: definition, valid: false };
  }
}

export interface Line {
  kind: "same" | "removed" | "added";
  text: string;
  /** The line's number in each text, if the text has the line. */
  before?: number | undefined;
  after?: number | undefined;
}

/** A run of lines: changes with the lines around them, or lines that are the same in both and can be folded. */
export interface Hunk {
  folded: boolean;
  lines: Line[];
}

export interface Comparison {
  hunks: Hunk[];
  added: number;
  removed: number;
}

/** How many lines are shown around a change. */
const around = 3;

/** How long a comparison may take, in milliseconds. Texts that differ in everything take longest. */
const longest = 2000;

/** compare returns how one text becomes another, or undefined if that takes too long to find out. */
export function compare(before: string, after: string): Comparison | undefined {
  const parts = diffLines(before, after, { timeout: longest });
  if (!parts) return undefined;
  const lines: Line[] = [];
  let [b, a] = [0, 0];
  for (const { value, added, removed } of parts) {
    const kind = added ? "added" : removed ? "removed" : "same";
    for (const text of value.replace(/\n$/, "").split("\n")) lines.push({ kind, text, before: added ? undefined : ++b, after: removed ? undefined : ++a });
  }
  const number = (kind: Line["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { hunks: fold(lines), added: number("added"), removed: number("removed") };
}

function fold(lines: readonly Line[]): Hunk[] {
  const near = new Uint8Array(lines.length);
  lines.forEach(({ kind }, i) => {
    if (kind !== "same") near.fill(1, Math.max(0, i - around), i + around + 1);
  });
  const hunks: Hunk[] = [];
  lines.forEach((line, i) => {
    const folded = near[i] === 0;
    const last = hunks.at(-1);
    if (last && last.folded === folded) last.lines.push(line);
    else hunks.push({ folded, lines: [line] });
  });
  return hunks;
}
