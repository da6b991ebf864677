// What the documents show is what happens: the README's session is played again, word for word, and every command that any
// document tells a reader to type is one that the program knows.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCommandLine } from "../../src/edge/command-line.ts";
import { Home, root } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

const documents = [
  "README.md",
  "SECURITY.md",
  "docs/recovery.md",
  "docs/ci.md",
  "docs/sandbox.md",
  "docs/scripting.md",
  "docs/quick-start.md",
  "docs/contracts.md",
];
const read = (name: string): string => readFileSync(join(root, name), "utf8");

describe("the README's session", () => {
  let service: Service;
  let at: Home;

  beforeAll(async () => {
    service = await startService();
    at = new Home();
    const words = ["profiles", "add", "prod", "--region", "eu", "--base-url", service.eu.base_url, "--api-key-stdin"];
    expect((await at.integ(words, { input: `${service.eu.api_key}\n` })).code).toBe(0);
    // The connection of the first creation is lost before the service reads it.
    const body = JSON.stringify({ fault: "POST /v1/oauth_clients drop=before times=1" });
    await fetch(service.eu.control_url, { method: "POST", headers: { "content-type": "application/json" }, body });
  });
  afterAll(async () => {
    at.remove();
    await service.stop();
  });

  it("is what happens", async () => {
    const session = /```\n(\$ integ [\s\S]*?)```/.exec(read("README.md"))![1]!;
    const steps = session.split(/^\$ integ /m).slice(1);
    expect(steps.length).toBeGreaterThanOrEqual(2);
    const ids = new Map([["sa_1", service.eu.service_account_id]]);
    for (const step of steps) {
      const [line = "", ...told] = step.trimEnd().split("\n");
      const words = line.split(" ").map((word) => ids.get(word) ?? word);
      const { stdout, stderr } = await at.integ([...words, "--retry-for", "0"]);
      const said = `${stdout}${stderr}`;
      const entry = / integ journal recover (\w+)\n/;
      if (entry.test(said)) ids.set(entry.exec(told.join("\n"))![1]!, entry.exec(said)![1]!);
      expect(settled(said.replaceAll(at.folder, ".")), line).toBe(settled(told.join("\n")));
    }
    expect(existsSync(at.path("client.secret")) && statSync(at.path("client.secret")).mode & 0o777).toBe(0o600);
  });
});

/** What differs from run to run becomes a word; columns are as wide as that. */
function settled(text: string): string {
  return text
    .trimEnd()
    .replace(/\b1r[0-9a-z]{8}\b/g, "ENTRY")
    .replace(/\boac_eu_[0-9a-f]+/g, "CLIENT")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/ +/g, " ");
}

/** The commands in the blocks of code of a document, without their comments, pipes and redirections. */
function commandsOf(name: string): string[][] {
  const blocks = [...read(name).matchAll(/^```[a-z]*\n([\s\S]*?)^```/gm)].map((match) => match[1]!);
  const lines = blocks.flatMap((block) => block.replaceAll("\\\n", " ").split("\n"));
  return lines.flatMap((line) => {
    const found = /(?:^|[\s$(;|])(?:node bin\/integ\.js|integ) (?!:)(.*)$/.exec(line.replace(/^Error: .*/, ""));
    // A line of a crontab names a person there, and xargs adds the last word by itself.
    if (!found || line.endsWith("…") || /^[\d*]+ [\d*]+ \* /.test(line)) return [];
    return [[...wordsOf(found[1]!), ...(line.includes("xargs ") ? ["oac_1"] : [])]];
  });
}

/** The words of a simple command, as a shell reads them; it ends at a pipe, a redirection or a comment. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [token] of line.matchAll(/'[^']*'|"[^"]*"|[^\s'"|>&;)]+|[|>&;)]/g)) {
    if (/^(#.*|[|>&;)]|<|\d)$/.test(token)) break;
    words.push(token.replace(/^(['"])(.*)\1$/s, "$2"));
  }
  return words;
}

describe.each(documents)("%s", (name) => {
  const commands = commandsOf(name);

  it("shows commands", () => expect(commands.length).toBeGreaterThan(1));

  it.each(commands.map((words) => [words.join(" "), words] as const))("integ %s", async (_line, words) => {
    const typed = await readCommandLine(words, { width: 80, version: "0.0.0" });
    expect("help" in typed && typed.toStderr).toBe(false);
  });
});
