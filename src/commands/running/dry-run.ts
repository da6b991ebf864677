// Prints a row for each step of `--dry-run`.
import type { Context } from "../../context.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Intent } from "../../journal/journal.ts";
import type { Column } from "../../output/formats/format.ts";
import { describeDestination, placesOf } from "../../secrets/destination.ts";

/** Values in parentheses are known only in the run. */
export interface DryStep {
  readonly what: string;
  readonly method?: string;
  readonly url?: string;
  /** Without the profile's credential. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
}

export const placeholders = {
  key: "(a new random UUID)",
  mark: "-(a random mark)",
} as const;

const columns: readonly Column[] = [
  { path: "step", heading: "step" },
  // A column of the kind `id` is not shortened.
  { path: "what", heading: "what", kind: "id" },
  { path: "method", heading: "method" },
  { path: "url", heading: "url", kind: "id" },
  { path: "headers", heading: "headers", kind: "id" },
  { path: "body", heading: "body", kind: "id" },
];

export async function showSteps({ output }: Context, steps: readonly DryStep[]): Promise<void> {
  const list = output.list({ columns, singular: "step", plural: "steps", empty: "Nothing would be changed." });
  const rows = steps.map(({ what, method = null, url = null, headers = null, body = null }, index) => {
    return { step: index + 1, what, method, url, headers, body };
  });
  await list.whole(rows);
  output.note("Dry run: no change was sent, and nothing was written.");
}

export async function showRequest({ output }: Context, step: DryStep): Promise<void> {
  const { method, url, headers, body = "" } = step;
  output.note("Nothing was sent, and nothing was written to the journal.");
  await output.document({ method, url, headers, body: JSON.parse(body) });
}

type Request = Omit<Intent, "idempotent">;

/** @param headers in addition to the headers of the contract */
export function requestStep(
  what: string,
  { method = "POST", base_url, path = "", request_text, service_version, organization_id }: Request,
  { body = request_text, headers = {} }: { readonly body?: string; readonly headers?: DryStep["headers"] } = {},
): DryStep {
  const isLegacy = path.startsWith("/api/");
  const own: Record<string, string | null> = isLegacy
    ? { "x-organization-id": organization_id }
    : { "Service-Version": service_version };
  return {
    what,
    method,
    url: `${base_url}${path}`,
    headers: { ...own, ...headers },
    body: method === "DELETE" || body === "" ? undefined : body,
  };
}

export function deliverySteps(record: Entry["destination"]): DryStep[] {
  return placesOf(record).map((place) => ({ what: `deliver the secret to ${describeDestination(place).name}` }));
}
