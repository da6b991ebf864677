// A year of nightly `apply` runs with a moved clock; a sample has five nights.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { expectedRotations, simulateYear, type YearFigures, type YearItem } from "../support/policy-year.ts";
import { startGitHub } from "../support/github-server.ts";
import type { Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { startVault, type VaultServer } from "../support/vault-server.ts";
import { recordFigure } from "../support/figures.mjs";

const nights = isFull ? 365 : 5;
/** Divides the age limits in a sample, so that rotations are due within its few nights. */
const scale = isFull ? 1 : 16;

const items: readonly YearItem[] = [
  { name: "reporting", kind: "oauth_client", everyDays: Math.ceil(60 / scale), overlapHours: 12 },
  { name: "billing", kind: "oauth_client", everyDays: Math.ceil(30 / scale), overlapHours: 0 },
  { name: "search", kind: "oauth_client", everyDays: Math.ceil(45 / scale), overlapHours: 36 },
  { name: "export", kind: "oauth_client", everyDays: Math.ceil(14 / scale), overlapHours: 6 },
  { name: "deploy", kind: "access_key", everyDays: Math.ceil(76 / scale), overlapHours: 36 },
  { name: "ingest", kind: "access_key", everyDays: Math.ceil(30 / scale), overlapHours: 12 },
];

const faults = [
  "POST /v1/oauth_clients probability=0.4 status=503",
  "POST /v1/oauth_clients probability=0.4 drop=after",
  "POST /v1/oauth_clients probability=0.4 drop=before",
  "POST /v1/oauth_clients times=1 secret=withheld",
  "POST /v1/oauth_clients probability=0.5 cut=20",
  "POST /v1/oauth_clients times=1 pending=1",
  "DELETE /v1/oauth_clients/* probability=0.5 status=500",
  "DELETE /v1/oauth_clients/* times=2 drop=after",
  "GET /v1/oauth_clients/* probability=0.3 status=503",
  "POST /api/v1/access-keys times=1 drop=after",
  "POST /api/v1/access-keys times=1 status=500 effect=kept",
  "DELETE /api/v1/access-keys/* times=1 drop=after",
  "GET /api/v1/access-keys times=1 status=503",
  "* /* probability=0.2 status=429 retry-after=0",
  "* /* probability=0.1 drop=before",
];

function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

function report(what: string, figures: YearFigures): void {
  const { troubles, nights: simulated, runs, rotations, failedRuns, polls, ...bad } = figures;
  recordFigure(
    "year of nights",
    {
      nights: simulated,
      runs,
      rotations,
      "runs that failed": failedRuns,
      "moments checked": polls,
      "moments without a working credential": bad.withoutWorking,
      "nights over the age limit": bad.tooOld,
      lost: bad.lost,
      doubled: bad.doubled,
      "moments above 20 slots": bad.aboveSlots,
    },
    what,
  );
  if (troubles.length > 0) console.log(troubles.slice(0, 20).join("\n"));
}

function vaultField({ secrets }: VaultServer): string | undefined {
  return secrets.get("secret/app")?.at(-1)?.fields.key as string | undefined;
}

const nothingBad = { withoutWorking: 0, tooOld: 0, lost: 0, doubled: 0, aboveSlots: 0 };

describe("a year of nights", () => {
  it("without faults has exactly the calculated rotations", { timeout: 3_600_000 }, async () => {
    const figures = await simulateYear({ nights, items, faultOf: () => undefined });
    report("without faults", figures);
    expect(figures).toMatchObject({ ...nothingBad, failedRuns: 0 });
    expect(figures.rotations).toBe(items.reduce((sum, item) => sum + expectedRotations(item, nights), 0));
  });

  it.each(isFull ? [0, 36] : [36])(
    "rotates for each kind of destination without questions or refusals (overlap %i h)",
    { timeout: 3_600_000 },
    async (overlapHours) => {
      const [vault, github] = await Promise.all([startVault(), startGitHub()]);
      const everyDays = Math.ceil(30 / scale);
      const read = (name: string) => (home: Home) =>
        existsSync(home.path(name)) ? readFileSync(home.path(name), "utf8").trim() : undefined;
      const kinds: readonly Pick<YearItem, "name" | "to" | "secret">[] = [
        { name: "file", to: "{ file: file.secret }", secret: read("file.secret") },
        { name: "command", to: '{ command: "cat > command.secret" }', secret: read("command.secret") },
        { name: "vault", to: '"vault:secret/app#key"', secret: () => vaultField(vault) },
        { name: "github", to: '"github:my-org/my-repo#KEY"', secret: () => github.secret("KEY") },
        {
          name: "several",
          to: '[{ file: first.secret }, "vault:secret/two#key", { command: "cat > third.secret" }]',
          secret: read("third.secret"),
        },
      ];
      const years = kinds.map((one) => ({ ...one, kind: "oauth_client", everyDays, overlapHours }) as const);
      const env = {
        VAULT_ADDR: vault.origin,
        VAULT_TOKEN: vault.root,
        GITHUB_API_URL: github.origin,
        GH_ENTERPRISE_TOKEN: github.token,
      };
      try {
        const figures = await simulateYear({ nights, items: years, faultOf: () => undefined, env });
        report(`each kind of destination, overlap ${overlapHours} h`, figures);
        expect(figures).toMatchObject({ ...nothingBad, failedRuns: 0 });
        expect(figures.rotations).toBe(years.reduce((sum, item) => sum + expectedRotations(item, nights), 0));
      } finally {
        await Promise.all([vault.close(), github.close()]);
      }
    },
  );

  it("with faults keeps every credential working at every moment", { timeout: 3_600_000 }, async () => {
    const random = numbers(Number(process.env.INTEG_TEST_SEED ?? 7));
    const faultOf = (): string | undefined =>
      random() < 0.7 ? faults[Math.floor(random() * faults.length)] : undefined;
    const figures = await simulateYear({ nights, items, faultOf });
    report("with faults", figures);
    expect(figures).toMatchObject(nothingBad);
  });
});
