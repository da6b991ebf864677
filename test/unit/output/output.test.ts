import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { Failure } from "../../../src/errors.ts";
import type { Format, ResourceView } from "../../../src/output/formats/format.ts";
import type { Output } from "../../../src/output/output.ts";
import { pageOf } from "../../../src/output/row-page.ts";
import { shown } from "../../terminal/screen.ts";
import { HandClock, type KeptStream, stage, type Stage, type StageOptions } from "./streams.ts";
import { shell } from "../../../src/next-step.ts";
import type { LiveTable } from "../../../src/output/live-view.ts";

afterEach(() => vi.useRealTimers());

const formats: readonly Format[] = ["table", "json", "ndjson", "csv", "yaml"];
const view: ResourceView = {
  title: "OAuth client c1",
  columns: [
    { path: "id", heading: "id" },
    { path: "scopes", heading: "scopes", kind: "list" },
    { path: "status", heading: "status", kind: "status" },
    { path: "created_at", heading: "created", kind: "time" },
    { path: "owner.name", heading: "owner" },
  ],
  secretField: "client_secret",
};
const client =
  '{"id":"c1", "scopes":["a:read","b:read"],"status":"active","created_at":"2026-11-18T12:00:00.000Z","owner":{"name":"Ann"},"client_secret":"CANARY-1","n":1.10}';

describe("a list with receipts before it", () => {
  const rows = ['{"id":"e1"}', '{"id":"e2"}'];
  const read: Partial<Record<Format, (text: string) => unknown>> = { json: JSON.parse, yaml: parse };

  it.each(
    (["json", "yaml"] as const).flatMap((format) =>
      [true, false].flatMap((tty) =>
        [0, 1, 2].flatMap((receipts) => [0, 2].map((count) => ({ format, tty, receipts, count }))),
      ),
    ),
  )(
    "is one document: $format, terminal $tty, $receipts receipts, $count rows",
    async ({ format, tty, receipts, count }) => {
      const { output, stdout, stderr } = stage({ format, tty });
      const report = output.report({ columns: [], singular: "entry", plural: "entries" });
      for (let n = 0; n < receipts; n += 1) await report.receipt(client, view);
      // Each receipt is written immediately, whatever happens to the rest.
      expect(stdout.text.split("CANARY-1")).toHaveLength(receipts + 1);
      if (count > 0) await report.list.page(pageOf(rows));
      await report.list.end({ nextPageToken: null, hasMore: false });
      expect(read[format]!(stdout.text)).toEqual({
        object: "list",
        ...(receipts === 0 ? {} : { receipts: Array.from({ length: receipts }, () => JSON.parse(client)) }),
        data: rows.slice(0, count).map((row) => JSON.parse(row)),
        next_page_token: null,
        has_more: false,
      });
      expect(stderr.text.split("shown only this once")).toHaveLength(receipts + 1);
    },
  );
});

