// Runs each step with this program in a new process, against the tour's own sandbox, which fails on demand.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { RunningSandbox } from "../../sandbox/sandbox.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [{ line: "integ sandbox tour", does: "takes less than a minute and leaves nothing on this machine" }],
  async run(context) {
    const { startSandbox } = await import("../../sandbox/sandbox.ts");
    const folder = mkdtempSync(join(tmpdir(), "integ-tour-"));
    const sandbox = await startSandbox({ stateDir: join(folder, "sandbox") });
    try {
      await tour(new Guide(context, sandbox, folder));
    } catch (error) {
      if (!(error instanceof TourCanceled)) throw error;
    } finally {
      await sandbox.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

class TourCanceled extends Error {}

async function tour(guide: Guide): Promise<void> {
  const { us } = guide.sandbox.describe();
  await guide.say("integ: create, recover, rotate and audit in a few screens", [
    "A sandbox of the whole API runs on this machine during this tour.",
    "The tour runs every command below, with INTEG_BASE_URL and INTEG_API_KEY",
    "set to that sandbox. integ sandbox start prints what to export, if you want",
    "to run them yourself.",
  ]);
  await guide.step("List entities. In a pipe, no column is shortened; for jq, add --json.");
  await guide.run(["entities", "list", "--limit", "5"]);
  await guide.step("Create an OAuth client. Its secret goes to a file that only you can read.");
  const create = ["oauth-clients", "create", "--service-account", us.service_account_id, "--scope", "entity:read"];
  await guide.run([...create, "--secret-file", "client.secret"]);
  await guide.step("Create another client. The server creates it, but the connection is lost.", [
    "(a fault of the sandbox: POST /v1/oauth_clients drop=after times=1)",
  ]);
  await guide.fault("POST /v1/oauth_clients drop=after times=1");
  const scopes = [...create, "--scope", "organization:read"];
  await guide.run([...scopes, "--secret-file", "second.secret", "--retry-for", "0"], 7);
  await guide.step("Nothing is lost: the request was on disk before anything was sent.");
  await guide.run(["journal", "list"]);
  await guide.step("Send the same request again: the client exists, its secret is lost.");
  await guide.run(["journal", "recover"], 9);
  await guide.step("Fix it: revoke that client, confirm that it is revoked, create another.");
  await guide.run(["journal", "recover", "--replace-lost-secret"]);
  await guide.step("The secret is in the file that was named first, and nothing is left to do.");
  await guide.show("second.secret");
  await guide.run(["journal", "list", "--all"]);
  await guide.step("Does the new secret work? Exchange it for an access token.");
  const clientId = await guide.newestClientId();
  const exchange = ["oauth-clients", "token", "--client-id", clientId, "--client-secret-stdin"];
  await guide.run([...exchange, "--fields", "token_type,expires_in,scope"], 0, "second.secret");
  await guide.step("Rotate an access key: the old secret stops working, the new goes to a file.");
  // Rotating the tour's own key would lock the tour out.
  await guide.run(["keys", "rotate", "ak_us_ending", "--secret-file", "key.secret", "--yes"]);
  await guide.step("Which keys are a risk? Exit code 10 means that the audit found risks.", [
    "(without --fields, the audit also shows each finding and what to do)",
  ]);
  await guide.run(["keys", "audit", "--fields", "severity,rule,key_id,key_name"], 10);
  await guide.say("The end: no change was lost or made twice.", [
    "Continue without any set-up:",
    "  integ entities list --profile sandbox",
    "  integ sandbox status",
    "Then with your own account:",
    "  integ profiles add prod --region eu --base-url https://…",
  ]);
}

class Guide {
  readonly sandbox: RunningSandbox;
  readonly #context: Context;
  readonly #folder: string;
  #step = 0;

  constructor(context: Context, sandbox: RunningSandbox, folder: string) {
    this.#context = context;
    this.sandbox = sandbox;
    this.#folder = folder;
  }

  async say(title: string, lines: readonly string[]): Promise<void> {
    await this.#context.output.text(`\n${title}\n${lines.map((line) => `${line}\n`).join("")}`);
  }

  async step(text: string, lines: readonly string[] = []): Promise<void> {
    const { output } = this.#context;
    if (this.#step > 0 && output.interactive && output.isScreen)
      if (!(await output.confirm("Next step?"))) throw new TourCanceled();
    this.#step += 1;
    await this.say(`${this.#step}. ${text}`, lines);
  }

  /** @param expected exit code. @param input a file of the tour for standard input */
  async run(words: readonly string[], expected = 0, input?: string): Promise<void> {
    const from = input === undefined ? "" : ` < ${input}`;
    await this.#context.output.text(`\n${commandLine(words, from)}\n`);
    // A command knows the terminal's width only if it writes to the terminal itself.
    const { code, text } = await this.#spawn(words, { input, isShown: this.#context.output.isScreen });
    await this.#context.output.text(text);
    if (expected !== 0) await this.#context.output.text(`(exit code ${code})\n`);
    if (code !== expected)
      throw new Failure("failed", `This step of the tour ended with exit code ${code}, not ${expected}.`, {
        meaning: "The tour runs real commands, so this is a bug in integ.",
      });
  }

  async show(name: string): Promise<void> {
    const secret = readFileSync(join(this.#folder, name), "utf8").trim();
    await this.#context.output.text(
      `\n$ cat ${name}\n${secret.slice(0, 4)}… (${secret.length} characters, not shown here)\n`,
    );
  }

  async fault(spec: string): Promise<void> {
    const { us } = this.sandbox.describe();
    await fetch(us.control_url!, { method: "POST", body: JSON.stringify({ fault: spec }) });
  }

  async newestClientId(): Promise<string> {
    const { text } = await this.#spawn(["oauth-clients", "list", "--offline", "--quiet", "--json"]);
    const { data } = JSON.parse(text) as { data: { client_id: string; status: string }[] };
    return data.find((client) => client.status === "active")?.client_id ?? "";
  }

  async #spawn(
    words: readonly string[],
    { input, isShown = false }: { readonly input?: string | undefined; readonly isShown?: boolean } = {},
  ): Promise<{ code: number; text: string }> {
    const { spawn } = await import("node:child_process");
    const { us } = this.sandbox.describe();
    const [program = "", ...first] = this.#context.settings.self;
    const child = spawn(program, [...first, ...words], {
      cwd: this.#folder,
      stdio: isShown ? ["pipe", "inherit", "inherit"] : ["pipe", "pipe", "pipe"],
      env: {
        ...this.#context.settings.childEnvironment,
        INTEG_AGENT: "0", // The tour shows output for a person.
        INTEG_CONFIG_DIR: join(this.#folder, "config"),
        INTEG_STATE_DIR: join(this.#folder, "state"),
        INTEG_REGION: "us",
        INTEG_BASE_URL: us.base_url!,
        INTEG_ORGANIZATION_ID: us.organization_id,
        INTEG_API_KEY: us.api_key,
        INTEG_TOKEN_ENDPOINT: us.token_endpoint!,
        INTEG_ACCESS_TOKEN: us.access_token,
      },
    });
    child.stdin!.on("error", () => {});
    child.stdin!.end(input === undefined ? "" : readFileSync(join(this.#folder, input)));
    // The text contains both streams in order of arrival, as at a terminal.
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    const code = await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve(status ?? 1));
    });
    return { code, text };
  }
}

function commandLine(words: readonly string[], from: string): string {
  const parts = `${words.map(quoted).join(" ")}${from}`.split(/ (?=--|< )/);
  const lines = ["$ integ"];
  for (const part of parts) {
    const last = lines.at(-1) ?? "";
    if (last.length + part.length < 76) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(`    ${part}`);
  }
  return lines.join(" \\\n");
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
