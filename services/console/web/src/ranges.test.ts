import assert from "node:assert/strict";
import test from "node:test";
import { parseJSON, toJSON } from "./numbers.ts";
import { ascending, binRanges, isNumber, rangesOf } from "./ranges.ts";

const given = (...numbers: string[]) => numbers.map((json, i) => ({ value: parseJSON(json), entries: i + 1 }));

test("ranges have round bounds and count each number once", () => {
  const values = Array.from({ length: 40 }, (_, i) => ({ value: 20 + i, entries: 2 }));
  const { ranges, least, greatest } = rangesOf(values);
  assert.deepEqual(ranges, [20, 25, 30, 35, 40, 45, 50, 55].map((from) => ({ name: `${from} to ${from + 4}`, entries: 10 })));
  assert.deepEqual([least, greatest], ["20", "59"]);
});

test("there are at most ten ranges, and empty ones stay", () => {
  const { ranges } = rangesOf(given("0", "3", "1000"));
  assert.deepEqual(ranges.map(({ name, entries }) => `${name}: ${entries}`), ["0 to 199: 3", "200 to 399: 0", "400 to 599: 0", "600 to 799: 0", "800 to 999: 0", "1,000 to 1,199: 3"]);
  for (const high of [10, 11, 19, 20, 21, 49, 50, 99, 100, 101, 12345]) {
    const { ranges } = rangesOf(Array.from({ length: high + 1 }, (_, value) => ({ value, entries: 1 })));
    assert.ok(ranges.length >= 4 && ranges.length <= 10, `${high}: ${ranges.length}`);
    assert.equal(ranges.reduce((n, one) => n + one.entries, 0), high + 1);
  }
});

test("fractions and negative numbers have exact bounds", () => {
  assert.deepEqual(rangesOf(given("-0.75", "-0.1", "0.3", "1e-1")).ranges, [
    { name: "-0.8 to under -0.6", entries: 1 }, { name: "-0.6 to under -0.4", entries: 0 }, { name: "-0.4 to under -0.2", entries: 0 },
    { name: "-0.2 to under 0", entries: 2 }, { name: "0 to under 0.2", entries: 4 }, { name: "0.2 to under 0.4", entries: 3 },
  ]);
  assert.deepEqual(rangesOf(given("5")).ranges, [{ name: "5", entries: 1 }]);
});

test("numbers of any length keep their digits", () => {
  const { ranges, least, greatest } = rangesOf(given("123456789012345678", "123456789012345687", "123456789012345680"));
  assert.deepEqual(ranges.map(({ name, entries }) => [name, entries]), [["123,456,789,012,345,678", 1], ["123,456,789,012,345,679", 0], ["123,456,789,012,345,680", 3], ...[1, 2, 3, 4, 5, 6].map((n) => [`123,456,789,012,345,68${n}`, 0]), ["123,456,789,012,345,687", 2]]);
  assert.deepEqual([least, greatest], ["123,456,789,012,345,678", "123,456,789,012,345,687"]);
  // As a number of JavaScript, the first would be 0.3, and in the range after its own.
  assert.equal(rangesOf(given("0.29999999999999999999", "0", "0.5")).ranges.find(({ name }) => name === "0.2 to under 0.3")?.entries, 1);
  assert.equal(rangesOf(given("1e300", "0")).greatest, `1${",000".repeat(100)}`);
});

test("values that are numbers are told apart and sorted", () => {
  assert.deepEqual(["1", "-2.5", "12345678901234567890", "0.12345678901234567891"].map((json) => isNumber(parseJSON(json))), [true, true, true, true]);
  assert.deepEqual(['"1"', "true", "null", "[1]", "{}"].map((json) => isNumber(parseJSON(json))), [false, false, false, false, false]);
  assert.deepEqual(ascending(given("10", "9", "-1", "9.5", "123456789012345679", "123456789012345678")).map(({ value }) => toJSON(value)), ["-1", "9", "9.5", "10", "123456789012345678", "123456789012345679"]);
});

test("bins of the API are put together by two, without the empty ones at the end", () => {
  const bins = Array.from({ length: 20 }, (_, i) => ({ from: 12345.6 + i * 0.25, to: 12345.6 + (i + 1) * 0.25, entries: i < 17 ? i : 0 }));
  const numbers = { entries: 136, minimum: 12345.7, lower_quartile: 0, median: 0, upper_quartile: 0, maximum: 12349.7, bins };
  const ranges = binRanges(numbers);
  assert.equal(ranges.length, 9);
  assert.deepEqual([ranges[0], ranges[8]], [{ name: "12,345.6 to under 12,346.1", entries: 1 }, { name: "12,349.6 to under 12,350.1", entries: 16 }]);
  assert.deepEqual(binRanges({ ...numbers, bins: [{ from: 4, to: 4, entries: 3 }] }), [{ name: "4", entries: 3 }]);
});