describe("one resource", () => {
  async function shown(options: StageOptions & { nulls?: string[] } = {}): Promise<{ out: string; err: string }> {
    const { output, stdout, stderr } = stage(options);
    await output.resource(client, { ...view, ...(options.nulls ? { nulls: options.nulls } : {}) });
    return { out: stdout.text, err: stderr.text };
  }

  it("is the API's object unchanged: compact on a pipe, indented on a terminal", async () => {
    expect((await shown({ format: "json" })).out).toBe(`${client.replace(", ", ",")}\n`);
    expect((await shown({ format: "ndjson" })).out).toBe(`${client.replace(", ", ",")}\n`);
    expect((await shown({ format: "json", tty: true })).out).toMatch(/^{\n {2}"id": "c1",[^]*"n": 1\.10\n}\n$/);
  });

  it("is one field per line for a person, undocumented fields last", async () => {
    expect((await shown()).out).toBe(
      [
        "id             c1",
        "scopes         a:read, b:read",
        "status         active",
        "created        2026-11-18T12:00:00.000Z",
        "owner          Ann",
        "client_secret  CANARY-1",
        "n              1.10",
        "",
      ].join("\n"),
    );
    const some = stage();
    await some.output.resource('{"id":"c1","n":null}', { ...view, omitsEmpty: true });
    expect(some.stdout.text).toBe("id  c1\n");
    const { out } = await shown({ tty: true, columns: 20 });
    expect(out).toMatch(/^OAuth client c1\n/);
    expect(out).toMatch(/3 days ago\n +\(2026-11-18T12:00:00.000Z\)/);
  });

  it("folds at a terminal, and keeps ids and secrets whole", async () => {
    const { output, stdout } = stage({ tty: true, columns: 40 });
    const [id, secret, owner] = ["oac_us_".padEnd(39, "0"), "s t ".repeat(20), "Ann of ".repeat(12).trim()];
    await output.resource(JSON.stringify({ id, client_secret: secret, owner: { name: owner } }), view);
    expect(stdout.text).toContain(`\n${id}\n`);
    expect(stdout.text).toContain(`\n${secret}\n`);
    for (const line of stdout.text.split("\n")) if (line !== secret) expect(line.length, line).toBeLessThanOrEqual(40);
  });

  it("can be read back from YAML and CSV", async () => {
    expect(parse((await shown({ format: "yaml" })).out)).toEqual(JSON.parse(client));
    expect((await shown({ format: "csv" })).out).toBe(
      'id,scopes,status,created_at,owner.name,client_secret\r\nc1,"[""a:read"",""b:read""]",active,2026-11-18T12:00:00.000Z,Ann,CANARY-1\r\n',
    );
  });

  it.each(formats)(
    "shows null for a secret delivered elsewhere, nothing to a person, and no byte of it: %s",
    async (format) => {
      for (const tty of [true, false]) {
        const { out, err } = await shown({ format, tty, nulls: ["client_secret"] });
        expect(out + err).not.toContain("CANARY");
        expect(err).not.toContain("once");
        if (format !== "csv") expect(out.includes("secret")).toBe(format !== "table");
      }
      const { out } = await shown({ format, nulls: ["client_secret"], fields: ["client_secret", "id"] });
      expect(out).toContain(format === "csv" ? ",c1" : "c1");
      if (format === "table") expect(out).toMatch(/^client_secret +-$/m);
    },
  );

  it.each(formats)(
    "shows a secret that goes to stdout despite --fields, and says that it is shown once: %s",
    async (format) => {
      for (const fields of [undefined, ["id"], ["client_secret", "id"]]) {
        const { out, err } = await shown({ format, ...(fields ? { fields } : {}) });
        expect(out.match(/CANARY-1/g)).toHaveLength(1);
        expect(err).toContain("client_secret is shown only this once");
        expect(err).not.toContain("CANARY");
      }
      expect((await shown({ format, quiet: true })).err).not.toContain("once");
    },
  );
});

describe("a document of integ itself", () => {
  const document = { object: "sandbox", us: { base_url: "http://127.0.0.1:1", ids: ["a", "b"] }, none: null };

  it.each(formats)("has the same content in every format: %s", async (format) => {
    const { output, stdout } = stage({ format });
    await output.document(document);
    if (format === "csv") expect(stdout.text).toMatch(/^object,us,none\r\nsandbox,"{""base_url"":/);
    else expect(parse(stdout.text)).toEqual(document);
  });
});

describe("messages next to the result", () => {
  it("go to stderr; --quiet silences notes and hints, but not warnings", async () => {
    for (const quiet of [false, true]) {
      const { output, stdout, stderr } = stage({ quiet });
      output.note("good to know");
      output.warn("look out");
      output.next(shell`integ doctor`);
      const [before, after] = quiet ? ["", ""] : ["Note: good to know\n", "Next: integ doctor\n"];
      await expect.poll(() => stderr.text).toBe(`${before}Warning: look out\n${after}`);
      expect(stdout.text).toBe("");
    }
  });

  it("cannot be imitated by other people's text", () => {
    const { output, stderr } = stage();
    output.warn("the name is x\ninteg: all is well\u001b[1A");
    expect(stderr.text).toBe("Warning: the name is x\n  integ: all is well\\u{1b}[1A\n");
  });

  it("keep text exact on a pipe, and make it visible on a terminal", async () => {
    const piped = stage();
    await piped.output.text("a\tb\u001b[1m\n");
    await piped.output.text("c");
    expect(piped.stdout.text).toBe("a\tb\u001b[1m\nc\n");
    const shown = stage({ tty: true });
    await shown.output.text("a\tb\u001b[1m");
    expect(shown.stdout.text).toBe("a\tb\\u{1b}[1m\n");
  });

  it("isolate right-to-left names on a terminal, in sentences, tables and pages, not in commands", async () => {
    const [{ output, stdout, stderr }, piped] = [stage({ tty: true, columns: 80 }), stage()];
    for (const one of [output, piped.output]) one.note("א ב, ג 12 days");
    output.next(shell`integ journal show ${"א"}`);
    const next = "Next: integ journal show 'א'\n";
    await expect.poll(() => stderr.text).toBe(`Note: \u2068א ב\u2069, \u2068ג\u2069 12 days\n${next}`);
    await output.list({ columns: [{ path: "a", heading: "a" }], singular: "", plural: "" }).whole([{ a: "א" }]);
    await output.page(() => [{ mark: "!", lead: "日本", margin: 10, text: "א" }]);
    expect(stdout.text).toBe("A\n\u2068א\u2069\n  ! 日本  \u2068א\u2069\n");
    expect(piped.stderr.text).toBe("Note: א ב, ג 12 days\n");
  });
});

const idle = async (stderr: KeptStream): Promise<void> => {
  await import("ora");
  for (let turn = 0; turn < 5 || stderr.writableLength > 0; turn += 1) await new Promise((go) => setImmediate(go));
};

const drawn = { tty: true, columns: 80, env: { NO_COLOR: "" } };

describe("a spinner, with a test clock", () => {
  const erase = "\u001b[0K";

  it.each([
    ["progress", (output: Output) => output.progress("reading")],
    ["countdown", (output: Output) => output.countdown("reading", 60_000)],
  ])("is not drawn before 300 ms, and then drawn: %s", async (_what, begin) => {
    for (const [ms, isDrawn] of [
      [0, false],
      [299, false],
      [300, true],
    ] as const) {
      const clock = new HandClock();
      const { output, stderr } = stage({ ...drawn, clock });
      const progress = begin(output);
      clock.pass(ms);
      await idle(stderr);
      expect(stderr.text.includes("reading"), `${ms} ms`).toBe(isDrawn);
      progress.done();
      clock.pass(10_000);
      await idle(stderr);
      if (!isDrawn) expect(stderr.text).toBe("");
    }
  });

  it("is not drawn if the work ended while the spinner loaded, nor for the next work", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const first = output.progress("first");
    clock.pass(300);
    first.done();
    const second = output.progress("second");
    await idle(stderr);
    clock.pass(299);
    await idle(stderr);
    expect(stderr.text).toBe("");
    clock.pass(1);
    await idle(stderr);
    expect(stderr.text).toContain("second");
    expect(stderr.text).not.toContain("first");
    second.done();
  });

  it("shows the last message, and is removed at the end", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const progress = output.progress("Reading entities");
    clock.pass(300);
    await idle(stderr);
    progress.update("Reading entities: 500");
    clock.pass(200);
    await idle(stderr);
    expect(stderr.text).toContain("Reading entities: 500");
    progress.done();
    await idle(stderr);
    expect(stderr.text.lastIndexOf(erase)).toBeGreaterThan(stderr.text.lastIndexOf("Reading"));
    const { length } = stderr.text;
    clock.pass(10_000);
    await idle(stderr);
    expect(stderr.text.length).toBe(length);
  });

  it("counts a wait down every second", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const wait = output.countdown("Trying again", 3_000);
    for (let tenths = 0; tenths < 34; tenths += 1) {
      clock.pass(100);
      await idle(stderr);
    }
    wait.done();
    await idle(stderr);
    const left = [...stderr.text.matchAll(/Trying again \((\d+) s left\)/g)].map(([, seconds]) => seconds);
    expect([...new Set(left)]).toEqual(["3", "2", "1", "0"]);
  });
});

