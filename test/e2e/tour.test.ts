import { beforeAll, expect, it } from "vitest";
import { type Ended } from "../support/program.ts";
import { homeOfFile } from "../support/service.ts";
import { Session } from "../terminal/session.ts";

const at = homeOfFile();
let tour: Ended;
let watched: Session;

beforeAll(async () => {
  tour = await at.integ(["sandbox", "tour"]);
  watched = new Session(["sandbox", "tour", "--yes"], { home: at, columns: 80, isReadWhole: true });
  await watched.ended;
});

it("succeeds, and leaves nothing in the user's own folders", async () => {
  expect(tour).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse((await at.integ(["journal", "list", "--all", "--json"])).stdout).data).toEqual([]);
});

it("fits a terminal of 80 columns: no line is wrapped or repeated", async () => {
  const { lines, effects } = await watched.screen();
  expect(effects).toEqual([]);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  expect(lines.length).toBeLessThan(200);
  expect(lines.join("\n")).not.toMatch(/Waiting for the service|recovering/);
  expect(lines.filter((line) => line.endsWith("--replace-lost-secret") && line.includes("Next:"))).toHaveLength(1);
});

it("waits for the reader between its scenes, and the reader may quit", async () => {
  const left = new Session(["sandbox", "tour"], { home: at });
  await left.answer(/Next step\?/, "n");
  expect(await left.ended).toBe(0);
  expect(left.written).not.toContain("2. Create");
});

it("loses a connection, recovers under the same key, and replaces the lost secret", () => {
  const codes = [...tour.stdout.matchAll(/\(exit code (\d+)\)/g)].map((match) => Number(match[1]));
  expect(codes).toEqual([7, 9, 10]);
  expect(tour.stdout).toMatch(/replaced/);
  expect(tour.stdout).toMatch(/access token|access_token/);
});

it("shows no issued client secret", () => {
  expect(tour.stdout).not.toMatch(/sbx_us_cs_/);
});
