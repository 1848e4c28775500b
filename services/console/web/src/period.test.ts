import assert from "node:assert/strict";
import test from "node:test";
import { calendarSpan, daysSpan, monday, monthStart, ownSpan, periodIn } from "./period.ts";
import { ownZone } from "./preferences.ts";
import { dateTime } from "./time.ts";

ownZone.value = "Europe/Berlin";
const at = (text: string) => Date.parse(text);
const shown = ({ from, until }: { from: number | undefined; until: number | undefined }) => [from, until].map((end) => (end === undefined ? "" : dateTime(end)));

test("the address says the period", () => {
  const of = (query: string) => periodIn(new URLSearchParams(query));
  assert.deepEqual(of(""), { named: "30", from: "", to: "", reversed: false });
  assert.equal(of("days=last-week").named, "last-week");
  assert.equal(of("days=8").named, "30");
  assert.equal(of("from=2026-02-30").from, "");
  assert.equal(of("from=2026-02-02&to=2026-02-01").reversed, true);
  assert.equal(periodIn(new URLSearchParams(), "0").named, "0");
});

test("the calendar's periods and the ones before", () => {
  const now = at("2026-03-31T10:00:00Z"); // a Tuesday, noon in Berlin
  for (const [named, span, before, name] of [
    ["today", ["31 Mar 2026, 00:00", "1 Apr 2026, 00:00"], ["30 Mar 2026, 00:00", "30 Mar 2026, 12:00"], "the same hours of the day before"],
    ["yesterday", ["30 Mar 2026, 00:00", "31 Mar 2026, 00:00"], ["29 Mar 2026, 00:00", "30 Mar 2026, 00:00"], "the day before"],
    ["this-week", ["30 Mar 2026, 00:00", "1 Apr 2026, 00:00"], ["23 Mar 2026, 00:00", "24 Mar 2026, 12:00"], "the same days of the week before"],
    ["this-year", ["1 Jan 2026, 00:00", "1 Apr 2026, 00:00"], ["1 Jan 2025, 00:00", "31 Mar 2025, 12:00"], "the same days of the year before"],
    ["last-week", ["23 Mar 2026, 00:00", "30 Mar 2026, 00:00"], ["16 Mar 2026, 00:00", "23 Mar 2026, 00:00"], "the week before"],
    ["last-month", ["1 Feb 2026, 00:00", "1 Mar 2026, 00:00"], ["1 Jan 2026, 00:00", "1 Feb 2026, 00:00"], "the month before"],
    // February has no 31st day, so all of it counts.
    ["this-month", ["1 Mar 2026, 00:00", "1 Apr 2026, 00:00"], ["1 Feb 2026, 00:00", "1 Mar 2026, 00:00"], "the same days of the month before"],
  ] as const) {
    const got = calendarSpan(named, now);
    assert.deepEqual(shown(got), span, named);
    assert.deepEqual(got.before && shown(got.before), before, named);
    assert.equal(got.before?.name, name);
  }
  // The day that is not over is compared with the same hours.
  assert.deepEqual(shown(calendarSpan("this-month", at("2026-11-27T05:00:00Z")).before!), ["1 Oct 2026, 00:00", "27 Oct 2026, 06:00"]);
  assert.deepEqual(shown(calendarSpan("this-month", at("2026-01-01T05:00:00Z")).before!), ["1 Dec 2025, 00:00", "1 Dec 2025, 06:00"]);
});

test("weeks and months", () => {
  assert.equal(monday("2026-03-29"), "2026-03-23");
  assert.equal(monday("2026-03-30"), "2026-03-30");
  assert.equal(monthStart("2026-01-31", -1), "2025-12-01");
  assert.equal(monthStart("2026-12-31", 1), "2027-01-01");
});

test("days up to now, or up to the newest entry", () => {
  const now = at("2026-11-27T05:00:00Z");
  const recent = daysSpan(7, now, at("2026-11-26T05:00:00Z"));
  assert.deepEqual(shown(recent), ["21 Nov 2026, 00:00", "28 Nov 2026, 00:00"]);
  assert.deepEqual(shown(recent.before!), ["14 Nov 2026, 00:00", "20 Nov 2026, 06:00"]);
  const past = daysSpan(7, now, at("2026-10-01T05:00:00Z"));
  assert.equal(past.past, true);
  assert.deepEqual(shown(past), ["25 Sept 2026, 00:00", "2 Oct 2026, 00:00"]);
  assert.deepEqual(shown(past.before!), ["18 Sept 2026, 00:00", "25 Sept 2026, 00:00"]);
});

test("own days", () => {
  const now = at("2026-11-27T05:00:00Z");
  assert.deepEqual(shown(ownSpan({ from: "2026-03-28", to: "2026-03-30" }, now, undefined)), ["28 Mar 2026, 00:00", "31 Mar 2026, 00:00"]);
  const open = ownSpan({ from: "", to: "2026-03-30" }, now, at("2026-03-01T00:00:00Z"));
  assert.equal(open.days, 30);
  assert.equal(open.before, undefined);
});
