import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { after, type State, wait } from "./renewal.ts";

interface Seconds {
  refresh?: string;
  expires?: number;
  next?: number;
  claimed?: number;
  failures?: number;
}

interface Case {
  name: string;
  spec: { awaited?: boolean };
  state: Seconds;
  answer?: { refresh?: string; life?: number; refused?: boolean };
  send?: string;
  store?: Seconds;
  wait?: number;
}

const now = 1e12;
const at = (seconds?: number) => (seconds === undefined ? 0 : now + seconds * 1000);
const state = ({ refresh, expires, next, failures = 0 }: Seconds): State => ({ refresh, until: at(expires), renewAt: at(next), failures });

// The rest of the table is about several programs with one token, and about tokens that a user gives. A tab has neither.
const cases = (JSON.parse(readFileSync("../../../shared/renewal/testdata/plan.json", "utf8")) as Case[]).filter(({ spec }) => spec.awaited);

test("the table of renewals", async (t) => {
  assert.ok(cases.length > 10);
  for (const { name, state: before, answer, send, store, wait: delay = 0 } of cases) {
    await t.test(name, () => {
      let got = state(before);
      if (answer) {
        const life = answer.life === undefined ? undefined : answer.life * 1000;
        got = after(got, at(before.claimed), { ...answer, life });
        assert.deepEqual(got, state(store!));
      }
      assert.equal(wait(got, now), delay * 1000);
      if (send !== undefined) assert.equal(got.refresh ?? "", send);
    });
  }
});
