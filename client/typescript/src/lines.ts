import { IncompleteError } from "./errors.js";

/**
 * lines yields the lines of a body, in groups of those that one chunk completes. It throws an IncompleteError if reading
 * fails, or if the body ends within a line.
 */
export async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string[], void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  // The pieces of an unfinished line. They are joined once, so that a long line takes linear time.
  let pieces: string[] = [];
  try {
    for (;;) {
      const chunk = await reader.read().catch((cause: unknown) => {
        throw new IncompleteError("the answer was cut off", { cause });
      });
      if (chunk.done) break;
      const text = decoder.decode(chunk.value, { stream: true });
      const complete: string[] = [];
      let start = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
        let line = text.slice(start, end);
        if (pieces.length > 0) {
          line = pieces.join("") + line;
          pieces = [];
        }
        complete.push(line);
        start = end + 1;
      }
      if (start < text.length) pieces.push(text.slice(start));
      if (complete.length > 0) yield complete;
    }
    if (pieces.length > 0 || decoder.decode() !== "") {
      throw new IncompleteError("the answer was cut off: it ends within a record");
    }
  } finally {
    // Closes the connection unless the answer was read to its end.
    reader.cancel().catch(() => {});
  }
}
