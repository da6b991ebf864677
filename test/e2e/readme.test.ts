import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCommandLine } from "../../src/edge/run.ts";
import { goldenScreens } from "../support/golden-screens.ts";
import { Home, root } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

/** Omits generated pages, and the pages of test/ and src/. */
const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n")
  .filter((name) => !/^(?:test|src)\/|^docs\/commands\.md$|contract-coverage/.test(name));
const read = (name: string): string => readFileSync(join(root, name), "utf8");

describe("errors in the documents", () => {
  const shown = documents.flatMap((name) =>
    [...read(name).matchAll(/^```[a-z]*\n([\s\S]*?)^```/gm)]
      .flatMap(([, block]) => block!.split("\n"))
      .filter((line) => /^(?:Error|integ): |^ {2}(?:Next|Fix): /.test(line))
      .map((line) => [name, line] as const),
  );

  it.each(shown)("%s shows the program's error: %s", (_name, line) => {
    const golden = normalized(goldenScreens()).replaceAll(/(recover|claim) \S+/g, "$1 ENTRY");
    expect(golden).toContain(normalized(line).replaceAll(/(recover|claim) \S+/g, "$1 ENTRY"));
  });
});

describe("the README's session", () => {
  let service: Service;
  let at: Home;

  beforeAll(async () => {
    service = await startService();
    at = new Home();
    const words = ["profiles", "add", "prod", "--region", "eu", "--base-url", service.eu.base_url, "--api-key-stdin"];
    expect((await at.integ(words, { input: `${service.eu.api_key}\n` })).code).toBe(0);
    const body = JSON.stringify({ fault: "POST /v1/oauth_clients drop=before times=1" });
    await fetch(service.eu.control_url, { method: "POST", headers: { "content-type": "application/json" }, body });
  });
  afterAll(async () => {
    at.remove();
    await service.stop();
  });

  it("runs exactly as shown", async () => {
    const session = /```\n(\$ integ [\s\S]*?)```/.exec(read("README.md"))![1]!;
    const steps = session.split(/^\$ integ /m).slice(1);
    expect(steps.length).toBeGreaterThanOrEqual(2);
    const ids = new Map([["sa_1", service.eu.service_account_id]]);
    for (const step of steps) {
      const [line = "", ...expected] = step.trimEnd().split("\n");
      const words = line.split(" ").map((word) => ids.get(word) ?? word);
      const { stdout, stderr } = await at.integ([...words, "--retry-for", "0"]);
      const printed = `${stdout}${stderr}`;
      const entry = / integ journal recover (\w+)\n/;
      if (entry.test(printed)) ids.set(entry.exec(expected.join("\n"))![1]!, entry.exec(printed)![1]!);
      expect(normalized(printed.replaceAll(at.folder, ".")), line).toBe(normalized(expected.join("\n")));
    }
    expect(existsSync(at.path("client.secret")) && statSync(at.path("client.secret")).mode & 0o777).toBe(0o600);
  });
});

function normalized(text: string): string {
  return text
    .trimEnd()
    .replace(/\b[1-9][0-9a-hjkmnp-tv-z]{9}\b/g, "ENTRY")
    .replace(/\boac_eu_[0-9a-f]+/g, "CLIENT")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/ +/g, " ");
}

function commandsOf(name: string): string[][] {
  const blocks = [...read(name).matchAll(/^[ \t]*```([a-z]*)\n([\s\S]*?)^[ \t]*```/gm)]
    .filter(([, language]) => language !== "sql")
    .map(([, , block]) => block!);
  const lines = blocks.flatMap((block) => block.replaceAll("\\\n", " ").split("\n"));
  return lines.flatMap((line) => {
    const match = /(?:^|[\s$(;|])(?:node bin\/integ\.js|integ) (?!:)(.*)$/.exec(
      line.replace(/^(?:Error:|hostssl) .*/, ""),
    );
    // Skips a line of a system crontab, which has a user before the command. xargs appends the last argument.
    if (!match || line.endsWith("…") || /^[\d*]+ [\d*]+ \* /.test(line)) return [];
    return [[...wordsOf(match[1]!), ...(line.includes("xargs ") ? ["oac_1"] : [])]];
  });
}

function commandsInProse(name: string): string[][] {
  const prose = read(name).replaceAll(/^[ \t]*```[\s\S]*?^[ \t]*```/gm, "");
  return [...prose.matchAll(/`integ ([^`]+)`/g)]
    .map(([, words]) => words!.replaceAll(/\s+/g, " "))
    .filter((words) => !/^<noun>|^__complete|…$/.test(words))
    .map((words) => words.replaceAll("<topic>", "output").replaceAll(/<([\w-]+)>/g, "$1"))
    .map(wordsOf);
}

/** Splits a simple command as a shell does, up to a pipe, a redirection or a comment. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [token] of line.matchAll(/'[^']*'|"[^"]*"|[^\s'"|>&;)]+|[|>&;)]/g)) {
    if (/^(#.*|[|>&;)]|<|\d)$/.test(token)) break;
    words.push(token.replace(/^(['"])(.*)\1$/s, "$2"));
  }
  return words;
}

const pages = documents.map((name) => ({ name, commands: [...commandsOf(name), ...commandsInProse(name)] }));

it("the documents have more than 150 commands", () => {
  const count = pages.reduce((sum, { commands }) => sum + commands.length, 0);
  console.log(`commands of the documents that are parsed: ${count} on ${documents.length} pages`);
  expect(count).toBeGreaterThan(150);
});

describe.each(pages.filter(({ commands }) => commands.length > 0))("$name", ({ commands }) => {
  it.each(commands.map((words) => [words.join(" "), words] as const))("integ %s", async (_line, words) => {
    // A sentence may name a command without its arguments.
    const isName = words.length <= 2 && words[0] !== "help" && words.every((word) => /^[a-z-]+$/.test(word));
    const typed = await readCommandLine(isName ? ["help", ...words] : words, { width: 80, version: "0.0.0" });
    expect("help" in typed && typed.toStderr).toBe(false);
  });
});
