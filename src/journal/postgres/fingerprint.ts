import { hash } from "node:crypto";
import { requestKey } from "../entry.ts";

/** The same for the same request, whatever account and organization it is for. */
export function fingerprintOf(entry: Parameters<typeof requestKey>[0]): string {
  return hash("sha256", requestKey(entry), "hex");
}
