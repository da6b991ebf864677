import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { pageOf } from "../../output/row-page.ts";
import { defineVerb } from "../verb.ts";
import { checks, type Diagnosis } from "./checks.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [
    { line: "integ doctor", does: "profile, address, TLS, clock, credential, permissions, contract, journal, files" },
    { line: "integ doctor -p prod -o json", does: "safe to paste into a ticket: no secret is in it" },
  ],
  neverAsks: true,
  async run(context) {
    const list = context.output.list({
      columns: [
        { path: "status", heading: "status", kind: "status" },
        { path: "check", heading: "check" },
        { path: "message", heading: "message" },
        { path: "next", heading: "what to do" },
      ],
      singular: "check",
      plural: "checks",
    });
    const rows: Diagnosis[] = [];
    for (const check of checks) rows.push(...toldOnce(await diagnosed(context, check), rows));
    const problems = rows.filter((row) => row.status === "problem").length;
    const shown = rows.map((row) => withoutHome(row, context.settings.home));
    await list.page(pageOf(shown.map((row) => JSON.stringify(row))));
    await list.end({ nextPageToken: null, hasMore: false });
    if (problems > 0)
      throw new Failure("findings", `${problems === 1 ? "1 problem was" : `${problems} problems were`} found.`);
  },
});

/** Whose home it is goes into no ticket: `~` stands for it, in paths that are quoted for a shell too. */
function withoutHome(row: Diagnosis, home: string): Diagnosis {
  if (home.length < 2) return row;
  const hidden = (text: string): string => text.replaceAll(`'${home}/`, "~/'").replaceAll(`${home}/`, "~/");
  return { ...row, message: hidden(row.message), next: row.next === null ? null : hidden(row.next) };
}

/** What stands in the way of several checks is one problem: the others were not made for it. */
function toldOnce(rows: readonly Diagnosis[], before: readonly Diagnosis[]): Diagnosis[] {
  return rows.map((row) => {
    const first = before.find(({ status, message }) => status === "problem" && message === row.message);
    if (first === undefined || row.status !== "problem") return row;
    return { check: row.check, status: "warning", message: `not checked: ${first.check} has a problem`, next: null };
  });
}

/** A check that fails is a problem of its own; the others go on. */
async function diagnosed(context: Context, check: (typeof checks)[number]): Promise<readonly Diagnosis[]> {
  try {
    return await check.run(context);
  } catch (error) {
    const system = systemWords(error);
    if (system !== undefined) return [{ check: check.name, status: "problem", message: system, next: null }];
    if (!(error instanceof Failure)) throw error;
    if (error.kind === "interrupted" || error.kind === "terminated") throw error;
    return [
      {
        check: check.name,
        status: "problem",
        message: error.message,
        next: error.details.hint ?? error.details.meaning ?? null,
      },
    ];
  }
}

/** What the operating system refused, such as a write to a full disk: what the doctor is asked about, not its end. */
function systemWords(error: unknown): string | undefined {
  return error instanceof Error && "syscall" in error
    ? `The operating system refused a call: ${error.message}`
    : undefined;
}
