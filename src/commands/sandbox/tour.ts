// `integ sandbox tour`: the main job in a few screens. Nothing is faked: every step is this very program,
// started as a person would start it, against a server of its own that breaks where the step says so.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { RunningSandbox } from "../../sandbox/sandbox.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [{ line: "integ sandbox tour", does: "about ten seconds; nothing of it stays on this machine" }],
  async run(context) {
    const { startSandbox } = await import("../../sandbox/sandbox.ts");
    const folder = mkdtempSync(join(tmpdir(), "integ-tour-"));
    const sandbox = await startSandbox({ stateDir: join(folder, "sandbox") });
    try {
      await tour(new Guide(context, sandbox, folder));
    } finally {
      await sandbox.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

async function tour(guide: Guide): Promise<void> {
  const { us } = guide.sandbox.describe();
  await guide.say("integ: the main job in a few screens", [
    "A sandbox of the whole API runs on this machine during this tour.",
    "The tour runs every command below, with INTEG_BASE_URL and INTEG_API_KEY set to that sandbox. To run them yourself,",
    "integ sandbox start --fault 'POST /v1/oauth_clients drop=after times=1' prints what to export.",
  ]);
  await guide.step("List entities. On a pipe you would get whole rows, ready for jq.");
  await guide.run(["entities", "list", "--limit", "5"]);
  await guide.step("Create an OAuth client. Its secret exists once: it goes to a file that only you can read.");
  const create = ["oauth-clients", "create", "--service-account", us.service_account_id, "--scope", "entity:read"];
  await guide.run([...create, "--secret-file", "client.secret"]);
  await guide.step("Create another one, and lose the connection after the server has created it.", [
    "(fault in the server: POST /v1/oauth_clients drop=after times=1)",
  ]);
  await guide.fault("POST /v1/oauth_clients drop=after times=1");
  const scopes = [...create, "--scope", "organization:read"];
  await guide.run([...scopes, "--secret-file", "second.secret", "--retry-for", "0"], 7);
  await guide.step("Nothing is lost: the key and the exact request were on disk before the first byte was sent.");
  await guide.run(["journal", "list"]);
  await guide.step(
    "Recover the receipt with the same key. The client exists; its secret was lost with the connection.",
  );
  await guide.run(["journal", "recover"], 9);
  await guide.step("To fix it: revoke that client, confirm that it is revoked, create another.");
  await guide.run(["journal", "recover", "--replace-lost-secret"]);
  await guide.step("The secret is in the file of the first command, and nothing is left to do.");
  await guide.show("second.secret");
  await guide.run(["journal", "list", "--all"]);
  await guide.step("Does the new secret work? One exchange at the token endpoint shows it.");
  const clientId = await guide.newestClientId();
  await guide.run(["oauth-clients", "token", "--client-id", clientId, "--client-secret-stdin"], 0, "second.secret");
  await guide.step(
    "Rotate an API access key in place: its new secret goes to a file, the old one stops working immediately.",
  );
  // One of the sandbox's own keys; that of the tour itself would be locked out.
  await guide.run(["keys", "rotate", "ak_us_ending", "--secret-file", "key.secret", "--yes"]);
  await guide.step("Which keys are a risk? The audit ends with exit code 10 if it finds something.");
  await guide.run(["keys", "audit"], 10);
  await guide.say("That was the main job: nothing lost, nothing doubled.", [
    "Continue by yourself, without any set-up:",
    "  integ entities list --profile sandbox",
    "  integ sandbox status",
    "Then with your own account:",
    "  integ profiles add prod --region eu --base-url https://…",
  ]);
}

/** Runs steps in a folder of their own, shows the command that a person would type, and checks how it ended. */
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
    this.#step += 1;
    await this.say(`── ${this.#step} ── ${text}`, lines);
  }

  /** @param expected the exit code that this step is about; `input`: a file of the tour for standard input */
  async run(words: readonly string[], expected = 0, input?: string): Promise<void> {
    const from = input === undefined ? "" : ` < ${input}`;
    await this.#context.output.text(`\n$ integ ${words.map(quoted).join(" ")}${from}\n`);
    const { code, text } = await this.#spawn(words, input);
    await this.#context.output.text(text);
    if (expected !== 0) await this.#context.output.text(`(exit code ${code})\n`);
    if (code !== expected)
      throw new Failure("failed", `This step of the tour ended with exit code ${code}, not ${expected}.`, {
        meaning: "The tour runs real commands, so this is a bug in integ.",
      });
  }

  /** Shows a file that a step made, its secret masked. */
  async show(name: string): Promise<void> {
    const secret = readFileSync(join(this.#folder, name), "utf8").trim();
    await this.#context.output.text(
      `\n$ cat ${name}\n${secret.slice(0, 4)}${"•".repeat(12)} (masked here, ${secret.length} characters)\n`,
    );
  }

  async fault(spec: string): Promise<void> {
    const { request } = await import("node:http");
    const { us } = this.sandbox.describe();
    await new Promise<void>((resolve, reject) => {
      const sent = request(
        us.control_url!,
        { method: "POST", headers: { "content-type": "application/json" } },
        (answer) => {
          answer.resume();
          answer.on("end", () => resolve());
        },
      );
      sent.on("error", reject);
      sent.end(JSON.stringify({ fault: spec }));
    });
  }

  /** The id for the token exchange, asked of the program as a script would. */
  async newestClientId(): Promise<string> {
    const { text } = await this.#spawn(["oauth-clients", "list", "--offline", "--quiet", "--json"]);
    const { data } = JSON.parse(text) as { data: { client_id: string; status: string }[] };
    return data.find((client) => client.status === "active")?.client_id ?? "";
  }

  async #spawn(words: readonly string[], input?: string): Promise<{ code: number; text: string }> {
    const { spawn } = await import("node:child_process");
    const { us } = this.sandbox.describe();
    const [program = "", ...first] = this.#context.settings.self;
    const child = spawn(program, [...first, ...words], {
      cwd: this.#folder,
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...this.#context.settings.childEnvironment,
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
    child.stdin.on("error", () => {});
    child.stdin.end(input === undefined ? "" : readFileSync(join(this.#folder, input)));
    // Both streams in the order of their arrival, as a terminal would show them.
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    const code = await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve(status ?? 1));
    });
    return { code, text };
  }
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
