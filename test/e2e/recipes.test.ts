// Runs the recipes of docs/secret-stores.md. A stand-in behaves as its tool's public manual says.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { recordFigure } from "../support/figures.mjs";
import { Home, root } from "../support/program.ts";
import { serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const service = await serviceOfFile();
const account = new Account(service);
let at: Home | undefined;
let newest = "";

afterEach(async () => {
  await account.clear();
  at?.remove();
});

const recipes: ReadonlyMap<string, string> = new Map(
  readFileSync(join(root, "docs", "secret-stores.md"), "utf8")
    .split("\n## Other stores, through their own commands\n")[1]!
    .split("\n### ")
    .slice(1)
    .map((section) => {
      const [name = "", ...rest] = section.split("\n");
      return [name, /```\n([^]*?)```/.exec(rest.join("\n"))?.[1] ?? ""];
    }),
);

interface Tool {
  /**
   * The stand-in's shell text, which runs after its arguments are recorded. `$dir` is its own folder. Without a script, the
   * real tool runs.
   */
  readonly script?: string;
  readonly arrange?: (home: Home) => void;
  readonly stored: (home: Home) => string;
}

const readValue =
  (name = "value") =>
  (home: Home): string =>
    readFileSync(home.path("stand-ins", name), "utf8");

function output(home: Home, command: string): string {
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], {
    cwd: home.folder,
    env: home.env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

const tools: Readonly<Record<string, Readonly<Record<string, Tool>>>> = {
  "AWS Secrets Manager": {
    aws: {
      // As in the AWS CLI, `file://` names a file to read.
      script: `case "$*" in
*put-secret-value*'--secret-string file:///dev/stdin'*) cat /dev/stdin > "$dir/value" ;;
*get-secret-value*'--query SecretString --output text'*) cat "$dir/value"; echo ;;
*) exit 9 ;; esac`,
      stored: readValue(),
    },
  },
  "Google Cloud Secret Manager": {
    gcloud: {
      script: `case "$*" in
'secrets versions add my-app --data-file=-') cat > "$dir/value" ;;
'secrets versions access latest --secret=my-app') cat "$dir/value" ;;
*) exit 9 ;; esac`,
      stored: readValue(),
    },
  },
  "Azure Key Vault": {
    az: {
      script: `case "$*" in
*'secret set'*'--file /dev/stdin --encoding utf-8'*) cat /dev/stdin > "$dir/value" ;;
*'secret show'*'--query value --output tsv'*) cat "$dir/value"; echo ;;
*) exit 9 ;; esac`,
      stored: readValue(),
    },
  },
  "GitLab CI/CD variables": {
    glab: {
      script: `case "$*" in
'variable update CLIENT_SECRET '*) cat > "$dir/value" ;;
'variable get CLIENT_SECRET '*) cat "$dir/value" ;;
*) exit 9 ;; esac`,
      stored: readValue(),
    },
  },
  SOPS: {
    sops: {
      script: `case "$*" in
'set --value-stdin secrets.yaml ["client_secret"]') cat > "$dir/json"; jq -j . "$dir/json" > "$dir/value" ;;
'decrypt --extract ["client_secret"] secrets.yaml') cat "$dir/value" ;;
*) exit 9 ;; esac`,
      stored: readValue(),
    },
  },
  "1Password": {
    op: {
      arrange: (home) =>
        writeFileSync(
          home.path("stand-ins", "item"),
          JSON.stringify({
            title: "my-app",
            fields: [
              { id: "username", value: "u" },
              { id: "password", value: "" },
            ],
          }),
        ),
      script: `case "$*" in
'item get my-app --vault ci --format json') cat "$dir/item" ;;
'item edit my-app --vault ci') cat > "$dir/new"; mv "$dir/new" "$dir/item" ;;
'read --no-newline op://ci/my-app/password') jq -j '.fields[] | select(.id == "password").value' "$dir/item" ;;
*) exit 9 ;; esac`,
      stored: (home) => {
        const { fields } = JSON.parse(readValue("item")(home)) as { fields: { id: string; value: string }[] };
        expect(fields[0]).toEqual({ id: "username", value: "u" });
        return fields[1]!.value;
      },
    },
    jq: { stored: () => "" },
  },
  Bitwarden: {
    bw: {
      arrange: (home) =>
        writeFileSync(
          home.path("stand-ins", "item"),
          JSON.stringify({ name: "my-app", login: { username: "u", password: "" } }),
        ),
      script: `case "$*" in
'get item my-app') cat "$dir/item" ;;
encode) base64 -w0 ;;
'edit item my-app') base64 -d > "$dir/new"; mv "$dir/new" "$dir/item" ;;
'get password my-app') jq -j .login.password "$dir/item" ;;
*) exit 9 ;; esac`,
      stored: (home) => {
        const { login } = JSON.parse(readValue("item")(home)) as { login: { username: string; password: string } };
        expect(login.username).toBe("u");
        return login.password;
      },
    },
    jq: { stored: () => "" },
  },
  pass: {
    pass: {
      arrange: (home) => {
        mkdirSync(home.path(".gnupg"), { mode: 0o700 });
        output(
          home,
          "gpg --batch --quiet --passphrase '' --quick-generate-key 'Test <test@example.com>' default default never",
        );
        output(home, "pass init test@example.com");
      },
      stored: (home) => output(home, "pass show my-app/client-secret"),
    },
  },
  "systemd credentials": {
    "systemd-creds": {
      stored: (home) => output(home, "systemd-creds decrypt --name=client-secret client-secret.cred -"),
    },
  },
  age: {
    age: {
      arrange: (home) => output(home, "age-keygen -o key.txt 2>/dev/null && age-keygen -y key.txt > team.txt"),
      stored: (home) => output(home, "age --decrypt --identity key.txt client-secret.age"),
    },
  },
  "Docker Swarm": {
    docker: {
      script: `case "$*" in
'secret create my-app-'*' -') cat > "$dir/$3" ;;
'secret inspect my-app-'*) test -s "$dir/$3" && echo '[{"ID":"x"}]' ;;
*) exit 9 ;; esac`,
      stored: (home) => readValue(`my-app-${newest}`)(home),
    },
  },
  "Sealed Secrets": {
    kubectl: {
      stored: (home) => {
        const { data } = JSON.parse(readFileSync(home.path("my-app.sealed.yaml"), "utf8")) as {
          data: Record<string, string>;
        };
        return Buffer.from(data["client-secret"]!, "base64").toString("utf8");
      },
    },
    kubeseal: { script: "cat", stored: () => "" },
  },
};

/** True if this machine lacks a tool for which there is no stand-in. */
function isWithoutTool(name: string): boolean {
  const real = Object.entries(tools[name]!).filter(([, { script }]) => script === undefined);
  return isMissing(...real.map(([tool]) => tool));
}

/** A home whose tools record their arguments and environment. */
function stage(name: string): Home {
  const home = new Home(service.env);
  home.addToPath();
  mkdirSync(home.path("stand-ins"));
  for (const [tool, { script }] of Object.entries(tools[name]!)) {
    const real = spawnSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).stdout.trim();
    const path = home.path("bin", tool);
    writeFileSync(
      path,
      `#!/bin/sh\ndir='${home.path("stand-ins")}'\n{ tr '\\0' ' ' < /proc/$$/cmdline; echo; env; } >> "$dir/seen"\n${script ?? `exec ${real} "$@"`}\n`,
    );
    chmodSync(path, 0o755);
  }
  for (const { arrange } of Object.values(tools[name]!)) arrange?.(home);
  return home;
}

function type(home: Home, line: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return home.integ([], { under: ["sh", "-c", line] });
}

/** The number of deliveries of each recipe whose bytes were compared. */
const compared = new Map<string, number>();
const isReal = (name: string): boolean => Object.values(tools[name]!).every(({ script }) => script === undefined);

afterAll(() => {
  const deliveries = [...compared.values()].reduce((sum, count) => sum + count, 0);
  const real = [...compared.keys()].filter(isReal).length;
  recordFigure("recipes", { recipes: recipes.size, run: compared.size, real, deliveries });
});

describe("the recipes", () => {
  it("are all tested here", () => {
    expect([...recipes.keys()].sort()).toEqual(Object.keys(tools).sort());
  });

  for (const [name, recipe] of recipes) {
    it.skipIf(isWithoutTool(name))(`${name}: exactly the secret, at a creation and a rotation`, async () => {
      at = stage(name);
      const line = recipe.replaceAll("<id>", service.us.service_account_id);
      const ids = new Set<string>();
      for (const typed of [
        line,
        line.replace(/create --service-account \S+ --scope \S+/, "rotate OLD --accept-unproven"),
      ]) {
        const [old] = await account.live();
        const { code, stdout, stderr } = await type(at, typed.replace("OLD", old?.id ?? ""));
        expect(code, stderr).toBe(0);
        const live = await account.live();
        expect(live).toHaveLength(1);
        newest = live[0]!.id;
        ids.add(newest);
        const stored = Object.values(tools[name]!)[0]!.stored(at);
        expect(stored).toMatch(/^sbx_us_cs_\w+$/);
        expect(await account.opens(live[0]!.client_id!, stored)).toBe(true);
        expect(stdout + stderr).not.toContain(stored);
        const seen = readFileSync(at.path("stand-ins", "seen"), "utf8");
        expect(seen.length).toBeGreaterThan(100);
        expect(seen).not.toContain(stored);
        compared.set(name, (compared.get(name) ?? 0) + 1);
        writeFileSync(at.path("stand-ins", "seen"), "");
      }
      expect(ids.size).toBe(2);
    });
  }
});
