// Each message that docs/troubleshooting.md quotes is in the golden screens or in src/.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { proseOf } from "../../scripts/words.mjs";
import { goldenScreens } from "../support/golden-screens.ts";
import { root } from "../support/program.ts";

const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
const messages = [...page.matchAll(/^\| `([^`]+)` \| /gm)].map(([, message]) => message!);
const golden = goldenScreens().replaceAll("\n  ", " ");
const texts = execFileSync("git", ["ls-files", "src/*.ts"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n")
  .flatMap((file) => proseOf(file, readFileSync(join(root, file), "utf8")))
  .filter(({ kind }) => kind === "strings")
  .map(({ text }) => text);

/** `…` separates the parts of a message, each of which must be a text of the program. */
function isShown(message: string): boolean {
  const parts = message.split("…").map((part) => part.replace(/^[.: ]+| +$/g, ""));
  return parts.every((part) => golden.includes(part) || texts.some((text) => text.includes(part)));
}

it("there are many messages", () => expect(messages.length).toBeGreaterThan(25));

it.each(messages)("the program has the message %s", (message) => {
  expect(message.replaceAll(/[….: ]/g, "").length).toBeGreaterThan(12);
  expect(isShown(message)).toBe(true);
});

it("a message that the program does not have is detected", () =>
  expect(isShown("The … is not what it was: …")).toBe(false));