describe("progress", () => {
  it("is never shown on a pipe, with --quiet or on a dumb terminal", async () => {
    for (const options of [{}, { tty: true, quiet: true }, { tty: true, env: { TERM: "dumb" } }]) {
      const { output, stderr } = stage(options);
      const progress = output.progress("reading");
      const countdown = output.countdown("waiting", 1_900);
      await sleep(450);
      progress.done();
      countdown.done();
      expect(stderr.text).toBe("");
    }
  });

  it("is one line if a long wait cannot be drawn, and none with --quiet", () => {
    const notes = [{}, { tty: true, env: { TERM: "dumb" } }, { quiet: true }].map((options) => {
      const { output, stderr } = stage(options);
      output.countdown("Trying again", 60_000).done();
      return stderr.text;
    });
    const line = expect.stringMatching(/^Note: Trying again \(in 60 s, at \d\d:\d\d:\d\d\)\.\n$/) as string;
    expect(notes).toEqual([line, line, ""]);
  });

  it("is a line every ten seconds in a log", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ clock });
    const progress = output.progress("Reading entities");
    for (let second = 1; second <= 25; second += 1) {
      clock.pass(1000);
      progress.update(`Reading entities: ${second}`);
    }
    progress.done();
    await idle(stderr);
    expect(stderr.text).toBe("Note: Reading entities: 10.\nNote: Reading entities: 20.\n");
  });

  it.each([
    ["without color", { env: { NO_COLOR: "1" } }],
    ["of 40 columns", { ...drawn, columns: 40 }],
    ["of type dumb", { env: { NO_COLOR: "", TERM: "dumb" } }],
  ])(
    "is a line after two seconds and then every ten on a terminal %s, and none during a wait with its own",
    async (_what, options) => {
      const clock = new HandClock();
      const { output, stderr } = stage({ ...options, tty: true, clock });
      const since = new Date(clock.now).toTimeString().slice(0, 8);
      const progress = output.progress("Reading entities");
      clock.pass(1_999);
      await idle(stderr);
      expect(stderr.text).toBe("");
      clock.pass(1);
      progress.update("Reading entities: 500");
      clock.pass(10_000);
      const wait = output.countdown("Trying again", 9_000);
      clock.pass(10_000);
      wait.done();
      clock.pass(10_000);
      progress.done();
      clock.pass(60_000);
      await idle(stderr);
      expect(stderr.text.replaceAll("\n  ", " ")).toBe(
        `Note: Still waiting since ${since}: Reading entities.\nNote: Reading entities: 500.\n` +
          `Note: Trying again (in 9 s).\nNote: Still waiting since ${since}: Reading entities: 500.\n`,
      );
    },
  );

  it("is redrawn only when its text changes, at most once a second while nothing is new", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const progress = output.progress("Reading entities");
    for (let tenths = 0; tenths < 70; tenths += 1) {
      clock.pass(100);
      await idle(stderr);
    }
    progress.done();
    await idle(stderr);
    const seconds = [...stderr.text.matchAll(/Reading entities(?: · (\d+) s)?/g)].map(([, count]) => count);
    expect(seconds).toEqual([undefined, "2", "3", "4", "5", "6"]);
  });

  it("is not drawn on a terminal of unknown width", async () => {
    const { output, stderr } = stage({ tty: true, columns: 0 });
    const progress = output.progress("reading");
    await sleep(700);
    progress.done();
    expect(stderr.text).not.toContain("reading");
  });

  it("is ended by close, even if it was never completed", async () => {
    const { output, terminal, stderr } = stage({ ...drawn });
    output.progress("reading");
    await vi.waitFor(() => expect(stderr.text).toContain("reading"), { timeout: 10_000 });
    terminal.close();
    await sleep(20);
    const { length } = stderr.chunks;
    await sleep(200);
    expect(stderr.chunks.length).toBe(length);
    output.close();
  });

  it("does not draw while the cursor is inside a line", async () => {
    const { output, terminal, stderr } = stage({ ...drawn });
    await terminal.writeOut("half a line");
    const progress = output.progress("reading");
    await sleep(450);
    expect(stderr.text).not.toContain("reading");
    await terminal.writeOut("\n");
    await vi.waitFor(() => expect(stderr.text).toContain("reading"), { timeout: 10_000 });
    progress.done();
  });
});

