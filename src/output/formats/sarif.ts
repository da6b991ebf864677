// SARIF 2.1.0 for code scanning.
import { createHash } from "node:crypto";
import { JsonText } from "../../api/json/json-text.ts";
import type { Formatter } from "./format.ts";

const levels: Readonly<Record<string, string>> = { high: "error", medium: "warning", low: "note" };

const rules: Readonly<Record<string, readonly [finds: string, help: string]>> = {
  expired_active: ["An access key has expired, and the service still shows it as active.", "Revoke it."],
  expiring: ["An access key expires soon.", "Replace it before it expires, with an overlap."],
  no_expiry: ["An access key never expires.", "Replace it with one that expires."],
  never_used: ["An access key was never used.", "Revoke it if no one needs it."],
  idle: ["An access key was not used for a long time.", "Revoke it if no one needs it."],
  too_old: ["A credential is older than allowed.", "Rotate it."],
  full_access: ["An access key may do everything.", "Replace it with one that has only the scopes that it needs."],
  user_bound: ["An access key stops working when a person's account does.", "Replace it with a service account's key."],
  unusable: ["An OAuth client is disabled or expired, and holds a slot of its service account.", "Revoke it."],
  undeclared: ["An OAuth client is in no policy.", "Adopt it, or revoke it if no one needs it."],
  slots: ["A service account has few or no free slots for clients.", "Revoke clients that no one needs."],
};

export const sarif: Formatter = {
  resource: (text, { target }) => documentOf([JsonText.of(text)], target.version),
  list(_view, { sink, version }) {
    const rows: JsonText[] = [];
    return {
      async page(page) {
        rows.push(...page.map((row) => JsonText.of(row.text)));
      },
      end: async () => sink.write(documentOf(rows, version)),
    };
  },
};

function documentOf(rows: readonly JsonText[], version: string): string {
  const results = rows.map(resultOf);
  const found = [...new Set(results.map(({ ruleId }) => ruleId))].map((id) => {
    const name = `Credential audit: ${id.replaceAll("_", " ")}`;
    const [finds, help] = rules[id] ?? [name, "See the message of the finding."];
    return { id, shortDescription: { text: name }, fullDescription: { text: finds }, help: { text: help } };
  });
  const run = { tool: { driver: { name: "integ", version, rules: found } }, results };
  const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
  return `${JSON.stringify({ $schema: schema, version: "2.1.0", runs: [run] })}\n`;
}

function resultOf(row: JsonText) {
  const parts = row.parts();
  const text = (key: string): string | undefined => {
    const value = parts.get(key);
    return value?.isString ? value.string : undefined;
  };
  const { ruleId, about, id } = {
    ruleId: text("rule") ?? "finding",
    about: text("key_id") ?? text("client_id") ?? text("service_account_id") ?? "unknown",
    id: text("id") ?? "",
  };
  const remedy = text("remedy");
  return {
    ruleId,
    level: levels[text("severity") ?? ""] ?? "warning",
    message: { text: [text("message"), remedy].filter(Boolean).join(". Next: ") },
    locations: [
      {
        // Code scanning requires a file.
        physicalLocation: {
          artifactLocation: { uri: `credentials/${encodeURIComponent(about)}` },
          region: { startLine: 1 },
        },
        logicalLocations: [{ name: about, kind: "resource" }],
      },
    ],
    // Without this digest, code scanning computes a digest from the file, which does not exist.
    partialFingerprints: { "findingId/v1": id, primaryLocationLineHash: digestOf(ruleId, id) },
  };
}

/** The format of code scanning's own digests. */
function digestOf(...words: readonly string[]): string {
  return `${createHash("sha256").update(words.join("\0")).digest("hex").slice(0, 16)}:1`;
}
