// Puts numbers of any length into ranges with round bounds, and in their order. No digit is lost.
import type { Answers } from "@lectern/client";
import { figure, toJSON } from "./numbers.ts";

/** Counted is an answer with how many entries have it. */
export interface Counted {
  value?: unknown;
  entries: number;
}

/** Range is a range of numbers, with how many entries have a number in it. */
export interface Range {
  name: string;
  entries: number;
}

/** How many ranges there are at most. */
const mostRanges = 10n;

/** isNumber reports whether a value of parseJSON is a number. */
export const isNumber = (value: unknown): boolean => /^-?\d/.test(toJSON(value));

/** inUnits writes numbers as multiples of the same power of ten, which has the most decimal places of them. */
function inUnits(values: readonly Counted[]): { numbers: { one: Counted; n: bigint }[]; places: number } {
  const parts = values.map(({ value }) => {
    const [, whole = "0", fraction = "", exponent = "0"] = /^(-?\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(toJSON(value)) ?? [];
    return { digits: BigInt(whole + fraction), places: fraction.length - Number(exponent) };
  });
  const places = Math.max(0, ...parts.map((one) => one.places));
  return { places, numbers: values.map((one, i) => ({ one, n: (parts[i]?.digits ?? 0n) * 10n ** BigInt(places - (parts[i]?.places ?? 0)) })) };
}

const grouped = new Intl.NumberFormat("en-GB");

/** write writes a number of units for people. */
function write(n: bigint, places: number): string {
  const digits = String(n < 0n ? -n : n).padStart(places + 1, "0");
  const [front, fraction] = [digits.slice(0, digits.length - places), digits.slice(digits.length - places).replace(/0+$/, "")];
  return `${n < 0n ? "-" : ""}${grouped.format(BigInt(front))}${fraction && `.${fraction}`}`;
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** ascending sorts values that are numbers. */
export const ascending = (values: readonly Counted[]): Counted[] => inUnits(values).numbers.sort((a, b) => compare(a.n, b.n)).map(({ one }) => one);

/** rangesOf puts values that are numbers into at most ten ranges of the same length, with the first and the last value. The bounds are multiples of 1, 2 or 5 times a power of ten. */
export function rangesOf(values: readonly Counted[]): { ranges: Range[]; least: string; greatest: string } {
  const { numbers, places } = inUnits(values);
  const sorted = numbers.map(({ n }) => n).sort(compare);
  const [low = 0n, high = 0n] = [sorted[0], sorted.at(-1)];
  const down = (n: bigint, step: bigint) => (n < 0n ? (n - step + 1n) / step : n / step);
  const step = roundStep((step) => down(high, step) - down(low, step) < mostRanges);
  const first = down(low, step);
  const ranges = Array.from({ length: Number(down(high, step) - first) + 1 }, (_, i): Range => {
    const from = (first + BigInt(i)) * step;
    // Between whole numbers there are no others.
    const to = places > 0 ? `under ${write(from + step, places)}` : write(from + step - 1n, places);
    return { name: step === 1n && places === 0 ? to : `${write(from, places)} to ${to}`, entries: 0 };
  });
  for (const { one, n } of numbers) {
    const range = ranges[Number(down(n, step) - first)];
    if (range) range.entries += one.entries;
  }
  return { ranges, least: write(low, places), greatest: write(high, places) };
}

function roundStep(fits: (step: bigint) => boolean): bigint {
  for (let power = 1n; ; power *= 10n) for (const times of [1n, 2n, 5n]) if (fits(times * power)) return times * power;
}

/** binRanges puts the bins of the API together, two by two. Two have round bounds, and the last ones can be empty. */
export function binRanges({ bins, maximum }: NonNullable<Answers["numbers"]>): Range[] {
  return bins.flatMap((bin, i) => {
    if (i % 2 === 1 || Number(String(bin.from)) > Number(String(maximum))) return [];
    const next = bins[i + 1];
    return [{ name: next ? `${bound(bin.from)} to under ${bound(next.to)}` : figure(bin.from), entries: bin.entries + (next?.entries ?? 0) }];
  });
}

/** bound writes a round bound to its last digit. */
const bound = (n: unknown): string => Number(String(n)).toLocaleString("en-GB", { maximumSignificantDigits: 15 });
