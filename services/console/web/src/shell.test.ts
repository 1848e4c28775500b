import assert from "node:assert/strict";
import test from "node:test";
import { csv, curl, lectern } from "./shell.ts";

test("commands read the address", () => {
  const url = new URL("https://example.com/projects/pr_1/entries?embeddable_id=it%27s&version=2&search=-a&limit=50&cursor=x");
  assert.equal(curl(url.href), `curl -H "X-Api-Key: $LECTERN_API_KEY" 'https://example.com/projects/pr_1/entries?embeddable_id=it%27s&version=2&search=-a&limit=50&cursor=x'`);
  assert.equal(lectern(url), `lectern api '/projects/pr_1/entries?embeddable_id=it%27s&version=2&search=-a&limit=50&cursor=x'`);
  assert.equal(csv(url), `lectern export entries --flatten -o csv --embeddable-id='it'\\''s' --version-number='2' --search='-a' > entries.csv`);
  assert.equal(csv(new URL("https://example.com/projects/pr_1/entries-counts")), undefined);
});
