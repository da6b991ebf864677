// Finds words that the glossary below replaces, in strings, titles of tests, comments and documents.
// `node scripts/words.mjs` prints the number of hits of each kind, then each hit, and exits 1 if there are hits.
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "rolldown/utils";

/** A rule without `only` applies to all kinds. Only strings with a space are checked. */
export const glossary = [
  { not: /\b(go(es)? on( with)?|went on|t[ao]kes? up|took up)\b/i, say: "resume, continue" },
  { not: /\b(tells?|told|telling|said aloud)\b/i, say: "report, print, show, say" },
  { not: /\bmend(s|ed|ing)?\b/i, say: "fix, repair" },
  {
    not: /(?<!-)\b(dead|dies|died|alive|born|lives|living|lived)\b/i,
    say: "stop working, fail, is revoked; valid, running, existing",
  },
  { not: /\bgone\b/i, say: "missing, not found, no longer exists, has exited" },
  { not: /(?<!there )\b(is|are) no\b(?! (longer|more|one|such))/i, say: "is not a …, invalid, not found" },
  {
    not: /([,;:] where|(^|\. )Where) (it|they|there|that|this|the|a|no|nobody|nothing|one|neither|both|somebody|you) [^.]*(,|$)/,
    say: "if",
    only: ["strings", "documents"],
  },
  { not: /\bin case\b/i, say: "if" },
  { not: /\b(is|are) no (longer|more)\b/i, say: "is missing, was removed; no longer exists", only: ["strings"] },
  { not: /\banew\b/i, say: "again, new" },
  { not: /\b(c[ao]mes? to (its|an) end|(br[io]ngs?|brought) [a-z ]{0,12}\bhome)\b/i, say: "finish, complete, deliver" },
  { not: /\bhand(s|ed|ing)? over\b/i, say: "deliver" },
  { not: /\b\w*(behaviour|colour(?!=)|neighbour|favour|licence|honour)\w*/i, say: "US spelling: behavior, color" },
  { not: /\b(errand|twin)s?\b/i, say: "request, attempt, fingerprint" },
  { not: /\btime-outs?\b/i, say: "timeout" },
  { not: /\b(somebody|nobody|whoever)\b/i, say: "someone, no one; better, name the actor" },
  { not: /\bat once\b/i, say: "immediately; at the same time" },
  { not: /\ball the same\b/i, say: "anyway" },
  { not: /\bunsettled\b/i, say: "unfinished" },
  { not: /\b(broken off|breaks off|stands? and falls?)\b/i, say: "interrupted" },
  { not: /\broom\b/i, say: "space" },
  { not: /\baloud\b/i, say: "reported, shown" },
  { not: /\bbegun\b/i, say: "started" },
  { not: /[\u2018\u2019\u201c\u201d\u00ab\u00bb]/, say: "straight quotation marks" },
  {
    not: /^Invalid (?!fault )[^"]*"…"|^(…|--?[\w-]+): "…"|^"…" (is (not|none)|has no)\b/,
    say: "invalidValue(what, value, { why, hint })",
    only: ["strings"],
  },
  {
    not: /^(?!If |The |Journal )[A-Z][a-z]+ .*\b(integ|kubectl) [^.;`]*<[\w-]+>.*\.$|^[A-Z][a-z]+ [^.]*: …[^.]*<[\w-]+>'?\.$/,
    say: "a command without a placeholder, or the name of the option",
    only: ["strings"],
  },
  {
    not: /\bstands? (at|in|there|beside|behind|below|before|between|after|on|under|inside|outside|once|twice)\b|\bas (it stands|they stand)\b/,
    say: "is, are",
    only: ["comments"],
  },
  {
    not: /\bthat (is|are) none\b|\bbrings? it to its end\b|\b(has|have|had) come to nothing\b/,
    say: "invalid; completes; failed",
  },
  { not: /\b(goes|go) last\b/, say: "is revoked last, is removed last" },
  { not: /§/, say: "no sections of a document that the reader does not have", only: ["strings"] },
  { not: /\b(e\.g|i\.e)\./, say: "such as, that is" },
  { not: /\b(an?|one|each|every) [a-z]+ a (line|page|run|row|day|night)\b/, say: "one row per line" },
  { not: /\bwalk(s|ed|ing)?\b/i, say: "list, fetch", only: ["strings", "documents"] },
  {
    not: /\b[Nn]othing (was|is) [a-z]+, (and )?nothing (was |is )?[a-z]+ed\b(?! (in|to|by))/,
    say: "nothing was sent and nothing changed",
  },
  { not: /\bas (it|they) comes?\b/, say: "unchanged", only: ["strings", "documents"] },
  {
    not: /\b(nothing|undefined|null|true|false|none|absent|empty|itself|omitted) where\b/i,
    say: "if",
    only: ["comments"],
  },
  { not: /@(throws|returns)(?! what)(?:(?!\bwhere\b|\.|@|decides)[^])* where\b/, say: "if", only: ["comments"] },
  {
    not: /\b(lost|cut|broken|error|complete|usable|service's|slow|proxy's) answers?\b|\banswers? (of|from|to) the (API|service|server|store|proxy)\b/i,
    say: "response",
  },
  {
    not: /\b(what followed it|followed it\.|making the same|looked at(?= and))/,
    say: "its successor; creating the same one",
  },
];

/** Files that contain the replaced words as data, and a page that is made from other files. */
const skipped = new Set(["scripts/words.mjs", "test/unit/words.test.ts", "docs/design/contract-coverage.md"]);

export function proseOf(file, text) {
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const starts = [0];
  for (const match of text.matchAll(/\n/g)) starts.push(match.index + 1);
  const lineOf = (at) => starts.findLastIndex((start) => start <= at) + 1;
  const prose = comments.map(({ value, start }) => ({
    kind: "comments",
    text: value.replaceAll(/`[^`\n]*`|@param [\w.]+/g, (code) => " ".repeat(code.length)),
    line: lineOf(start),
  }));
  // A test's strings are titles and stand-ins for what others write, so the rules for screens do not apply to them.
  const kind = file.startsWith("test/") ? "titles" : "strings";
  const string = (value, start) => {
    if (/\S\s+\S/.test(value)) prose.push({ kind, text: value, line: lineOf(start) });
  };
  new Visitor({
    Literal: ({ value, start }) => typeof value === "string" && string(value, start),
    TemplateLiteral: ({ quasis, start }) => string(quasis.map(({ value }) => value.cooked).join("…"), start),
  }).visit(program);
  return prose;
}

