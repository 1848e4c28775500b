import assert from "node:assert/strict";
import test from "node:test";
import { answersOf, decodeNames, encodeNames, indented, nameIn, readable, text, titleOf, words } from "./answers.ts";
import { figure, parseJSON, toJSON, versionIn } from "./numbers.ts";

test("members keep the wording of the source", () => {
  const answers = answersOf('{"a": 1.50, "b,\\"c":{"d":[1,{"e":"}"}]}, "n":12345678901234567890, "a":2}');
  assert.deepEqual([...answers!], [["a", "2"], ['b,"c', '{"d":[1,{"e":"}"}]}'], ["n", "12345678901234567890"]]);
  assert.equal(answersOf("[1]"), null);
  assert.equal(answersOf("{"), null);
  assert.equal(indented('{"n":12345678901234567890,"e":{}}'), '{\n  "n": 12345678901234567890,\n  "e": {}\n}');
});

test("a number and a text of the same digits differ", () => {
  assert.equal(readable("100"), '"100"');
  assert.equal(readable("true"), '"true"');
  assert.equal(readable("0123"), "0123");
  assert.equal(readable("100 kg"), "100 kg");
  assert.equal(text("null"), "");
  assert.equal(words('["a","b"]'), "a, b");
  assert.deepEqual(["true", "false", '"true"', "null"].map((json) => words(json)), ["Yes", "No", "true", ""]);
});

test("titles are names, or the first answers that are no white space", () => {
  const of = (entry_data: string) => titleOf({ entry_data });
  assert.equal(of('{"x":"yes","first_name":"Ada","last_name":"L"}'), "Ada L");
  assert.equal(of('{"a":"  ","b":"\\t","c":7}'), "7");
  assert.equal(of('{"a":" ","b":null}'), "");
  assert.equal(of("  raw"), "raw");
  assert.equal(nameIn({ entry_data: '{"email":"a@b.c"}' }), "a@b.c");
});

test("names in an address are read back", () => {
  for (const names of [[], ["a", "b c"], ['"', ",", ""], ["ü"]]) assert.deepEqual(decodeNames(encodeNames(names)), names);
  assert.throws(() => decodeNames("%22"));
});

test("JSON is read without losing digits", () => {
  for (const json of ['{"a":123456789012345678,"b":[0.12345678901234567891,1e400]}', "[1,2.5,true,null]"]) assert.equal(toJSON(parseJSON(json)), json);
  assert.equal(parseJSON("12"), 12);
  assert.equal(figure(1234567), "1,234,567");
  assert.equal(figure(33.3333333), "33.3333");
  assert.equal(versionIn("9007199254740991"), 9007199254740991);
  assert.equal(versionIn("9007199254740993"), undefined);
});
