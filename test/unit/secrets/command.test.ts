// A check after a command must print the raw secret, in whatever format the command received it.
import { describe, expect, it } from "vitest";
import { commandDestination } from "../../../src/secrets/command.ts";
import type { Found, SecretFormat } from "../../../src/secrets/destination.ts";
import { renderSecret } from "../../../src/secrets/secret-format.ts";
import { canary, client, delivery, key } from "./a-secret.ts";
import { known } from "../../support/known-places.ts";
import { endOf } from "./a-store.ts";

const formats: readonly SecretFormat[] = ["raw", "json", "env:TOKEN=secret"];

/** @param printed the check's output, as an argument of `printf '%b'` */
function checked(as: SecretFormat, printed: string, secret = client): Promise<string> {
  const command = "cat > /dev/null";
  const check = { command: `printf '%b' "$PRINTED"`, by: "output" } as const;
  const tools = {
    env: { PATH: process.env.PATH, PRINTED: printed, INTEG_COMMAND_ENV: "PRINTED" },
    ...known,
    onStderr: () => {},
  };
  return endOf(() => commandDestination({ command, as, check }, tools).deliver(secret, delivery));
}

const refused = /^undelivered: .*something other than the secret/;

describe.each(formats)("a check of %s", (as) => {
  it.each([
    ["the secret", canary],
    ["the secret and a newline", `${canary}\n`],
  ])("passes with %s", async (_what, printed) => {
    expect(await checked(as, printed)).toBe("delivered");
    expect(await checked(as, printed, key)).toBe("delivered");
  });

  it.each([
    ["nothing", ""],
    ["a newline", "\n"],
    ["two newlines after the secret", `${canary}\n\n`],
    ["a carriage return after the secret", `${canary}\r\n`],
    ["the beginning of the secret", canary.slice(0, -1)],
    ["the secret and more", `${canary}x`],
    ["the secret twice", `${canary}\n${canary}`],
    ["a space before the secret", ` ${canary}`],
    ["another text of the same length", "x".repeat(canary.length)],
  ])("fails with %s", async (_what, printed) => {
    expect(await checked(as, printed)).toMatch(refused);
  });

  it("fails with the delivered text, unless that is the secret", async () => {
    const text = renderSecret(client, as, delivery.origin);
    expect(await checked(as, text)).toMatch(as === "raw" || as === "line" ? /^delivered$/ : refused);
  });
});

it.each<[string, string, string | undefined, Found]>([
  ["no check", "cat", undefined, { is: "hidden", version: "unknown", differsBy: [] }],
  ["a check that fails", "cat", "echo text; false", { is: "hidden", version: "unknown", differsBy: [] }],
  ["a check that prints nothing", "cat", "true", { is: "absent" }],
  ["a check that prints a text", "cat", "echo text", { is: "text", text: "text\n" }],
  ["a command for each client or key", "cat >$INTEG_RESOURCE_ID", undefined, { is: "absent" }],
  [
    "a command for each service account and profile",
    "cat >$INTEG_SERVICE_ACCOUNT-$INTEG_PROFILE_NAME",
    undefined,
    { is: "hidden", version: "unknown", differsBy: ["serviceAccount", "profile"] },
  ],
])("before a command runs, it finds this with %s", async (_what, command, check, expected) => {
  const target = { command, ...(check === undefined ? {} : { check: { command: check, by: "output" } as const }) };
  const tools = { env: { PATH: process.env.PATH }, ...known, onStderr: () => {} };
  const looks: Found[] = [];
  await commandDestination(target, tools).prepare("work", { may: async (_at, found) => void looks.push(found) });
  expect(looks).toEqual([expected]);
});

describe("before anything is sent to the API", () => {
  const env = { PATH: process.env.PATH, HOME: "/no/such" };
  const end = (command: string, check?: string): Promise<string> => {
    const target = { command, ...(check === undefined ? {} : { check: { command: check, by: "exit" } as const }) };
    return endOf(() => commandDestination(target, { env, ...known, onStderr: () => {} }).check());
  };

  it("a missing helper that passes the secret to a command is reported", async () => {
    const target = { command: "/bin/true; exit 0" };
    const place = commandDestination(target, { env: { PATH: "/no/such" }, ...known, onStderr: () => {} });
    expect(await endOf(() => place.check())).toBe('usage: --secret-command: the program "cat" was not found.');
  });

  it.each([
    "no-such-tool a",
    "/no/such/tool",
    "./no-such",
    "~/no-such 2>&1",
    " no-such | cat",
    "no-such && cat",
    "nosuch.sh",
  ])("%s: its tool is missing", async (command) => {
    expect(await end(command)).toMatch(/^usage: --secret-command: the program "\S+" was not found\.$/);
    expect(await end("cat", command)).toMatch(/^usage: --secret-check-command: the program "\S+" was not found\.$/);
  });

  it.each([
    "cat > /dev/null",
    "exit 1",
    "/bin/cat",
    "[ -n a ] && cat",
    "{ no-such; }",
    "if true; then no-such; fi",
    "no-such || cat",
    "no-such; cat",
    "no-such & cat",
    "A=b no-such",
    "'no-such'",
    "$TOOL",
    "\\no-such",
    "# comment\nno-such",
    "! no-such",
  ])("%s: only the shell can decide when it runs", async (command) => {
    expect(await end(command)).toBe("delivered");
  });
});