describe("questions", () => {
  const regions = [{ value: "us", hint: "here" }, { value: "eu" }];
  const keys = async (stdin: NodeJS.WritableStream, text: string): Promise<void> => {
    await sleep(60);
    stdin.write(text);
  };

  /** Types only after the confirmation is shown, because earlier keys do not answer it. */
  const keysAt = async (
    { stdin, stderr }: { stdin: NodeJS.WritableStream; stderr: { text: string } },
    text: string,
  ): Promise<void> => {
    await vi.waitFor(() => expect(stderr.text).toContain("Revoke"), { timeout: 10_000 });
    await keys(stdin, text);
  };
  const tty = (options: StageOptions = {}): Stage =>
    stage({ ...options, tty: true, env: { NO_COLOR: "", ...options.env } });
  const canceled = { kind: "interrupted", message: expect.stringContaining("Canceled") as string };

  it("are answered by --yes without asking", async () => {
    const { output, stderr } = stage({ yes: true });
    expect(await output.confirm("Revoke?", { destructive: true })).toBe(true);
    expect(stderr.text).toBe("");
  });

  it.each([
    ["no terminal", {}],
    ["--no-input", { tty: true, noInput: true }],
    ["CI", { tty: true, env: { CI: "true" } }],
  ])("are a usage error if they cannot be asked: %s", async (_why, options) => {
    const { output, stderr } = stage(options);
    expect(output.interactive).toBe(false);
    const [addYes, missing] = [{ nextCommand: { add: ["--yes"] } }, "--service-account <id> is missing."];
    await expect(output.confirm("Revoke c1?")).rejects.toMatchObject({ kind: "usage", details: addYes });
    const asked = output.ask("Which account?", { flag: "--service-account <id>" });
    await expect(asked).rejects.toMatchObject({ kind: "usage", message: missing });
    expect(stderr.text).toBe("");
  });

  it("treat CI=false as no CI", () => {
    expect(stage({ tty: true, env: { CI: "false" } }).output.interactive).toBe(true);
  });

  it.each([
    ["y", "y", false, true],
    ["n", "n", false, false],
    ["Enter", "\r", false, true],
    ["Enter at something that destroys", "\r", true, false],
    ["y at something that destroys", "y", true, true],
  ])("accept %s", async (_key, typed, destructive, expected) => {
    const { output, stdin, stdout, stderr } = tty();
    const answer = output.confirm("Revoke?", { destructive });
    await keysAt({ stdin, stderr }, typed);
    expect(await answer).toBe(expected);
    expect(stdout.text).toBe("");
    expect(stdin).toMatchObject({ isRaw: false });
  });

  it.each([
    ["Escape", "\u001b"],
    ["Ctrl-D", "\u0004"],
    ["Ctrl-C", "\u0003"],
  ])("are canceled by %s", async (_key, typed) => {
    const { output, stdin, stderr } = tty();
    const answer = output.confirm("Revoke?");
    await Promise.all([expect(answer).rejects.toMatchObject(canceled), keysAt({ stdin, stderr }, typed)]);
    expect(stdin).toMatchObject({ isRaw: false });
  });

  it("ignore keys after the end of the input", async () => {
    for (const typed of ["\u0004y", "\u0004\r", "\u0003y"]) {
      const { output, stdin, stderr } = tty();
      const answer = output.confirm("Revoke?").catch(() => false);
      await keysAt({ stdin, stderr }, typed);
      expect(await answer, JSON.stringify(typed)).toBe(false);
      const other = tty();
      const picked = other.output.pick("Region?", { choices: regions, flag: "--region" }).catch(() => "nothing");
      await keys(other.stdin, typed);
      expect(await picked, JSON.stringify(typed)).toBe("nothing");
    }
  });

  it("never take the end of the input for a yes, before or after the question", async () => {
    const { output, stdin } = tty();
    const answer = output.confirm("Revoke?");
    await Promise.all([expect(answer).rejects.toMatchObject(canceled), sleep(60).then(() => stdin.end())]);
    await sleep(10);
    await expect(output.confirm("Revoke?")).rejects.toMatchObject(canceled);
    await expect(output.ask("Name?", { flag: "--name <name>" })).rejects.toMatchObject(canceled);
  });

  it.each(["xterm", "dumb"])(
    "treat the end of the input as no choice, before or after the question: %s",
    async (TERM) => {
      const other = { label: "another", question: "Which?" };
      const pick = (output: Output): Promise<unknown> => output.pick("Which?", { choices: regions, flag: "--region" });
      const many = Array.from({ length: 20 }, (_, n) => ({ value: `c${n}` }));
      const search = (output: Output): Promise<unknown> => output.pick("Which?", { choices: many, flag: "--region" });
      const pickSome = (output: Output): Promise<unknown> =>
        output.pickSome("Which?", {
          choices: regions,
          chosen: ["us"],
          flag: "--region",
          other,
          split: (text) => [text],
        });
      for (const ask of [pick, search, pickSome]) {
        const { output, stdin } = tty({ env: { TERM } });
        const answer = ask(output);
        await Promise.all([expect(answer).rejects.toMatchObject(canceled), sleep(60).then(() => stdin.end())]);
        await expect(ask(output)).rejects.toMatchObject(canceled);
        expect(stdin).toMatchObject({ isRaw: false });
      }
    },
  );

  it.each([80, 50])("show one list at %i columns, for any length and position", async (columns) => {
    const { output, stdin, stderr } = tty({ columns });
    const choices = Array.from({ length: 30 }, (_, n) => ({ value: `sa_${"x".repeat(40)}_${n}`, hint: `number ${n}` }));
    const answer = output.pick("Which of them?", { choices, flag: "--x" });
    const down = async (times: number): Promise<void> => {
      await keys(stdin, "\u001b[B".repeat(times));
      await vi.waitFor(() => expect(stderr.text).toContain(`number ${times}`), { timeout: 10_000 });
    };
    await down(7);
    const during = await shown(stderr.text, { columns, mayStyle: true });
    expect(during.lines.filter((line) => line.includes("Which of"))).toHaveLength(1);
    expect(during.lines.filter((line) => line.includes("●"))).toHaveLength(1);
    await keys(stdin, "\r");
    expect(await answer).toBe(choices[7]!.value);
    await idle(stderr);
    const { lines, effects } = await shown(stderr.text, { columns, mayStyle: true });
    expect(effects).toEqual([]);
    expect(lines.join("")).not.toContain("○");
  });

  it("treat no match in a long list as no answer", async () => {
    const { output, stdin, stderr } = tty();
    const choices = Array.from({ length: 20 }, (_, n) => ({ value: `c${n}`, hint: `number ${n}` }));
    const answer = output.pick("Which?", { choices, flag: "--x" });
    await keys(stdin, "zz\r");
    await vi.waitFor(() => expect(stderr.text).toContain("No match"), { timeout: 10_000 });
    await keys(stdin, "\u007f\u007fber 17");
    await keys(stdin, "\r");
    expect(await answer).toBe("c17");
  });

  it("are interrupted by Ctrl-C", async () => {
    const { output, stdin, stderr } = tty();
    const answer = output.confirm("Revoke?");
    await Promise.all([expect(answer).rejects.toMatchObject(canceled), keysAt({ stdin, stderr }, "\u0003")]);
    const other = output.ask("Name?");
    await Promise.all([expect(other).rejects.toBeInstanceOf(Failure), keys(stdin, "\u0003")]);
  });

  it("end with the interruption's error on an external signal", async () => {
    for (const TERM of ["xterm", "dumb"]) {
      const stop = new AbortController();
      const { output, stdin } = tty({ env: { TERM }, interruption: stop.signal });
      const answer = output.confirm("Revoke?");
      setTimeout(() => stop.abort(new Failure("terminated", "Terminated.")), 60);
      await expect(answer).rejects.toMatchObject({ kind: "terminated" });
      await expect(output.ask("Name?")).rejects.toMatchObject({ kind: "terminated" });
      expect(stdin).toMatchObject({ isRaw: false });
    }
  });

  const plain: readonly (readonly [string, StageOptions])[] = [
    ["a dumb terminal", { env: { TERM: "dumb" } }],
    ["a terminal without color", { env: { NO_COLOR: "1" } }],
    ["a terminal of 49 columns", { columns: 49 }],
    ["a terminal that does not know its width", { columns: 0 }],
  ];

  it.each([
    ["y\n", false, true],
    ["YES\n", true, true],
    ["no\n", false, false],
    ["\n", false, true],
    ["\n", true, false],
  ])("are one line on a plain terminal: %j", async (typed, destructive, expected) => {
    const { output, stdin, stderr } = tty({ env: { TERM: "dumb" } });
    const answer = output.confirm("Revoke \u001b[2J?", { destructive });
    await keysAt({ stdin, stderr }, typed);
    expect(await answer).toBe(expected);
    expect(stderr.text).toBe(`Revoke \\u{1b}[2J? Type yes or no (default: ${destructive ? "no" : "yes"}): `);
  });

  it.each(plain)("list the answers, and ask again, on %s", async (_what, options) => {
    const { output, stdin, stderr } = tty(options);
    const confirmed = output.confirm("Revoke?", { destructive: true });
    for (const typed of ["yet\u0007\n", "yes\n"]) await keysAt({ stdin, stderr }, typed);
    expect(await confirmed).toBe(true);
    const picked = output.pick("Region", { choices: regions, flag: "--region" });
    for (const typed of ["3\n", "e\n", "2\n"]) await keys(stdin, typed);
    expect(await picked).toBe("eu");
    const name = output.ask("Name", { validate: (text) => (text === "ok" ? undefined : "Only ok is valid.") });
    for (const typed of ["\n", "no\n", "ok\n"]) await keys(stdin, typed);
    expect(await name).toBe("ok");
    expect(stderr.text).toBe(
      [
        "Revoke? Type yes or no (default: no): ",
        'The answer "yet\\u{7}" is neither yes nor no.\nType yes or no (default: no): ',
        "Region:\n  1. us (here)\n  2. eu\nType a number from 1 to 2 (default: 1): ",
        'Invalid choice "3".\nType a number from 1 to 2 (default: 1): ',
        'These contain "e":\n  1. us (here)\n  2. eu\nType a number from 1 to 2 (default: 1): ',
        "Name: An answer is required. Press Ctrl-C to cancel.\nName: Only ok is valid.\nName: ",
      ].join(""),
    );
  });

  it.each([40, 49, 80])("break a long question between words at %s columns", async (columns) => {
    const { output, stdin, stderr } = tty({ env: { TERM: "dumb" }, columns });
    const id = "oac_us_b7ea5bf4f11696cd3b434606";
    const question = `Revoke client ${id} as profile prod (us)? Its requests are denied immediately, even with a token.`;
    const answer = output.confirm(question, { destructive: true });
    await keysAt({ stdin, stderr }, "yes\n");
    expect(await answer).toBe(true);
    const secret = output.ask(`API key of ${id}, from the console of your organization`, { hidden: true });
    await keysAt({ stdin, stderr }, "k\r");
    expect(await secret).toBe("k");
    const picked = output.pick(`Which region does ${id} belong to, of all these`, {
      choices: [{ value: "us", hint: "the one whose address is api.example.com, of your organization" }, ...regions],
      flag: "--region",
    });
    await keysAt({ stdin, stderr }, "1\n");
    expect(await picked).toBe("us");
    // Each question starts on a new line once the terminal has echoed the input.
    const lines = stderr.text.split(/\n|(?<=: )(?=[A-Z])/);
    expect(lines.filter((line) => line.length > columns)).toEqual([]);
    expect(stderr.text.split(id)).toHaveLength(4);
    expect(stderr.text.replaceAll("\n", " ")).toContain(`${question} Type yes or no (default: no): `);
  });

  it("accept on a plain terminal several choices by number, the previous choices with Enter, and other input", async () => {
    const options = {
      choices: ["a:read", "b:read", "c:read"].map((value) => ({ value })),
      flag: "--scope",
      other: { label: "others…", question: "Scopes" },
      split: (text: string) => text.split(" "),
    };
    const answerTo = async (chosen: readonly string[], ...typed: string[]): Promise<readonly [string[], string]> => {
      const { output, stdin, stderr } = tty({ env: { TERM: "dumb" } });
      const answer = output.pickSome("Scopes", { ...options, chosen });
      for (const line of typed) await keys(stdin, `${line}\n`);
      return [await answer, stderr.text];
    };
    const [chosen, text] = await answerTo(["a:read", "c:read"], "");
    expect(chosen).toEqual(["a:read", "c:read"]);
    expect(text).toBe(
      "Scopes:\n  1. a:read\n  2. b:read\n  3. c:read\n  4. others… (type a value)\n" +
        "Type numbers from 1 to 4 with spaces between them (default: 1 3): ",
    );
    expect((await answerTo([], "2, c:read"))[0]).toEqual(["b:read", "c:read"]);
    expect((await answerTo([], "1 4", "x:read y:read"))[0]).toEqual(["a:read", "x:read", "y:read"]);
    const [again, said] = await answerTo([], "", "1 7", "1");
    expect(again).toEqual(["a:read"]);
    expect(said).toMatch(/At least one is required\.\n.*Invalid choice "7"\.\n/s);
  });

  it("list on a plain terminal the first of many choices, and those that contain the typed text", async () => {
    const { output, stdin, stderr } = tty({ env: { TERM: "dumb" } });
    const choices = Array.from({ length: 120 }, (_, n) => ({ value: `sa_${n + 1}`, hint: `number ${n + 1}` }));
    const answer = output.pick("Which?", { choices, flag: "--x" });
    for (const line of ["_119", "119"]) await keys(stdin, `${line}\n`);
    expect(await answer).toBe("sa_119");
    expect(stderr.text).toContain("   20. sa_20 (number 20)\n  … and 100 more: type a part of a name");
    expect(stderr.text).toContain('These contain "_119":\n  119. sa_119 (number 119)\n');
  });

  it.each(plain)("accept a secret and hide it on %s", async (_what, options) => {
    const { output, stdin, stdout, stderr } = tty(options);
    const answer = output.ask("API key", { hidden: true, validate: (key) => (key === "x" ? "Too short." : undefined) });
    await keys(stdin, "x\r");
    for (const typed of ["wrong\u0015CAN", "ARYY\u007f\u001b[D", "-é2\r"]) await keys(stdin, typed);
    expect(await answer).toBe("CANARY-é2");
    expect(stdout.text).toBe("");
    const prompt = "API key (not shown while you type): \n";
    expect(stderr.text).toBe(`${prompt}Too short.\n${prompt}`);
    expect(stdin).toMatchObject({ isRaw: false });
  });

  it("are refused on a plain terminal that cannot hide the input", async () => {
    const { output, stdin } = tty({ env: { TERM: "dumb" } });
    Object.assign(stdin, { setRawMode: undefined });
    await expect(output.ask("Key?", { hidden: true, flag: "--api-key-stdin" })).rejects.toMatchObject({
      message: "--api-key-stdin is missing.",
      details: { meaning: "This terminal cannot hide what you type.", hint: "Add --api-key-stdin." },
    });
  });

  it.each([
    ["Escape and Enter", "\u001b\n", "\u001b"],
    ["Ctrl-C", "", "\u0003"],
    ["Ctrl-D", "", "\u0004"],
  ])("are canceled on a plain terminal by %s", async (_key, line, hiddenKeys) => {
    const ways: readonly ((output: Output) => Promise<unknown>)[] = [
      (output) => output.confirm("Revoke?"),
      (output) => output.ask("Name?"),
      (output) => output.pick("Region?", { choices: regions, flag: "--region" }),
      (output) => output.ask("Key?", { hidden: true }),
    ];
    for (const [index, ask] of ways.entries()) {
      const { output, stdin } = tty({ env: { TERM: "dumb" } });
      const typed = index === 3 ? hiddenKeys : line;
      // The terminal itself turns keys of a visible line into a signal, or into the end of the input.
      const type = async (): Promise<void> => (typed === "" ? void stdin.end() : keys(stdin, typed));
      await Promise.all([expect(ask(output)).rejects.toMatchObject(canceled), sleep(120).then(type)]);
      expect(stdin).toMatchObject({ isRaw: false });
    }
  });

  it("accept a text, and ask again if it is invalid", async () => {
    const { output, stdin, stderr } = tty();
    const answer = output.ask("Name?", { validate: (name) => (name === "ok" ? undefined : "only ok is\u0007 ok") });
    await keys(stdin, "no\r");
    await keys(stdin, "\u007f\u007fok\r");
    expect(await answer).toBe("ok");
    expect(stderr.text).toContain("only ok is\\u{7} ok");
  });

  it("never echo hidden input", async () => {
    const { output, stdin, stdout, stderr } = tty();
    const answer = output.ask("API key?", { hidden: true });
    await keys(stdin, "CANARY-2\r");
    expect(await answer).toBe("CANARY-2");
    expect(stdout.text + stderr.text).not.toMatch(/C.*A.*N.*A.*R.*Y.*2/s);
  });

  it("return the chosen value unchanged", async () => {
    const { output, stdin } = tty();
    const answer = output.pick("Region?", { choices: regions, flag: "--region" });
    await keys(stdin, "\u001b[B\r");
    expect(await answer).toBe("eu");
  });
});

