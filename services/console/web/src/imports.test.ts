// Checks that no files of the console import each other in a circle.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

test("no circle of imports", () => {
  const root = "src"; // npm runs tests in the folder of package.json
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  const imports = new Map(files.map((file) => [file, [...readFileSync(join(root, file), "utf8").matchAll(/from "(\.[^"]+)"/g)].map(([, to = ""]) => join(dirname(file), to))]));
  const checked = new Set<string>();
  const check = (file: string, path: string[]) => {
    assert.ok(!path.includes(file), `a circle: ${[...path.slice(path.indexOf(file)), file].join(" → ")}`);
    if (checked.has(file)) return;
    for (const to of imports.get(file) ?? []) check(to, [...path, file]);
    checked.add(file);
  };
  for (const file of files) check(file, []);
  assert.ok(checked.size > 20);
});
