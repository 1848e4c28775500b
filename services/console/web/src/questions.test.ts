import assert from "node:assert/strict";
import test from "node:test";
import { answeredIn, askedIn, changedIn, choicesIn, type Distribution, distributionOf, inOrder, kindOf } from "./questions.ts";

const many = (n: number, value: (i: number) => unknown, entries = (_: number) => 1) => Array.from({ length: n }, (_, i) => ({ value: value(i), entries: entries(i) }));

function given(values: Distribution["values"], more: Partial<Distribution> = {}): Distribution {
  return { entries: values.reduce((n, one) => n + one.entries, 0) + (more.others ?? 0), unreadable: 0, none: 0, multiple: 0, others: 0, numbers: null, values, ...more };
}

test("few answers are choices", () => {
  assert.equal(kindOf(given(many(10, (i) => `text ${i}`))), "choices");
  assert.equal(kindOf(given(many(10, (i) => i))), "choices");
  assert.equal(kindOf(given([])), "choices");
  assert.equal(kindOf(given(many(30, (i) => `choice ${i}`, () => 20))), "choices");
  assert.equal(kindOf(given(many(30, (i) => (i % 2 ? i : `text ${i}`)))), "choices");
});

test("a share changes if more than chance explains it, also that of an answer that is gone", () => {
  const shares = (...entries: number[]) => given(entries.flatMap((n, i) => (n > 0 ? [{ value: `choice ${i}`, entries: n }] : [])));
  const found = (now: Distribution, before: Distribution | undefined) => changedIn([{ key: "a", title: "", given: { now, before } }]).map(({ value, now, old }) => [value, now, old]);
  assert.deepEqual(found(shares(400, 600, 0), shares(500, 300, 200)), [["choice 1", 0.6, 0.3], ["choice 2", 0, 0.2], ["choice 0", 0.4, 0.5]]);
  assert.deepEqual(found(shares(800, 1200), shares(40, 61)), [], "more entries are no other shares");
  assert.deepEqual(found(shares(90, 0), shares(0, 90)), [], "few entries");
  assert.deepEqual(found(shares(400, 600), undefined), []);
  assert.deepEqual(found(shares(1000, 0), given([{ value: "choice 1", entries: 500 }], { others: 500 })), [["choice 1", 0, 0.5]], "an answer that is not listed may have been given");
});

test("texts are free texts if most were given once, or most are not listed", () => {
  assert.equal(kindOf(given(many(50, (i) => `a${i}@example.com`), { others: 1000 })), "texts");
  assert.equal(kindOf(given(many(50, (i) => `name ${i}`, (i) => 100 - i), { others: 20_000 })), "texts");
  assert.equal(kindOf(given(many(50, (i) => `name ${i}`, (i) => 100 - i), { others: 20 })), "choices");
  assert.equal(kindOf(given(many(20, (i) => `text ${i}`, (i) => (i < 9 ? 2 : 1)))), "texts");
  assert.equal(kindOf(given(many(20, (i) => `text ${i}`, (i) => (i < 10 ? 2 : 1)))), "choices");
  for (const label of ["Name", "first_name", "Your name?", "contactPhone", "E-mail", "surname"]) assert.equal(kindOf(given(many(11, (i) => i, () => 20)), "", label), "texts", label);
  for (const label of ["Which name suits it?", "filename", "phones_owned"]) assert.equal(kindOf(given(many(11, (i) => i, () => 20)), "", label), "numbers", label);
  assert.equal(kindOf(given(many(10, (i) => `name ${i}`)), "Name"), "choices");
  assert.equal(kindOf(given([], { others: 7 })), "texts", "texts of more than 1,000 bytes are never listed");
});

test("many numbers are ranges", () => {
  assert.equal(kindOf(given(many(11, (i) => i))), "numbers");
  assert.equal(kindOf(given(many(11, (i) => i), { multiple: 3 })), "choices", "an entry may be in a range several times");
  assert.equal(kindOf(given(many(50, (i) => i), { others: 5 })), "choices", "no range counts the others");
  const numbers = { entries: 55, minimum: 0, lower_quartile: 0, median: 0, upper_quartile: 0, maximum: 0, bins: [] };
  assert.equal(kindOf(given(many(50, (i) => i), { others: 5, numbers })), "numbers");
  assert.equal(kindOf(given([], { others: 55, numbers })), "numbers", "nearly all numbers are different");
  assert.equal(kindOf(given([], { others: 56, numbers })), "texts", "one answer is no number");
});

test("the answer about all questions has those of each", () => {
  const all = { entries: 9, unreadable: 1, keys: [] };
  const of = distributionOf(all, { key: "a", entries: 8, types: {}, none: 3, multiple: 0, others: 0, values: [{ value: "x", entries: 5 }], numbers: null });
  assert.equal(of && answeredIn(of), 5);
  const latest = distributionOf(all, { key: "c", entries: 8, types: {}, distinct: "many", none: 3, multiple: 0, others: 5, values: [{ value: "x" }], numbers: null });
  assert.deepEqual(latest?.values, [], "the latest values have no counts");
  assert.equal(distributionOf(all, { key: "b", entries: 8, types: {} }), undefined);
});

const definition = JSON.stringify({
  theme: { accent: "#fff" },
  rules: [{ field: "email", shown_if: "owner" }],
  pages: [
    { key: "home", components: [{ type: "headline", text: "Your home" }, { name: "home_type", label: "What do you live in?" }, { name: "owner", label: "It is mine" }] },
    { key: "contact", components: [{ name: "email", label: "Where do we send it?" }, { name: "phone" }] },
  ],
  fields: { "7": { title: "Seven" }, postcode: { question: "Your postcode?" } },
});

test("titles and order are those of the definition", () => {
  const keys = ["unknown", "email", "postcode", "owner", "phone", "home_type", "7", "another"].map((key) => ({ key }));
  const asked = askedIn(definition, keys.map(({ key }) => key));
  assert.deepEqual(inOrder(keys, asked).map(({ key }) => [key, asked.get(key)?.title]), [
    ["home_type", "What do you live in?"], ["owner", "It is mine"], ["email", "Where do we send it?"], ["phone", ""], ["7", "Seven"], ["postcode", "Your postcode?"], ["unknown", undefined], ["another", undefined],
  ]);
});

test("choices have the texts of the definition", () => {
  const json = JSON.stringify({ pages: [{ key: "colour", components: [
    { name: "colour", label: "Which?", options: [{ value: "r", label: "Red" }, { key: "g", text: "Green" }, { value: 3, label: "Three" }, { value: "none" }] },
    { id: "plain", title: "Which?", options: ["Red", "Green"] },
  ] }, { name: "other", choices: { list: [{ id: "r", title: "Right" }] } }] });
  const choices = choicesIn(json, ["colour", "plain", "other"]);
  assert.deepEqual(["r", "g", "3", "none"].map((value) => choices.get("colour")?.get(value)), ["Red", "Green", "Three", undefined]);
  assert.deepEqual([choices.get("plain"), choices.get("other")?.get("r")], [undefined, "Right"]);
});

test("any definition is read", () => {
  for (const json of ["", "{", "null", "7", '"text"', "[]", '{"name":"a","label":7}', '{"__proto__":{"title":"t"}}']) assert.ok(askedIn(json, ["a"]).size <= 1, json);
  assert.equal(askedIn('{"__proto__":{"title":"t"}}', ["__proto__"]).get("__proto__")?.title, "t");
  assert.equal(askedIn(`{"deep":${"[".repeat(9_000)}{"name":"a","label":"A"}${"]".repeat(9_000)}}`, ["a"]).get("a")?.title, "A");
});
