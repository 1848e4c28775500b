import assert from "node:assert/strict";
import test from "node:test";
import { difference, isSure } from "./difference.ts";

// Table II of Newcombe (1998), method 10.
test("the intervals are those that were published", () => {
  for (const [some, all, otherSome, otherAll, low, high] of [
    [56, 70, 48, 80, 0.0524, 0.3339],
    [9, 10, 3, 10, 0.1705, 0.809],
    [6, 7, 2, 7, 0.0582, 0.8062],
    [5, 56, 0, 29, -0.0381, 0.1926],
    [0, 10, 0, 20, -0.1611, 0.2775],
    [0, 10, 0, 10, -0.2775, 0.2775],
    [10, 10, 0, 20, 0.6791, 1],
    [10, 10, 0, 10, 0.6075, 1],
  ] as const) {
    const got = difference({ some, all }, { some: otherSome, all: otherAll });
    assert.deepEqual([got.low.toFixed(4), got.high.toFixed(4)], [low.toFixed(4), high.toFixed(4)], `${some}/${all} − ${otherSome}/${otherAll}`);
    assert.equal(got.by, some / all - otherSome / otherAll);
  }
});

test("it is too early to say with few entries, or while the interval has zero", () => {
  assert.equal(isSure({ some: 99, all: 99 }, { some: 0, all: 1000 }), false);
  assert.equal(isSure({ some: 100, all: 100 }, { some: 0, all: 100 }), true);
  assert.equal(isSure({ some: 50, all: 100 }, { some: 45, all: 100 }), false);
  assert.equal(isSure({ some: 450, all: 1000 }, { some: 500, all: 1000 }), true);
});
