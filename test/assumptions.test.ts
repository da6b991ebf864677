// Checks that each point that the API document leaves open, and that integ or its sandbox decided, is marked `@assumed`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const source = join(import.meta.dirname, "../src");

type Side = "client" | "sandbox";

/** Each point that the API document marks "not shown", and the sides that had to decide it. */
const notShown: readonly (readonly [section: string, what: string, ...decidedBy: Side[]])[] = [
  ["1", "domain meaning of entities and cohorts"],
  ["2.2", "other entity fields and values, required and nullable flags", "client", "sandbox"],
  ["2.5", "fields of person records, members, cohorts, key list items and memberships", "client", "sandbox"],
  ["3.1", "pending to active; into disabled and expired", "client", "sandbox"],
  ["3.2", "effects of rotate and revoke on a key's status", "client", "sandbox"],
  ["4.3", "rule 6: other filters, member records", "client", "sandbox"],
  ["4.4", "requests and responses of all but the creation of keys", "client", "sandbox"],
  ["5.1", "rule 6: the list of permissions and scopes", "sandbox"],
  ["5.2", "rule 7: the token exchange", "client", "sandbox"],
  ["5.3", "rule 2: the exchange of a key's secret", "client", "sandbox"],
  ["6", "events, webhooks, notifications"],
  ["7", "codes beyond the status, and errors of the legacy contract", "client", "sandbox"],
  ["8", "numeric rate limits and headers", "sandbox"],
  ["9", "rule 7: compatibility and deprecation"],
];

/** Sections that leave a part open without the words "not shown". */
const leftOpen = ["4.1", "4.2", "4.5", "9"];

interface Assumption {
  readonly side: Side;
  readonly place: string;
  readonly text: string;
  readonly sections: readonly string[];
}

function assumptions(): Assumption[] {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return files.flatMap((name) => {
    const lines = readFileSync(join(source, name), "utf8").split("\n");
    return lines.flatMap((line, index) => {
      if (!line.includes("@assumed")) return [];
      const text = textFrom(lines, index);
      const sections = [...text.matchAll(/(RFC \d+ )?§([\d.]*\d)/g)]
        .filter(([, rfc]) => !rfc)
        .map((match) => match[2]!);
      const side: Side = name.startsWith("sandbox") ? "sandbox" : "client";
      return [{ side, place: `${name}:${index + 1}`, text, sections }];
    });
  });
}

function textFrom(lines: readonly string[], from: number): string {
  const first = lines[from]!.slice(lines[from]!.indexOf("@assumed"));
  if (first.includes("*/")) return first;
  const count = lines.slice(from + 1).findIndex((line) => !/^\s*(\*(?!\/)|\/\/)/.test(line) || /\*\s+@/.test(line));
  return [first, ...lines.slice(from + 1, from + 1 + count)].join(" ");
}

it("each @assumed mark names a section that leaves the point open", () => {
  const open = new Set([...notShown.filter(([, , ...by]) => by.length > 0).map(([section]) => section), ...leftOpen]);
  const all = assumptions();
  expect(all.length).toBeGreaterThan(30);
  const wrong = all.filter(({ sections }) => sections.length === 0 || !sections.some((section) => open.has(section)));
  expect(wrong.map(({ place, text }) => `${place}: ${text}`)).toEqual([]);
});

/** Assumptions that are easily left unmarked. A mark of the section must match the pattern. */
const easilyUnmarked: readonly (readonly [side: Side, section: string, what: RegExp])[] = [
  ["sandbox", "5.2", /how a token is used/],
  ["sandbox", "4.2", /another principal|principal or version/],
  ["sandbox", "4.2", /response to one that breaks it/],
  ["sandbox", "8", /unknown field|beyond the limits/],
  ["sandbox", "7", /403|statuses/],
  ["sandbox", "9", /stages/],
  ["client", "4.4", /list shows a key this long/],
  ["client", "4.4", /processed for this long/],
  ["client", "4.4", /`createdAt` is the time of the request/],
  ["client", "4.4", /expiry lies in the future/],
  ["client", "5.2", /is sent as `Bearer`/],
  ["client", "7", /404 .* made-up client/],
  ["sandbox", "4.2", /which refusals reserve the key/],
  ["sandbox", "4.2", /caller's account limits a client/],
  ["sandbox", "4.3", /parameters of single resources/],
  ["sandbox", "4.4", /without seconds/],
  ["sandbox", "4.4", /expiry in the past/],
  ["sandbox", "5.2", /audience that is not this service's/],
  ["sandbox", "7", /permission is checked first/],
];

it.each(easilyUnmarked)("the %s marks its assumption about §%s: %s", (side, section, what) => {
  const marked = assumptions().filter((one) => one.side === side && one.sections.includes(section));
  expect(marked.some(({ text }) => what.test(text))).toBe(true);
});

it('each "not shown" point is decided wherever a decision is needed', () => {
  const all = assumptions();
  const missing = notShown.flatMap(([section, what, ...decidedBy]) =>
    decidedBy
      .filter((side) => !all.some((one) => one.side === side && one.sections.includes(section)))
      .map((side) => `§${section} (${what}) in the ${side}`),
  );
  expect(missing).toEqual([]);
});
