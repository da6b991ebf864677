// Regression tests for fixed defects that no other test detects.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

const service = await serviceOfFile();
afterEach(() => service.calm());

function home(env: Readonly<Record<string, string>> = service.env): Home {
  return homeOfTest(env);
}

async function requests(): Promise<{ method: string; path: string; headers: Record<string, string> }[]> {
  return ((await service.control("GET")) as { requests: never[] }).requests;
}

function create(...more: string[]): string[] {
  return creationWords(service, ...more);
}

describe("an excessive Retry-After", () => {
  it("does not suggest a --retry-for that would be refused", async () => {
    await service.fault("GET /v1/entities status=429 retry-after=99999999 times=1");
    const { code, stderr } = await home().integ(["entities", "list", "--retry-for", "1s"]);
    expect(code).toBe(6);
    expect(stderr).not.toContain("--retry-for");
  });
});

describe("a contract version", () => {
  it("is omitted on request, so that the account's own applies", async () => {
    expect((await home().integ(["entities", "list", "--service-version", "none", "--limit", "1"])).code).toBe(0);
    expect((await requests())[0]!.headers).not.toHaveProperty("service-version");
  });
});

describe("a mistyped profile name", () => {
  it.each([["list"], ["recover"]])("is reported by journal %s, instead of an empty list", async (verb) => {
    const { code, stderr } = await home().integ(["journal", verb, "-p", "nobody"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("nobody")]);
  });
});

describe("a folder that cannot be created", () => {
  it.each([
    ["for the journal", true, "/proc/nope"],
    ["for the sandbox", false, "/proc/nope"],
    ["below a file, for the sandbox", false, "/dev/null/x"],
  ] as const)("%s: exit 2 without delay", async (_where, isService, folder) => {
    const at = home(isService ? service.env : {});
    const profile = isService ? [] : ["-p", "sandbox"];
    const { code, stderr } = await at.spawned([...create("--secret-file", "s"), ...profile], {
      env: { INTEG_STATE_DIR: folder },
      timeoutMs: 20_000,
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining(folder)]);
  });
});

describe("a deleted working folder", () => {
  it.each([["entities list"], ["journal list --all"], ["oauth-clients create --secret-file s"]])(
    "integ %s: exit 2 before anything is sent",
    async (line) => {
      const at = home(service.env);
      mkdirSync(at.path("gone"));
      // Only a process that is already in the removed folder can start a program there.
      const shell = ["/bin/sh", "-c", `cd '${at.path("gone")}' && rmdir '${at.path("gone")}' && exec "$@"`, "sh"];
      const { code, stderr } = await at.spawned(line.split(" "), { under: shell });
      expect(stderr).toContain("The working folder does not exist any more.");
      expect([code, await requests()]).toEqual([2, []]);
    },
  );
});

/** The command `act` must end with `code`, and `seen` must return the same text before and after the command. */
interface Unchanged {
  readonly code: number;
  readonly act: readonly string[];
  readonly seen: () => Promise<string>;
}
type Scene = (
  at: Home,
  run: (code: number, words: readonly string[], input?: string) => Promise<string>,
) => Promise<Unchanged>;

const lostRequest = "POST /v1/oauth_clients drop=before times=1";
const addWords = (name: string, ...words: string[]): string[] => {
  const { base_url, token_endpoint } = service.us;
  const where = ["--region", "us", "--base-url", base_url, "--token-endpoint", token_endpoint];
  return ["profiles", "add", name, ...where, ...words];
};
const keptSecret: Scene = async (at, run) => {
  await run(12, create("--secret-command", "cat >/dev/null; exit 1"));
  const id = JSON.parse(await run(0, ["journal", "list", "--json"])).data[0].id as string;
  return {
    code: 12,
    act: ["journal", "recover"],
    seen: async () => readFileSync(at.path("state", "undelivered", id), "utf8"),
  };
};

