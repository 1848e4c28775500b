// Reads and writes JSON without losing digits of a number. JavaScript's own numbers hold about 15.
import { isInteger, isSafeNumber, LosslessNumber, parse, stringify } from "lossless-json";

/** numberOf reads a number of JSON: a number if it holds all digits, else a bigint, or for a fraction an object that String writes. */
export function numberOf(text: string): unknown {
  if (isSafeNumber(text)) return Number(text);
  return isInteger(text) ? BigInt(text) : new LosslessNumber(text);
}

/** parseJSON reads JSON. The browser reads texts without long numbers, because it is faster. */
export function parseJSON(text: string): unknown {
  return /[\d.]{16}|\d[eE]/.test(text) ? parse(text, undefined, numberOf) : JSON.parse(text);
}

/** toJSON is the inverse of parseJSON. */
export const toJSON = (value: unknown): string => stringify(value) ?? "";

/** versionIn reads the number of a version from a text, or returns undefined. The API has versions up to the greatest safe integer. */
export const versionIn = (text: string): number | undefined => (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined);

const whole = new Intl.NumberFormat("en-GB");
const rounded = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 6 });

/** place writes the place of what has an index, from 1. An index above 2^53 is a bigint. */
export const place = (index: number | bigint): string => whole.format(BigInt(index) + 1n);

/** figure writes a number with commas: a whole one to its last digit, another with six digits. */
export const figure = (n: unknown): string => (Number.isSafeInteger(n) ? whole : rounded).format(Number(String(n)));
