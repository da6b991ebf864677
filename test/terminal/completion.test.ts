// Tab in the real shells: commands, aliases, flags wherever they stand, values, live names, files.
import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Home } from "../support/program.ts";
import { homeFor, missing, openShell, shellNames, type CompletingShell } from "./completing-shells.ts";

/** A line, and what Tab offers at its end. */
const cases: Readonly<Record<string, readonly string[]>> = {
  "integ ent": ["entities"],
  "integ entity": ["entity"],
  "integ profiles ": ["add", "edit", "list", "remove", "show", "use"],
  "integ profile u": ["use"],
  "integ help oauth-clients cr": ["create"],
  "integ completion ": ["bash", "fish", "powershell", "zsh"],
  "integ -o ": ["csv", "json", "ndjson", "table", "yaml"],
  "integ entities list -o n": ["ndjson"],
  "integ entities list --output=nd": ["ndjson"],
  "integ entities list --type ": ["person"],
  "integ -p sandbox ent": ["entities"],
  "integ entities -p sandbox --json li": ["list"],
  "integ entities list --ser": ["--service-version"],
  "integ entities list --quiet --qui": [],
  "integ oauth-clients create --secret-f": ["--secret-file", "--secret-format"],
  "integ oauth-clients create --secret-format ": ["env", "json", "raw"],
  "integ oauth-clients create --scope ": ["entity:read", "organization:read", "service_account:manage"],
  "integ oauth-clients create --scope entity:read serv": ["service_account:manage"],
  "integ oauth-clients create --scope entity:r": ["entity:read"],
  "integ oauth-clients create --scope=entity:read --sco": ["--scope"],
  "integ oauth-clients create --scope entity:read --serv": ["--service-account", "--service-version"],
  "integ oauth-clients create --secret-command 'vault kv put' --idem": ["--idempotency-key"],
  "integ oauth-clients create --service-account ": [],
  "integ profiles add prod --region ": ["eu", "us"],
  "integ profiles add prod --basic-style ": ["apikey-user", "key-as-user"],
  "integ profiles show ": ["prod", "sandbox", "sandbox-eu"],
  "integ profiles use sand": ["sandbox", "sandbox-eu"],
  "integ -p ": ["prod", "sandbox", "sandbox-eu"],
  "integ journal list -p p": ["prod"],
  "integ entities list --profile=pr": ["prod"],
  "integ journal prune ": ["--older-than"],
  "integ journal show -- ": [],
};

describe.each(shellNames)("Tab in %s", (name) => {
  const absent = missing(name);
  if (absent) console.warn(`skipped: completion in ${name}: ${absent}`);
  let home: Home;
  let shell: CompletingShell;

  beforeAll(async () => {
    if (absent) return;
    const made = await homeFor(name);
    home = made.home;
    const add = [
      "profiles",
      "add",
      "prod",
      "--region",
      "us",
      "--base-url",
      "https://us.example.com",
      "--api-key-command",
      "echo k",
    ];
    expect(await home.integ(add)).toMatchObject({ code: 0 });
    mkdirSync(home.path("work", "some folder"));
    writeFileSync(home.path("work", "some.secret"), "");
    shell = await openShell(name, made);
  });
  afterAll(() => {
    shell?.close();
    home?.remove();
  });

  it.skipIf(absent).each(Object.entries(cases))("%s", async (line, expected) => {
    expect(await shell.offered(line)).toEqual([...expected]);
  });
});