const scenes: Record<string, Scene> = {
  "a kept secret, by a profile that has the client's id and no secret": async (at, run) => {
    const kept = await keptSecret(at, run);
    const { clientId } = JSON.parse(await kept.seen()) as { clientId: string };
    await run(0, addWords("other", "--client-id", clientId, "--client-secret-command", "cat /not-yet", "--no-verify"));
    return kept;
  },
  "a kept secret, while its client is disabled for a moment": async (at, run) => {
    const kept = await keptSecret(at, run);
    const { id } = JSON.parse(await kept.seen()) as { id: string };
    await service.control("POST", `/oauth_clients/${id}`, { status: "disabled" });
    return kept;
  },
  "a delivered secret, by the recovery of another one for the same file": async (at, run) => {
    writeFileSync(at.path("s"), "old");
    for (const code of [7, 8]) {
      await service.fault(lostRequest);
      await run(code, create("--secret-file", "s", "--force", "--new", "--retry-for", "0"));
      await service.calm();
    }
    await run(0, ["journal", "recover"]);
    return { code: 0, act: ["journal", "recover"], seen: async () => readFileSync(at.path("s"), "utf8") };
  },
  "a profile that has the name of a removed one": async (_at, run) => {
    await run(0, addWords("ci", "--api-key-stdin"), service.us.api_key);
    await service.fault(lostRequest);
    await run(7, create("--secret-profile", "ci", "--retry-for", "0"));
    await run(0, ["profiles", "remove", "ci", "--yes"]);
    await run(0, addWords("ci", "--api-key-stdin"), service.us.second_api_key);
    return { code: 7, act: ["journal", "recover"], seen: () => run(0, ["profiles", "list", "--json"]) };
  },
  "the acting profile's credential, by a creation without consent": async (_at, run) => {
    await run(0, addWords("prod", "--api-key-stdin"), service.us.api_key);
    const act = create("--secret-profile", "prod", "-p", "prod", "--no-input");
    return { code: 2, act, seen: () => run(0, ["profiles", "list", "--json"]) };
  },
};

const client = (scopes: string, to: string): string =>
  `{ service_account: ${service.us.service_account_id}, scopes: [${scopes}], secret: { file: ${to} } }`;
const policy = (at: Home, ...items: string[]): void =>
  writeFileSync(
    at.path("integ.yaml"),
    `version: 1\nid: pol_of_regressions\nunmanaged: ignore\noauth_clients: { ${items.map((item, index) => `i${index}: ${item}`).join(", ")} }\n`,
  );
const applied = ["apply", "--yes", "-q"];
const secret = (at: Home) => async () => readFileSync(at.path("s"), "utf8");
const status =
  (id: string, noun = "oauth_clients") =>
  async () => {
    const all = (await service.control("GET", `/${noun}`)) as { id: string; status: string }[];
    return all.find((one) => one.id === id)!.status;
  };
const idIn = (json: string): string => (JSON.parse(json) as { id: string }).id;
/** Without the file `machine`, integ regards the state folder as another machine's, with a copy of the journal. */
const becomeOtherMachine = (at: Home): void => rmSync(at.path("state", "machine"));
const rotateNew = (run: Parameters<Scene>[1], to: readonly string[], { code = 0, env = "" } = {}): Promise<string> =>
  run(0, create("--secret-file", "s", "--json")).then(async (created) => {
    await run(code, ["oauth-clients", "rotate", idIn(created), ...to, "--yes"], env);
    return idIn(created);
  });

const rotationIn = async (run: Parameters<Scene>[1]): Promise<string> =>
  JSON.parse(await run(0, ["journal", "list", "--json"])).data[0].id;
/** Edits an export as anyone with the file can: each record gets a valid checksum, and the checksum of its predecessor. */
function forged(text: string, from: string, to: string): string {
  let [before, now] = ["", ""];
  const lines = text.trimEnd().split("\n");
  return lines
    .map((line) => {
      const here = line
        .slice(26)
        .replace(from, to)
        .replace(/,"machine":"[^"]*"/, "");
      const body = here.replace(`"after":"${before}"`, `"after":"${now}"`);
      [before, now] = [line.slice(8, 24), createHash("sha256").update(body).digest("hex").slice(0, 16)];
      return `{"sum":"${now}",${body}\n`;
    })
    .join("");
}

const policyScene =
  (code: number, change: (at: Home) => void): Scene =>
  async (at, run) => {
    policy(at, client("entity:read", "s"));
    await run(0, applied);
    change(at);
    policy(at, client("organization:read", "s"));
    return { code, act: applied, seen: secret(at) };
  };

