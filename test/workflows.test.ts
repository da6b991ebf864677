import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "..");
const folder = join(root, ".github/workflows");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<
    Record<
      string,
      { readonly "timeout-minutes"?: number; readonly permissions?: unknown; readonly steps: readonly Step[] }
    >
  >;
}

describe.each(readdirSync(folder))("%s", (file) => {
  const text = readFileSync(join(folder, file), "utf8");
  const workflow = parse(text) as Workflow;
  const jobs = Object.entries(workflow.jobs);
  const steps = jobs.flatMap(([, job]) => job.steps);

  it("runs only existing scripts", () => {
    const isKnown = (line: string): boolean => {
      const [, script] = /^npm (?:run )?([\w:-]+)(?: -- .*)?$/.exec(line) ?? [];
      const [, file] = /^(?:node )?((?:\.ci|scripts|test)\/[\w./-]+)/.exec(line) ?? [];
      if (file !== undefined) return existsSync(join(root, file));
      if (script !== undefined && Object.hasOwn(scripts, script)) return true;
      return /^(npm ci$|pwsh -Version$|npx (publint|vitest)\b|npm publish |gh release )/.test(line);
    };
    const unknown = steps.flatMap(({ run }) => (run === undefined || isKnown(run) ? [] : [run]));
    expect(unknown).toEqual([]);
    expect(steps.some(({ run }) => run === "npm ci" || run === ".ci/run")).toBe(true);
  });

  it("pins each action to a commit and names its release", () => {
    const uses = [...text.matchAll(/uses: (.*)$/gm)].map((match) => match[1]!);
    expect(uses.filter((one) => !/^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(one))).toEqual([]);
  });

  it("has read-only permissions, no credential in the clone, and a timeout", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    const wider = jobs.flatMap(([name, job]) => (job.permissions ? [`${file} ${name}`] : []));
    expect(wider).toEqual(file === "release.yml" ? ["release.yml publish"] : []);
    for (const step of steps)
      if (step.uses?.startsWith("actions/checkout@")) expect(step.with).toEqual({ "persist-credentials": false });
    expect(jobs.filter(([, job]) => !job["timeout-minutes"]).map(([name]) => name)).toEqual([]);
  });

  it("names no registry and never puts text of a pull request's author into a shell line", () => {
    expect(text).not.toMatch(/registry|NODE_AUTH_TOKEN|https?:/i);
    const inserted = steps.flatMap(({ run }) =>
      [...(run ?? "").matchAll(/\$\{\{\s*([\w.]+)/g)].map((match) => match[1]!),
    );
    expect(inserted.filter((name) => !name.startsWith("matrix."))).toEqual([]);
  });
});