/** Blanks the code but not its comments, so that positions stay the same. */
function notesOf(block) {
  const keep = (line) => {
    const at = line.search(/(?<=^|\s)# /);
    return at < 0 ? " ".repeat(line.length) : " ".repeat(at) + line.slice(at);
  };
  return block.split("\n").map(keep).join("\n");
}

export function proseOfDocument(text) {
  const blank = (code) => code.replaceAll(/[^\n]/g, " ");
  const prose = text.replace(/^```[\s\S]*?^```/gm, notesOf).replace(/`[^`\n]*`/g, blank);
  return prose.split("\n").map((line, index) => ({ kind: "documents", text: line, line: index + 1 }));
}

export function replacedWords(texts) {
  return texts.flatMap(({ kind, text, line }) =>
    glossary
      .filter(({ only }) => only === undefined || only.includes(kind))
      .flatMap(({ not, say }) => {
        const match = not.exec(text);
        if (!match) return [];
        const above = kind === "comments" ? text.slice(0, match.index).split("\n").length - 1 : 0;
        return [{ kind, line: line + above, word: match[0].trim(), say, text }];
      }),
  );
}

export function hitsIn(root) {
  const files = execFileSync("git", ["ls-files", "src", "test", "scripts", "bench", "bin", "*.md"], {
    cwd: root,
    encoding: "utf8",
  });
  return files
    .trim()
    .split("\n")
    .filter((file) => !skipped.has(file))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), "utf8");
      if (file.endsWith(".md")) return replacedWords(proseOfDocument(text)).map((hit) => ({ file, ...hit }));
      if (!/\.m?[jt]s$/.test(file)) return [];
      return replacedWords(proseOf(file, text)).map((hit) => ({ file, ...hit }));
    });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const hits = hitsIn(join(import.meta.dirname, ".."));
  for (const kind of ["strings", "titles", "comments", "documents"])
    console.log(`${kind.padEnd(10)} ${hits.filter((hit) => hit.kind === kind).length}`);
  for (const { file, line, kind, word, say } of hits) console.log(`${file}:${line} ${kind}: "${word}": say ${say}`);
  if (hits.length > 0) process.exitCode = 1;
}
