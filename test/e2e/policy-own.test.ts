// A policy can have an item for the credential with which `apply` acts.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
interface Row {
  readonly name: string;
  readonly action: string;
  readonly result: string;
}

const places = ["{ file: own.secret }", "{ profile: prod }"];

it.each(places)("the profile's own OAuth client at %s is rotated only with --include-own", async (place) => {
  const { us } = service;
  const account = new Account(service);
  await account.clear();
  const home = homeOfTest();
  const integ = (words: readonly string[], input = ""): Promise<Ended> => integHere(home, words, { input });
  const rows = ({ stdout }: Ended): Row[] => (JSON.parse(stdout) as { data: Row[] }).data;
  // Each later policy gives the client fewer scopes, because a client can grant only scopes that it has.
  const scopes = ["service_account:manage", "organization:read", "entity:read"];
  const policy = (own: readonly string[]): void =>
    writeFileSync(
      home.path("integ.yaml"),
      [
        "version: 1",
        "id: pol_of_this_test",
        "profile: prod",
        "unmanaged: ignore",
        "oauth_clients:",
        ...["own", "other"].flatMap((name) => [
          `  ${name}:`,
          `    service_account: ${us.service_account_id}`,
          `    scopes: [${(name === "own" ? own : ["organization:read"]).join(", ")}]`,
          "    rotate: { every: 60d, overlap: 0s }",
          `    secret: ${name === "own" ? place : "{ file: other.secret }"}`,
        ]),
        "",
      ].join("\n"),
    );
  const own = await account.make(scopes);
  const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
  const client = ["--client-id", own.client_id, "--client-secret-stdin", "--token-endpoint", us.token_endpoint];
  const added = await integ(["profiles", "add", "prod", ...address, ...client], own.client_secret);
  expect(added.code, added.stderr).toBe(0);
  policy(scopes.slice(0, 2));
  const adopted = await integ(["adopt", "oauth-client", own.id, "--name", "own", "-p", "prod"]);
  expect(adopted.code, adopted.stderr).toBe(0);

  const apply = ["apply", "--yes", "--json"];
  const left = await integ(apply);
  expect(left.code, left.stderr).toBe(10);
  expect(rows(left)).toMatchObject([
    { name: "own", action: "change_scopes", result: "left" },
    { name: "other", result: "done" },
  ]);
  expect((await account.live()).some(({ id }) => id === own.id)).toBe(true);

  const rotated = await integ([...apply, "--include-own"]);
  expect(rotated.code, rotated.stderr).toBe(0);
  expect(rows(rotated)).toMatchObject([
    { name: "own", result: "done" },
    { name: "other", result: "none" },
  ]);
  const live = await account.live();
  expect(live.some(({ id }) => id === own.id)).toBe(false);
  expect(live).toHaveLength(2);
  const [now] = live.filter(({ scopes: granted }) => granted.length === 2);
  if (place === places[0])
    expect(await account.opens(now!.client_id!, readFileSync(home.path("own.secret"), "utf8"))).toBe(true);
  expect((await integ(["plan"])).code).toBe(0);
  expect((await integ(["oauth-clients", "get", now!.id, "-p", "prod"])).code).toBe(0);
  policy(scopes.slice(0, 1));
  const again = await integ([...apply, "--include-own", "--only", "own"]);
  expect(again.code, again.stderr).toBe(0);
  expect(await account.live()).toHaveLength(2);
});

it("a typed rotation of the profile's own client gives the profile the new secret, or needs --yes", async () => {
  const { us } = service;
  const home = homeOfTest();
  const integ = (words: readonly string[], input = ""): Promise<Ended> => integHere(home, words, { input });
  const own = await new Account(service).make(["service_account:manage", "entity:read"]);
  const address = ["--region", "us", "--base-url", us.base_url, "--token-endpoint", us.token_endpoint];
  const client = ["--client-id", own.client_id, "--client-secret-stdin"];
  expect((await integ(["profiles", "add", "prod", ...address, ...client], own.client_secret)).code).toBe(0);
  const rotate = ["oauth-clients", "rotate", own.id, "--secret-file", "z", "--json"];
  const refused = await integ(rotate);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("would lock profile prod out")]);
  expect(refused.stderr).toContain(`integ ${rotate.join(" ")} --secret-profile prod`);
  const rotated = await integ([...rotate, "--secret-profile", "prod", "--yes"]);
  expect(rotated.code, rotated.stderr).toBe(0);
  expect((await integ(["entities", "list", "--limit", "1"])).code).toBe(0);
});
