// Scripts rely on every variable and every exit code, so all of them are documented.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { environment, exitCodeList, surfaceOf } from "../../../src/commands/commands/list.ts";
import { surfaceDocument } from "../../../src/completion/surface.ts";
import { exitCodes } from "../../../src/errors.ts";
import { wholeTree } from "../../../src/program.ts";
import { root } from "../../support/program.ts";

/** Variables of the platform, the terminal, Node and libpq that src/ reads. The list need not document them. */
const undocumented = new Set([
  "APPDATA",
  "LOCALAPPDATA",
  "HOME",
  "PATH",
  "USER",
  "LOGNAME",
  "COLORTERM",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "NODE_COMPILE_CACHE",
  "NODE_V8_COVERAGE",
  // Variables of libpq, which integ refuses.
  "PGOPTIONS",
  "PGSERVICE",
]);

function variablesRead(): string[] {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const text = files
    .filter((file) => !file.endsWith(join("commands", "list.ts")))
    .map((file) => readFileSync(join(root, "src", file), "utf8"))
    .join("\n");
  const found = [...text.matchAll(/\benv\.([A-Za-z_]\w+)|"(INTEG_[A-Z_]*[A-Z])"/g)].map(
    (match) => match[1] ?? match[2]!,
  );
  return [...new Set(found)].filter((name) => /^[A-Z]\w*_?[A-Z]*$|_proxy$/.test(name)).sort();
}

describe("the list of variables", () => {
  it("is complete", () => {
    const documented = new Set(environment.map(({ name }) => name));
    expect(variablesRead().length).toBeGreaterThan(15);
    expect(variablesRead().filter((name) => !documented.has(name) && !undocumented.has(name))).toEqual([]);
  });

  it("has every variable that the design promises", () => {
    const promised =
      "INTEG_PROFILE INTEG_OUTPUT INTEG_SERVICE_VERSION INTEG_TIMEOUT INTEG_RETRY_FOR INTEG_NO_INPUT INTEG_DEBUG NO_COLOR FORCE_COLOR INTEG_REGION INTEG_BASE_URL INTEG_API_KEY INTEG_CLIENT_ID INTEG_CLIENT_SECRET INTEG_TOKEN_ENDPOINT INTEG_AUDIENCE INTEG_ORGANIZATION_ID INTEG_ACCESS_TOKEN INTEG_CONFIG_DIR INTEG_STATE_DIR INTEG_JOURNAL HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS CI";
    expect(environment.map(({ name }) => name)).toEqual(expect.arrayContaining(promised.split(" ")));
  });

  it("names only existing flags", async () => {
    const { tree } = await surfaceOf(wholeTree);
    const flags = tree.globals.map(({ long }) => long);
    expect(flags).toEqual(expect.arrayContaining(environment.flatMap(({ flag }) => flag ?? [])));
  });
});

describe("the list of exit codes", () => {
  it("has those of errors.ts and success", () => {
    expect(exitCodeList.map(({ code }) => code)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 130, 143]);
    expect(Object.fromEntries(exitCodeList.slice(1).map(({ kind, code }) => [kind, code]))).toEqual(exitCodes);
  });
});

describe("the document for programs", () => {
  it("has commands, flags, arguments, variables and exit codes", async () => {
    const document = surfaceDocument(await surfaceOf(wholeTree), "1.2.3") as Record<string, never>;
    expect(document).toMatchObject({ object: "program", name: "integ", version: "1.2.3" });
    const find = (
      commands: { name: string; commands: never[] }[],
      name: string,
    ): Record<string, unknown> & { commands: never[] } => commands.find((command) => command.name === name)!;
    const create = find(find(document.commands!, "oauth-clients").commands, "create");
    expect(create).toMatchObject({
      object: "command",
      command: "integ oauth-clients create",
      usage: "integ oauth-clients create [options]",
    });
    expect(create.flags).toContainEqual({
      name: "--secret-format",
      short: null,
      summary: expect.any(String),
      required: false,
      default: null,
      value: {
        name: "format",
        required: true,
        repeatable: false,
        choices: ["raw", "line", "json", "json-string", "env"],
        known: null,
        file: false,
      },
    });
    expect(create.flags).toContainEqual(expect.objectContaining({ name: "--wait", default: "1m" }));
    expect(find(find(document.commands!, "journal").commands, "show").arguments).toMatchObject([
      { name: "id", required: true },
    ]);
    expect(document.environment).toContainEqual({
      name: "INTEG_PROFILE",
      meaning: "Profile to act as",
      flag: "--profile",
    });
    expect(document.exit_codes).toContainEqual({ code: 7, kind: "outcome_unknown", when: expect.any(String) });
    expect(JSON.stringify(document)).not.toContain("__complete");
  });
});
