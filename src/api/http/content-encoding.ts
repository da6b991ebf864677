// Owns: undoing a response's content encoding within a bound (quality, Security 10).
// Must not know: what the content is.
import type { Broken } from "./break-of.ts";
import { sizeInWords } from "./exchange.ts";

/**
 * The body as it was before it was encoded. None is asked for; a gzip that some box on the way added is undone all the
 * same, since an answer to a change is worth reading. Anything else, and more than one, is refused.
 * @param maxBytes bound on the decoded length: 300 kB may unfold to 1 GB
 */
export async function decodeBody(
  body: Buffer,
  { encoding, maxBytes }: { readonly encoding: string | undefined; readonly maxBytes: number },
): Promise<Buffer | Broken> {
  const name = (encoding ?? "").trim().toLowerCase();
  if (name === "" || name === "identity" || body.length === 0) return body;
  if (name !== "gzip" && name !== "x-gzip")
    return { reason: "malformed", detail: "the answer has an encoding that was not asked for" };
  const { gunzip } = await import("node:zlib");
  return new Promise((resolve) => {
    gunzip(body, { maxOutputLength: maxBytes }, (error, decoded) => {
      if (!error) resolve(decoded);
      else if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
        resolve({ reason: "too_large", detail: `the answer unfolds to more than ${sizeInWords(maxBytes)}` });
      else resolve({ reason: "malformed", detail: "the answer is no sound gzip" });
    });
  });
}
