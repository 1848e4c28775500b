// The difference of two proportions, with an interval that says how sure it is.

/** Proportion is how many of all have something. */
export interface Proportion {
  some: number;
  all: number;
}

/** Difference is the difference of two proportions, and the ends of its 95 % interval. */
export interface Difference {
  by: number;
  low: number;
  high: number;
}

/** The quantile of the normal distribution for 95 %. */
const z = 1.959963984540054;

/** wilson returns Wilson's score interval of a proportion, without continuity correction. */
function wilson({ some, all }: Proportion): { low: number; high: number } {
  const p = some / all;
  const centre = p + z ** 2 / (2 * all);
  const half = z * Math.sqrt((p * (1 - p)) / all + z ** 2 / (4 * all ** 2));
  const whole = 1 + z ** 2 / all;
  return { low: (centre - half) / whole, high: (centre + half) / whole };
}

/**
 * difference returns how much greater a is than b, by method 10, the hybrid score interval, of R. G. Newcombe: Interval
 * estimation for the difference between independent proportions: comparison of eleven methods. Statistics in Medicine 17
 * (1998), 873–890.
 */
export function difference(a: Proportion, b: Proportion): Difference {
  const [p, q] = [a.some / a.all, b.some / b.all];
  const [one, other] = [wilson(a), wilson(b)];
  return { by: p - q, low: p - q - Math.hypot(p - one.low, other.high - q), high: p - q + Math.hypot(one.high - p, q - other.low) };
}

/** How many entries each side needs before a page says that one is better. */
const least = 100;

/** isSure reports whether a page may say that one of two proportions is greater: both have 100 entries, and the interval excludes zero. */
export function isSure(a: Proportion, b: Proportion): boolean {
  if (a.all < least || b.all < least) return false;
  const { low, high } = difference(a, b);
  return low > 0 || high < 0;
}