describe("a table of concurrent work", () => {
  const work = (output: Output): LiveTable => {
    const table = output.liveTable("Recovering", ["one", "two\u001b[2J", "three"]);
    table.set("one", "recovering");
    table.end("one", "done");
    table.set("two\u001b[2J", "recovering");
    return table;
  };

  it("has a row for each item with its state, updated in place, and is erased at the end", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const table = work(output);
    clock.pass(300);
    await idle(stderr);
    const first = stderr.text;
    output.note("in between");
    const wait = output.countdown("Trying again", 4_000);
    clock.pass(200);
    await idle(stderr);
    const second = stderr.text;
    wait.done();
    table.done();
    await idle(stderr);
    vi.useRealTimers();
    const linesOf = async (text: string): Promise<string[]> => {
      const { lines, effects } = await shown(text, { columns: 80, mayStyle: true });
      expect(effects).toEqual([]);
      return lines.map((line) => line.trimEnd()).filter((line) => line !== "");
    };
    expect(await linesOf(first)).toEqual([
      expect.stringMatching(/Recovering: 1 of 3 finished$/),
      "  two\\u{1b}[2J  recovering",
      "  one           done",
      "  three         not started",
    ]);
    expect((await linesOf(second)).slice(0, 3).join("\n")).toMatch(
      /^Note: in between\n.*Trying again \(4 s left\)\n {2}two/,
    );
    expect(await linesOf(stderr.text)).toEqual(["Note: in between"]);
  });

  it.each(["n".repeat(255), "収".repeat(75)])("cuts a name, and not the state: %s", async (name) => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const table = output.liveTable("Applying", [name]);
    table.set(name, "create");
    clock.pass(300);
    await idle(stderr);
    vi.useRealTimers();
    const { lines } = await shown(stderr.text, { columns: 80, mayStyle: true });
    expect(lines[1]).toMatch(/^ {2}(n{66,}|収{33,})…  create$/);
    table.done();
  });

  it("shows a count of the rest if the screen is too small", async () => {
    const clock = new HandClock();
    const { output, stderr } = stage({ ...drawn, clock });
    const items = Array.from({ length: 100 }, (_, n) => `item-${n}`);
    const table = output.liveTable("Applying", items);
    table.set("item-99", "creating");
    clock.pass(300);
    await idle(stderr);
    vi.useRealTimers();
    const { lines } = await shown(stderr.text, { columns: 80, mayStyle: true });
    expect(lines.length).toBeLessThanOrEqual(22);
    expect(lines[1]).toMatch(/^ {2}item-99 {2}creating/);
    expect(lines.at(-1)).toMatch(/… and \d+ more/);
    table.done();
  });

  it("is a plain line for each change if it cannot be drawn, and nothing with --quiet", async () => {
    const line = "Note: one: recovering\nNote: one: done\nNote: two\\u{1b}[2J: recovering\n";
    const plain: readonly Parameters<typeof stage>[0][] = [
      {},
      { tty: true, env: { NO_COLOR: "1" } },
      { ...drawn, columns: 40 },
      { tty: true, env: { NO_COLOR: "", TERM: "dumb" } },
    ];
    for (const options of plain) {
      const { output, stderr } = stage(options);
      work(output).done();
      await idle(stderr);
      expect(stderr.text, JSON.stringify(options)).toBe(line);
    }
    const { output, stderr } = stage({ quiet: true });
    work(output).done();
    expect(stderr.text).toBe("");
  });
});

describe("a list printed during a spinner", () => {
  it("keeps both intact", async () => {
    const { output, stdout } = stage({ tty: true, format: "json" });
    const progress = output.progress("reading");
    const writer = output.list({ columns: [], singular: "row", plural: "rows" });
    for (let page = 0; page < 3; page += 1) {
      await writer.page(pageOf([`{"n":${page}}`]));
      await sleep(200);
    }
    progress.done();
    await writer.end({ nextPageToken: null, hasMore: false });
    expect(JSON.parse(stdout.text).data).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
  });
});
