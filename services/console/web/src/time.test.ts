import assert from "node:assert/strict";
import test from "node:test";
import { dayStarts, duration, isDay, isoDay, percent, startOfDay } from "./time.ts";
import { ownZone } from "./preferences.ts";

const iso = (at: number) => new Date(at).toISOString();

test("a day begins at midnight of its zone", () => {
  for (const [day, timeZone, want] of [
    ["2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00.000Z"],
    ["2026-03-30", "Europe/Berlin", "2026-03-29T22:00:00.000Z"],
    ["2026-10-25", "Asia/Kathmandu", "2026-10-24T18:15:00.000Z"],
    ["2011-12-31", "Pacific/Apia", "2011-12-30T10:00:00.000Z"], // the day before was skipped
    ["2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00.000Z"], // midnight was skipped
  ] as const) assert.equal(iso(startOfDay(day, 0, timeZone)), want, `${day} in ${timeZone}`);
});

test("days have the length that clocks give them", () => {
  ownZone.value = "Europe/Berlin";
  const starts = dayStarts(Date.parse("2026-03-29T12:00:00Z"), 2);
  assert.deepEqual(starts.map(iso), ["2026-03-27T23:00:00.000Z", "2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"]);
  assert.equal(isoDay(Date.parse("2026-03-29T22:30:00Z")), "2026-03-30");
});

test("only real dates are days", () => {
  for (const [text, want] of [["2026-02-28", true], ["2026-02-29", false], ["0020-01-01", false], ["2026-2-1", false], ["", false]] as const) assert.equal(isDay(text), want, text);
});

test("figures are written for people", () => {
  assert.equal(duration(64_000), "1\u00a0min\u00a04\u00a0s");
  assert.equal(duration(90_000_000), "1\u00a0d\u00a01\u00a0h");
  assert.equal(percent(0.1234), "12.3 %");
  assert.equal(percent(NaN), "–");
});
