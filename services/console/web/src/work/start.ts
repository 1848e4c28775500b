// Starts the worker of the funnel.
import type { Waiting } from "../api.ts";
import { type Counted, type News, type Order, rebuilt } from "./messages.ts";
import workerAddress from "./worker.ts?worker&url";

// TypeScript does not know Trusted Types yet, and neither do all browsers.
declare global {
  var trustedTypes: { createPolicy(name: string, rules: { createScriptURL(address: string): string }): { createScriptURL(address: string): string } } | undefined;
}

// The page's only policy: it lets through the address of the worker, and no other script.
const rules = {
  createScriptURL(address: string): string {
    if (address !== workerAddress) throw new TypeError("The console runs no other script.");
    return address;
  },
};
const policy = globalThis.trustedTypes?.createPolicy("lectern", rules) ?? rules;

/** Watch is how countFunnel says how far it is. */
export interface Watch {
  signal: AbortSignal;
  show: (counted: Counted) => void;
  wait: (waiting: Waiting) => void;
}

/** countFunnel counts a funnel in a worker of its own, which ends with the count or with the signal. */
export function countFunnel(order: Order, { signal, show, wait }: Watch): Promise<Counted> {
  // The key goes by the message: an address could be kept or logged.
  const worker = new Worker(policy.createScriptURL(workerAddress), { type: "module", name: "funnel" });
  const counted = new Promise<Counted>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    worker.onerror = (event) => reject(new Error(event.message || "The script that counts could not be loaded. Load the page again in the browser: the console may have been updated."));
    worker.onmessage = ({ data: news }: MessageEvent<News>) => {
      if (news.type === "progress") show(news.counted);
      else if (news.type === "waiting") wait({ error: rebuilt(news.error), until: news.until });
      else if (news.type === "done") resolve(news.counted);
      else reject(rebuilt(news.error));
    };
  });
  worker.postMessage(order);
  return counted.finally(() => worker.terminate());
}