Object.assign(scenes, {
  "a file that a person put in place of a policy's file": policyScene(2, (at) => writeFileSync(at.path("s"), "mine")),
  "a policy's file of another machine": policyScene(2, becomeOtherMachine),
  "a client that another machine relies on, by audit --fix": async (at, run) => {
    await run(0, create("--secret-file", "s"));
    await service.settle();
    becomeOtherMachine(at);
    return { code: 10, act: "oauth-clients audit --max-age 1ms --fix --yes".split(" "), seen: secret(at) };
  },
  "the old client, if the new secret is missing": async (at, run) => {
    const id = await rotateNew(run, ["--secret-file", "n", "--overlap", "1h"]);
    rmSync(at.path("n"));
    return { code: 8, act: ["journal", "recover", await rotationIn(run), "--now", "--yes"], seen: status(id) };
  },
  "the old client, if the new one is refused": async (_at, run) => {
    await service.fault("POST /oauth/token status=401 times=2");
    const id = await rotateNew(run, ["--secret-command", "cat >/dev/null"], { code: 8 });
    return { code: 8, act: ["journal", "recover", "--yes", "--accept-unproven"], seen: status(id) };
  },
  "the old key, if the new one has expired": async (_at, run) => {
    const id = idIn(await run(0, ["keys", "create", "--name", "k", "--secret-file", "s", "--json"]));
    const rotate = "--by-replacement --secret-file n --overlap 1h --accept-unproven --yes --json".split(" ");
    const created = idIn(await run(0, ["keys", "rotate", id, ...rotate]));
    await service.control("POST", `/access_keys/${created}`, { expiresAt: Date.now() - 1000 });
    return {
      code: 13,
      act: ["journal", "recover", await rotationIn(run), "--now", "--yes"],
      seen: status(id, "access_keys"),
    };
  },
  "a secret's destination, by a person who edited an export": async (at, run) => {
    const other = home();
    await service.fault(lostRequest);
    await other.integ(create("--secret-file", "s", "--retry-for", "0"));
    const { stdout } = await other.integ(["journal", "export"]);
    writeFileSync(at.path("x"), forged(stdout, other.path("s"), at.path("evil")));
    await run(0, ["journal", "import", "x"]);
    return { code: 7, act: ["journal", "recover"], seen: async () => String(existsSync(at.path("evil"))) };
  },
  "an item's secret, by another item whose path leads through a symbolic link": async (at, run) => {
    policy(at, client("entity:read", "s"));
    await run(0, applied);
    symlinkSync(".", at.path("l"));
    policy(at, client("entity:read", "s"), client("entity:read", "l/s"));
    return { code: 2, act: ["plan"], seen: secret(at) };
  },
} satisfies typeof scenes);

it("apply does not report an item as unchanged if its secret is missing", async () => {
  const at = home();
  policy(at, client("entity:read", "s"));
  expect((await at.integ(applied)).code).toBe(0);
  rmSync(at.path("s"));
  const { code, stdout } = await at.integ([...applied, "--json"]);
  expect([code, stdout]).toEqual([10, expect.not.stringContaining('"action":"none"')]);
});

it("a token endpoint that was added after a rotation began proves the new client", async () => {
  const at = home({});
  const run = async (code: number, words: readonly string[], input = ""): Promise<string> => {
    const ended = await at.integ(words, { input });
    expect(ended.code, ended.stderr).toBe(code);
    return ended.stdout;
  };
  const { base_url, token_endpoint, api_key } = service.us;
  await run(0, ["profiles", "add", "p", "--region", "us", "--base-url", base_url, "--api-key-stdin"], api_key);
  await rotateNew(run, ["--secret-file", "n"], { code: 8 });
  await run(0, ["profiles", "edit", "p", "--token-endpoint", token_endpoint]);
  await run(0, ["journal", "recover", "--yes"]);
});

describe("integ neither loses nor replaces", () => {
  it.each(Object.entries(scenes))("%s", async (_what, scene) => {
    const at = home(tokenEnv(service));
    const kept = await scene(at, async (code, words, input = "") => {
      const ended = await at.integ(words, { input });
      expect(ended.code, ended.stderr).toBe(code);
      return ended.stdout;
    });
    const before = await kept.seen();
    const { code, stderr } = await at.integ(kept.act);
    expect(code, stderr).toBe(kept.code);
    expect(await kept.seen()).toEqual(before);
  });
});
