// Findings as SARIF 2.1.0 for code scanning: id, rule, severity, message, remedy.
import { JsonText } from "../../api/json/json-text.ts";
import type { Formatter } from "./format.ts";

const levels: Readonly<Record<string, string>> = { high: "error", medium: "warning", low: "note" };

export const sarif: Formatter = {
  resource: (text) => documentOf([JsonText.of(text)]),
  list(_view, { sink }) {
    const rows: JsonText[] = [];
    return {
      async page(page) {
        rows.push(...page.map((row) => JsonText.of(row.text)));
      },
      end: async () => sink.write(documentOf(rows)),
    };
  },
};

function documentOf(rows: readonly JsonText[]): string {
  const results = rows.map(resultOf);
  const rules = [...new Set(results.map(({ ruleId }) => ruleId))].map((id) => ({
    id,
    shortDescription: { text: `Credential audit: ${id.replaceAll("_", " ")}` },
  }));
  const run = { tool: { driver: { name: "integ", rules } }, results };
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
        // Code scanning requires a file; a credential only has a name.
        physicalLocation: { artifactLocation: { uri: `credentials/${encodeURIComponent(about)}` } },
        logicalLocations: [{ name: about, kind: "resource" }],
      },
    ],
    partialFingerprints: { "findingId/v1": id },
  };
}
