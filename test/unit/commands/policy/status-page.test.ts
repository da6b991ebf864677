import { expect, it } from "vitest";
import { type Status, statusPage } from "../../../../src/commands/policy/status-page.ts";
import { roughWidth } from "../../../../src/output/visible-text.ts";
import { expectScreens } from "../../../support/golden-screens.ts";
import { stage } from "../../output/streams.ts";

const nowMs = Date.parse("2026-11-27T12:00:00Z");
const inDays = (days: number): string => new Date(nowMs + days * 86_400_000).toISOString();
const key = (id: string, name: string, [age, used, end]: readonly [number, number | null, number | null]) => ({
  id,
  name,
  createdAt: inDays(-age),
  lastUsedAt: used === null ? null : inDays(-used),
  expiresAt: end === null ? null : inDays(end),
});
const morning: Status = {
  headline: [
    "prod",
    "eu",
    "api.eu.example.com",
    "key ak_eu_ci (expires in 61 days)",
    "policy integ.yaml, 2 changes due",
  ],
  needed: [
    {
      mark: "✗",
      what: "create client of sa_1",
      state: "outcome unknown, 12 minutes ago",
      command: "integ journal recover 1rs6",
    },
    { mark: "!", what: 'ak_eu_ending "ending"', state: "expires in 6 days", command: "integ keys get ak_eu_ending" },
  ],
  waiting: [{ mark: "·", what: "rotate client oac_eu_5f5b", state: "the old one is revoked in 11 hours" }],
  credentials: [
    key("ak_eu_ci", "ci", [4, 0, 61]),
    key("ak_eu_ending", "ending", [60, 1, 6]),
    key("ak_eu_gone", "收集 \u202Ereversed\u001b[2J and quite a long name", [100, 12, -1]),
    key("ak_eu_old", "legacy", [400, null, null]),
    { id: "oac_eu_5f5b", createdAt: inDays(-2) },
  ],
  slots: new Map([["sa_1", 4]]),
  commands: ["integ status --json", "integ report"],
  nowMs,
  soonMs: 14 * 86_400_000,
};

async function statusAt(status: Status, columns: number, env: Record<string, string> = {}): Promise<string> {
  const { output, stdout } = stage({ tty: true, columns, env });
  await output.page(({ width = 80, ...screen }) => statusPage(status, { width, ...screen }));
  return stdout.text;
}

it("the page matches the golden screens: a table with a timeline, or sentences on a narrow terminal and without graphics", async () => {
  const screens: readonly (readonly [string, number, Record<string, string>])[] = [
    ["wide", 140, {}],
    ["100 columns", 100, {}],
    ["80 columns", 80, {}],
    ["40 columns", 40, {}],
    ["a terminal that cannot be drawn on", 120, { TERM: "dumb" }],
  ];
  const pages = await Promise.all(screens.map(async ([what, ...at]) => `${what}\n\n${await statusAt(morning, ...at)}`));
  await expectScreens("status", pages.join("\n"));
});

it.each([
  [39, 120],
  [39, 100],
  [39, 80],
  [12, 80],
])(
  "the page draws the timeline and the names of ids of %i characters at %i columns: other columns are left out for it",
  async (length, columns) => {
    const credentials = morning.credentials.map((one) => ({ ...one, id: one.id.padEnd(length, "0") }));
    const text = await statusAt({ ...morning, credentials }, columns);
    expect(text).toMatch(/expires +now ·· 30|expires +now ······ 30/);
    expect(text).toMatch(/  ending .*in 6 days +█/);
    if (columns > 80) expect(text).toMatch(/age +last used/);
    for (const { id } of credentials) expect(text).toContain(id);
    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(columns);
  },
);

it("at 40 columns, no line breaks an id of 38 characters, and no mark is alone", async () => {
  const credentials = morning.credentials.map((one) => ({ ...one, id: one.id.padEnd(38, "0") }));
  const what = `${credentials[1]!.id} "ending"`;
  const needed = [{ mark: "!", what, state: "expires in 6 days" }] as const;
  const text = await statusAt({ ...morning, credentials, needed, waiting: [] }, 40);
  for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(40);
  expect(text).not.toMatch(/^ *[✗!·]$/m);
  expect(text).toMatch(/! expires in 6 days:\nak_eu_ending0+\n/);
  for (const { id } of credentials) expect(text).toContain(id);
});

it.each([40, 80])("names of 255 letters or of 75 columns of Chinese are cut at %i columns", async (columns) => {
  const names = ["n".repeat(255), "收".repeat(37)];
  const credentials = names.map((name, index) => key(`ak_eu_${index}`, name, [4, 0, 61]));
  const needed = names.map((name) => ({ mark: "!", what: `ak_eu_1 "${name}"`, state: "expires in 6 days" }) as const);
  const text = await statusAt({ ...morning, credentials, needed }, columns);
  for (const line of text.split("\n")) expect(roughWidth(line), line).toBeLessThanOrEqual(columns);
});

it("the page lists the items that need a person by severity, then by kind and date", async () => {
  const items = (
    [
      ["!", "c", 3],
      ["✗", "b", -9, 1],
      ["!", "d", 5],
      ["✗", "a", -1],
    ] as const
  ).map(([mark, what, days, kind = 0]) => ({ mark, kind, what, state: "", at: inDays(days) }));
  const later = items.map(
    (item, index) => ({ ...item, mark: "·", what: `w${9 - index}`, at: inDays(-index) }) as const,
  );
  const text = await statusAt({ ...morning, needed: items, waiting: later }, 80);
  expect(text.match(/^  [✗!·] ([abcd]|w\d)\b/gm)).toEqual(
    ["✗ a", "✗ b", "! c", "! d", "· w6", "· w7", "· w9", "· w8"].map((line) => `  ${line}`),
  );
});

it("the page reports an empty account, and sorts 3,000 credentials by their end", async () => {
  const empty = { ...morning, needed: [], waiting: [], credentials: [], slots: new Map<string, number>() };
  expect(await statusAt(empty, 80)).toContain("Nothing needs you.");
  expect(await statusAt({ ...empty, unread: "Why." }, 80)).toContain("No change needs you. Why.");
  expect((await statusAt({ ...morning, unread: "Why." }, 80)).match(/Why\./g)).toHaveLength(1);
  const many = Array.from({ length: 3000 }, (_, index) => key(`ak_${index}`, "", [1, 1, 3000 - index]));
  const text = await statusAt({ ...morning, credentials: many }, 80);
  expect(text).toContain("ak_2999");
  expect(text).toContain("and 2970 more, valid for longer: integ report");
  const due = many.map((one) => ({ ...one, expiresAt: inDays(1) }));
  expect(await statusAt({ ...morning, credentials: due }, 80)).toContain(
    "and 2970 more, 2970 of them expired or expire within 14 days: integ report",
  );
  const aged = many.map((one, index) => ({ ...one, createdAt: inDays(-index), expiresAt: null }));
  expect(await statusAt({ ...morning, credentials: aged }, 80)).toContain("ak_2999");
});
