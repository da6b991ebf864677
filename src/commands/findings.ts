// Owns: printing what a check found; for a person, nothing at all where it found nothing.
import type { Context } from "../context.ts";
import type { Column } from "../output/list.ts";
import { pageOf } from "../output/row-page.ts";

export async function printFindings(
  context: Context,
  findings: readonly object[],
  columns: readonly Column[],
): Promise<void> {
  if (findings.length === 0 && context.output.format === "table") return;
  const list = context.output.list({ columns, singular: "finding", plural: "findings" });
  await list.page(pageOf(findings.map((finding) => JSON.stringify(finding))));
  await list.end({ nextPageToken: null, hasMore: false });
}
