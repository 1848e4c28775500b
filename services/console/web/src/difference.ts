// The difference of two proportions, with an interval that says how sure it is.

/** Proportion is how many of all have something. */
export interface Proportion {
  some: number;
  all: number;
}

/** Difference is the difference of two proportions, and the ends of its interval. */
export interface Difference {
  by: number;
  low: number;
  high: number;
}

/** The quantile of the normal distribution for 95 %. */
const z95 = 1.959963984540054;

/** wilson returns Wilson's score interval of a proportion, without continuity correction, for a quantile of the normal distribution. */
function wilson({ some, all }: Proportion, z: number): { low: number; high: number } {
  const p = some / all;
  const centre = p + z ** 2 / (2 * all);
  const half = z * Math.sqrt((p * (1 - p)) / all + z ** 2 / (4 * all ** 2));
  const whole = 1 + z ** 2 / all;
  return { low: (centre - half) / whole, high: (centre + half) / whole };
}

/**
 * difference returns how much greater a is than b, by method 10, the hybrid score interval, of R. G. Newcombe: Interval
 * estimation for the difference between independent proportions: comparison of eleven methods. Statistics in Medicine 17
 * (1998), 873–890. z is the quantile of the normal distribution, by default that of 95 %.
 */
export function difference(a: Proportion, b: Proportion, z = z95): Difference {
  const [p, q] = [a.some / a.all, b.some / b.all];
  const [one, other] = [wilson(a, z), wilson(b, z)];
  return { by: p - q, low: p - q - Math.hypot(p - one.low, other.high - q), high: p - q + Math.hypot(one.high - p, q - other.low) };
}

/** How many entries each side needs before a page says that one is better. */
const least = 100;

/** isSure reports whether a page may say that one of two proportions is greater: both have 100 entries, and the interval excludes zero. */
export const isSure = (a: Proportion, b: Proportion): boolean => areSure([[a, b]])[0] === true;

/**
 * areSure reports for each pair whether a page may say that its proportions differ. However many pairs there are, some statement is
 * false in at most 5 of 100 cases without a difference, by the method of S. Holm: A simple sequentially rejective multiple test
 * procedure. Scandinavian Journal of Statistics 6 (1979), 65–70.
 */
export function areSure(pairs: readonly (readonly [Proportion, Proportion])[]): boolean[] {
  const sure = pairs.map(() => false);
  const chances = pairs.map(([a, b], i) => ({ i, chance: Math.min(a.all, b.all) < least ? 1 : chance(a, b) }));
  for (const [done, { i, chance }] of chances.sort((a, b) => a.chance - b.chance).entries()) {
    if (chance > 0.05 / (pairs.length - done)) break;
    sure[i] = true;
  }
  return sure;
}

/** chance returns one minus the level of the widest interval of the difference that excludes zero. */
function chance(a: Proportion, b: Proportion): number {
  let [z, above] = [0, 40];
  for (let i = 0; i < 50; i++) {
    const middle = (z + above) / 2;
    const { low, high } = difference(a, b, middle);
    if (low > 0 || high < 0) z = middle;
    else above = middle;
  }
  return outside(z);
}

/** outside returns the part of the normal distribution beyond z on both sides. M. Abramowitz, I. A. Stegun: Handbook of Mathematical Functions, 7.1.26. */
function outside(z: number): number {
  const t = 1 / (1 + (0.3275911 * z) / Math.SQRT2);
  return t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp((-z * z) / 2);
}
