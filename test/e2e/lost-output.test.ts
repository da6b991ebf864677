// integ reports the outcome of a change even if standard output fails: its reader has exited, or its disk is full.
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Ended, Home } from "../support/program.ts";
import { deskOfTests, type KeysDesk, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

const full = ["sh", "-c", 'exec "$@" >/dev/full', "sh"];
/** Starts the program after the reader of its output has exited. */
const exitedReader = [
  "bash",
  "-c",
  '{ trap "" PIPE; while echo 2>/dev/null; do sleep 0.01; done; "$@"; echo "code $?" >&2; } | true',
  "sh",
];
const hasFull = existsSync("/dev/full");
if (!hasFull) console.warn("skipped: a full disk under standard output: there is no /dev/full");

function create(at: Home, under: string[], ...more: string[]): Promise<Ended> {
  const words = ["oauth-clients", "create", "--service-account", desk.service.us.service_account_id];
  return at.integ([...words, "--scope", "entity:read", ...more], { under });
}

describe("standard output that fails", () => {
  it.each([
    ["a reader that has exited", exitedReader],
    ["a full disk", full],
  ])("%s does not turn an unknown outcome into success", async (_what, under) => {
    if (under === full && !hasFull) return;
    const { at } = await desk.withProfile();
    await desk.service.fault("POST /v1/oauth_clients drop=after");
    await create(at, [], "--secret-file", "s", "--retry-for", "0");
    const { code, stderr } = await at.integ(["journal", "recover", "--retry-for", "0"], { under });
    expect(under === exitedReader ? stderr : `code ${code}`).toContain("code 7");
    expect(stderr).toContain("Next: integ journal recover");
  });

  it.runIf(hasFull)("a full disk: the completed change is reported", async () => {
    const { at } = await desk.withProfile();
    const { code, stderr } = await create(at, full, "--secret-file", "s");
    expect(code).toBe(1);
    expect(stderr).toContain("The change is done, but its receipt could not be shown.");
    expect(stderr).not.toContain("run the command again");
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it.each([
    ["a reader that has exited", exitedReader, 0],
    ["a full disk", full, 1],
  ])("%s does not stop a key's replacement halfway", async (_what, under, exit) => {
    if (under === full && !hasFull) return;
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name: "unread" });
    const words = ["keys", "rotate", old.id, "--by-replacement", "--secret-file", "new.secret"];
    const { code, stderr } = await at.integ(words, { under });
    expect(under === exitedReader ? stderr : `code ${code}`).toContain(`code ${exit}`);
    expect(await unfinishedEntries(at)).toEqual([]);
    expect((await desk.key(old.id)).status).toBe("revoked");
  });
});

describe("standard error that cannot take a mask, on GitHub Actions", () => {
  it.each([
    ["closed", 'exec "$@" 2>&-'],
    ["the null device", 'exec "$@" 2>/dev/null'],
    ["a full device", 'exec "$@" 2>/dev/full'],
  ])("%s: no secret is requested that would appear in the log", async (_what, line) => {
    if (line.includes("/dev/full") && !hasFull) return;
    const { at } = await desk.withProfile();
    at.env.GITHUB_ACTIONS = "true";
    const before = await desk.sent("POST", /oauth_clients/);
    const under = ["sh", "-c", line, "sh"];
    const refused = await create(at, under);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(await desk.sent("POST", /oauth_clients/)).toBe(before);
    // A secret with another destination needs no mask.
    expect((await create(at, under, "--secret-file", "s")).code).toBe(0);
  });
});
