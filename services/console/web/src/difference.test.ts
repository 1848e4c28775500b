import assert from "node:assert/strict";
import test from "node:test";
import { areSure, difference, isSure, type Proportion } from "./difference.ts";

const against = (all: Proportion[], control: Proportion) => areSure(all.map((one) => [one, control]));

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

test("without a difference, at most 5 of 100 experiments show one, however many variants they have", () => {
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647; // the minimal standard generator of Park and Miller
  const drawn = () => {
    let some = 0;
    for (let i = 0; i < 400; i++) if (random() < 0.3) some++;
    return { some, all: 400 };
  };
  const shown = (variants: number, experiments: number) => {
    let some = 0;
    for (let i = 0; i < experiments; i++) if (against(Array.from({ length: variants }, drawn), drawn()).includes(true)) some++;
    return some;
  };
  // A single variant has the highest rate, because nothing is corrected.
  const [single, all] = [shown(1, 5000) / 5000, Array.from({ length: 49 }, (_, i) => shown(i + 1, 100))];
  assert.ok(single <= 0.05, `one variant: ${single}`);
  assert.ok(all.reduce((a, b) => a + b) / 4900 <= 0.05, `1 to 49 variants, of 100 experiments each: ${all}`);
  assert.ok(Math.max(...all) <= 11, `1 to 49 variants, of 100 experiments each: ${all}`); // 5, and almost three standard deviations
});

test("of several variants, those that surely differ are found", () => {
  const same = Array.from({ length: 18 }, () => ({ some: 300, all: 1000 }));
  assert.deepEqual(against([{ some: 400, all: 1000 }, ...same], { some: 300, all: 1000 }).indexOf(true), 0);
  assert.deepEqual(against([{ some: 343, all: 1000 }], { some: 300, all: 1000 }), [true]);
  assert.ok(!against([{ some: 343, all: 1000 }, ...same], { some: 300, all: 1000 }).includes(true));
});
