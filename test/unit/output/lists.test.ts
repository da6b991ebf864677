import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { accessKeyColumns } from "../../../src/commands/keys/keys.ts";
import type { Column, Format, ListView } from "../../../src/output/formats/format.ts";
import { JsonText } from "../../../src/api/json/json-text.ts";
import { pageOf } from "../../../src/output/row-page.ts";
import { stage, type StageOptions } from "./streams.ts";

const view: ListView = {
  columns: [
    { path: "id", heading: "id" },
    { path: "status", heading: "status", kind: "status" },
    { path: "display_name", heading: "name" },
    { path: "created_at", heading: "created", kind: "time" },
  ],
  singular: "entity",
  plural: "entities",
};
const rows = [
  '{"id":"e1","status":"active","display_name":"Ann","created_at":"2026-11-18T12:00:00.000Z","big":12345678901234567890}',
  '{"id":"e2","status":"odd","created_at":null,"display_name":"Bo, \\"x\\"","2":1,"1":2,"__proto__":{"a":1.10}}',
];

function rowsOf(body: string): readonly JsonText[] {
  return JsonText.of(body).parts().get("data")?.items() ?? [];
}

async function printed(options: StageOptions & { pages?: string[][]; hasMore?: boolean; breaks?: boolean } = {}) {
  const { output, stdout, stderr } = stage(options);
  const writer = output.list(view);
  for (const page of options.pages ?? [[rows[0]!], [rows[1]!]]) await writer.page(pageOf(page));
  if (options.breaks) await writer.abandon();
  else await writer.end({ nextPageToken: options.hasMore ? "t/+=" : null, hasMore: options.hasMore ?? false });
  return { out: stdout.text, err: stderr.text, writer, writes: stdout.chunks.length };
}

it("hides a column that says the same in every row on a terminal, unless it is needed", async () => {
  const { output, stdout } = stage({ tty: true });
  const columns = ["id", "operation", "state"].map((path) => ({ path, heading: path, isNeeded: path === "state" }));
  const creator = accessKeyColumns.filter(({ path }) => path === "createdByUserId");
  const row = { operation: "oauth_client.rotate", state: "waiting", createdByUserId: "user_1" };
  await output.list({ ...view, columns: [...columns, ...creator], isWhole: true }).whole([
    { id: "a", ...row },
    { id: "b", ...row },
  ]);
  expect(stdout.text).toBe("ID  STATE\na   waiting\nb   waiting\n");
});

it("a time in a sentence is relative on a terminal only", () => {
  const [shown, piped] = [true, false].map((tty) => stage({ tty }).output.when("2030-01-01T00:00:00Z"));
  expect([shown, piped]).toEqual([expect.stringMatching(/^in .+ \(.+\)$/), "at 2030-01-01T00:00:00Z"]);
});

describe("json", () => {
  it("is the envelope with the rows' own text, on a pipe", async () => {
    const { out } = await printed({ format: "json" });
    expect(out).toBe(`{"object":"list","data":[${rows.join(",")}],"next_page_token":null,"has_more":false}\n`);
  });

  it("contains the token to continue with", async () => {
    const { out } = await printed({ format: "json", hasMore: true });
    expect(out).toMatch(/"next_page_token":"t\/\+=","has_more":true}\n$/);
  });

  it("is one indented document on a terminal, with the same content", async () => {
    const { out } = await printed({ format: "json", tty: true });
    expect(out).toMatch(/^{\n {2}"object": "list",\n {2}"data": \[\n {4}{\n {6}"id": "e1",/);
    expect(out).toContain('"big": 12345678901234567890');
    expect(out).toMatch(/\n {2}],\n {2}"next_page_token": null,\n {2}"has_more": false\n}\n$/);
    expect(JSON.parse(out)).toEqual(JSON.parse((await printed({ format: "json" })).out));
  });

  it("is a complete document when empty", async () => {
    for (const tty of [true, false]) {
      const { out } = await printed({ format: "json", tty, pages: [[]] });
      expect(JSON.parse(out)).toEqual({ object: "list", data: [], next_page_token: null, has_more: false });
    }
  });

  it("never parses as complete if the list stopped, at any page", async () => {
    for (const tty of [true, false]) {
      for (const pages of [[], [[]], [[rows[0]!]], [[rows[0]!], rows]]) {
        const { out } = await printed({ format: "json", tty, pages, breaks: true });
        expect(() => JSON.parse(out)).toThrow(SyntaxError);
        for (const row of pages.flat()) expect(out.replaceAll(/\s/g, "")).toContain(row.replaceAll(/\s/g, ""));
      }
    }
  });
});

describe("ndjson", () => {
  it("is one row per line and one write per page", async () => {
    const { out, writes, writer } = await printed({ format: "ndjson", pages: [rows, [rows[1]!], []] });
    expect(out).toBe(`${rows.join("\n")}\n${rows[1]}\n`);
    expect(writes).toBe(2);
    expect(writer.rowsWritten).toBe(3);
  });

  it("joins a row that spans several lines", async () => {
    const { out } = await printed({ format: "ndjson", pages: [['{\n "a" : [1, 2]\n}', '{"b":" x "}']] });
    expect(out).toBe('{"a":[1,2]}\n{"b":" x "}\n');
  });

  it("ends the last line inside the page's own buffer if there is space", async () => {
    const { output, stdout } = stage({ format: "ndjson" });
    const rows = rowsOf('{"data":[{"a":1},{"a":2}]}');
    const writer = output.list(view);
    await writer.page(rows);
    expect(stdout.text).toBe('{"a":1}\n{"a":2}\n');
    expect(rows[0]?.source.bytes.toString()).toBe('{"data":[{"a":1}\n{"a":2}\n}');
  });
});

describe("ndjson from a body with text after its rows", () => {
  it.each([
    ["rows with white space", '{"data":[{"a": 1},{"a": 2}]}'],
    ["rows apart", '{"data":[{"a":1}, {"a":2}]}'],
  ])("%s", async (_what, text) => {
    const { output, stdout } = stage({ format: "ndjson" });
    await output.list(view).page(rowsOf(text));
    expect(stdout.text).toBe('{"a":1}\n{"a":2}\n');
  });
});

describe("csv", () => {
  it("has the documented fields, and reports others once", async () => {
    const { out, err } = await printed({ format: "csv" });
    expect(out).toBe(
      'id,status,display_name,created_at\r\ne1,active,Ann,2026-11-18T12:00:00.000Z\r\ne2,odd,"Bo, ""x""",\r\n',
    );
    expect(err).toBe("Note: Not in the CSV: big, 2, 1, __proto__. Choose columns with --fields.\n");
  });

  it("has a header when there are no rows", async () => {
    const { out, err } = await printed({ format: "csv", pages: [] });
    expect(out).toBe("id,status,display_name,created_at\r\n");
    expect(err).toBe("Note: No entities.\n");
  });

  it("does not mistake inherited properties for keys", async () => {
    const message = 'No entity has the fields "toString", "constructor".';
    await expect(printed({ format: "csv", fields: ["id", "toString", "constructor"] })).rejects.toThrow(message);
  });

  it("keeps numbers unchanged and nested values as JSON", async () => {
    const fields = ["big", "__proto__", "__proto__.a", "id"];
    const { out, err } = await printed({ format: "csv", fields, pages: [[...rows]] });
    expect(out).toBe('big,__proto__,__proto__.a,id\r\n12345678901234567890,,,e1\r\n,"{""a"":1.10}",1.10,e2\r\n');
    expect(err).toBe("");
  });
});

describe("yaml", () => {
  it("is the envelope, readable back", async () => {
    const { out } = await printed({ format: "yaml", hasMore: true });
    const read = parse(out, { intAsBigInt: true });
    expect(read.data[0]).toMatchObject({ id: "e1", big: 12345678901234567890n });
    expect(Object.keys(read)).toEqual(["object", "data", "next_page_token", "has_more"]);
    expect(read.next_page_token).toBe("t/+=");
    expect(out).toContain("a: 1.10");
    expect(parse((await printed({ format: "yaml", pages: [] })).out)).toEqual({
      object: "list",
      data: [],
      next_page_token: null,
      has_more: false,
    });
  });
});

describe("table", () => {
  it("truncates nothing, has no color on a pipe, and keeps times unchanged", async () => {
    const long = `{"id":"e3","status":"active","display_name":"${"n".repeat(300)}","created_at":"x"}`;
    const { out } = await printed({ env: { NO_COLOR: "" }, pages: [[rows[0]!], [rows[1]!, long]] });
    expect(out.split("\n")).toEqual([
      "ID  STATUS  NAME  CREATED",
      "e1  active  Ann   2026-11-18T12:00:00.000Z",
      'e2  odd     Bo, "x"  -',
      `e3  active  ${"n".repeat(300)}  x`,
      "",
    ]);
  });

  it("fits a terminal, with relative times", async () => {
    const long = `{"id":"ent_0123456789","status":"active","display_name":"${"n".repeat(300)}","created_at":"2026-11-21T11:00:00Z"}`;
    const { out } = await printed({ tty: true, columns: 60, pages: [[long], [rows[0]!]] });
    const lines = out.trimEnd().split("\n");
    expect(lines[1]).toBe(`ent_0123456789  active  ${"n".repeat(18)}…  60 minutes ago`);
    expect(lines[2]).toBe(`e1              active  Ann                  3 days ago`);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
  });

  it.each([40, 80, 100, 120, 200])("wraps sentences at %i columns, and truncates none", async (columns) => {
    const sentences: ListView = {
      columns: [
        { path: "id", heading: "id" },
        { path: "note", heading: "note", kind: "sentence" },
        { path: "at", heading: "at" },
      ],
      singular: "row",
      plural: "rows",
    };
    const note =
      "The service responded with a redirect, which integ does not follow: check the address of the profile.";
    const { output, stdout } = stage({ tty: true, columns });
    const list = output.list(sentences);
    await list.page(pageOf([JSON.stringify({ id: "ent_with_a_long_id", note, at: "here" })]));
    await list.end({ nextPageToken: null, hasMore: false });
    // oxlint-disable-next-line no-control-regex
    const lines = stdout.text
      .replaceAll(/\u001b\[\d+m/g, "")
      .trimEnd()
      .split("\n");
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns);
    const words = lines
      .slice(1)
      .join(" ")
      .split(/\s+/)
      .filter((word) => note.split(" ").includes(word));
    expect(words.join(" ")).toBe(note);
  });

  it("puts columns that do not fit a narrow terminal below the row, omits details, and says so", async () => {
    const [id, status] = [
      { path: "id", heading: "id" },
      { path: "status", heading: "status", kind: "status" } as const,
    ];
    const created = { path: "created_at", heading: "created", kind: "time" } as const;
    const shown = async (columns: readonly Column[], row: string): Promise<string[]> => {
      const { output, stdout, stderr } = stage({ tty: true, columns: 24 });
      const list = output.list({ columns, singular: "row", plural: "rows" });
      await list.page(pageOf([row]));
      await list.end({ nextPageToken: null, hasMore: false });
      return [stdout.text, stderr.text];
    };
    const row = '{"id":"e1","status":"active","created_at":"2026-11-18T12:00:00Z","made.by":"ada"}';
    const below = await shown([id, status, created], row);
    expect(below).toEqual(["ID  STATUS\ne1  active\n  created 3 days ago\n", ""]);
    const other = { path: "resource_id", heading: "resource", isDetail: true };
    const whole = await shown([id, other, status], `{"id":"e1","resource_id":"${"r".repeat(13)}","status":"active"}`);
    expect(whole).toEqual([`ID  STATUS\ne1  active\n  resource ${"r".repeat(13)}\n`, ""]);
    const [out, err] = await shown([id, { ...created, isDetail: true }, status], row);
    expect(out).toBe("ID  STATUS\ne1  active\n");
    expect(err?.replaceAll("\n  ", " ")).toBe(
      "Note: Hidden columns: created_at (no space). To see them: --fields id,created_at\n",
    );
    const none = row.replace(/"2026[^"]*"/, "null");
    for (const last of [created, { ...created, isDetail: true }])
      expect(await shown([id, status, last], none)).toEqual(["ID  STATUS\ne1  active\n", ""]);
  });

  it("never truncates a value from a fixed set, on later pages either", async () => {
    const { output, stdout } = stage({ tty: true, columns: 44 });
    const columns = ["id", "operation", "name"].map((path) => ({ path, heading: path }));
    const list = output.list({ columns, singular: "row", plural: "rows" });
    for (const operation of ["oauth_client.create", "oauth_client.revoke_all"])
      await list.page(pageOf([JSON.stringify({ id: "e1", operation, name: "a name that is longer than its column" })]));
    await list.end({ nextPageToken: null, hasMore: false });
    expect(stdout.text).toContain("oauth_client.create  ");
    expect(stdout.text).toContain("oauth_client.revoke_all  ");
    expect(stdout.text).toContain("a name that is lon…");
  });

  it("measures wide and narrow characters", async () => {
    const pages = [
      ['{"id":"山田","status":"e\u0301","display_name":"🙂x"}', '{"id":"\\u5c71","status":"ab","display_name":"y"}'],
    ];
    const { out } = await printed({ tty: true, pages });
    expect(out.split("\n").slice(1, 3)).toEqual(["山田  e\u0301       🙂x   -", "山    ab      y     -"]);
  });

  it("truncates between graphemes", async () => {
    const { out } = await printed({
      tty: true,
      columns: 20,
      fields: ["display_name"],
      pages: [[`{"display_name":"${"山".repeat(30)}"}`]],
    });
    expect(out.split("\n")[1]).toBe(`${"山".repeat(9)}…`);
  });

  it("colors a status, whose word is the same without color", async () => {
    const { out } = await printed({ tty: true, env: { NO_COLOR: "" } });
    expect(out).toContain("\u001b[32mactive\u001b[39m");
    expect(out).not.toMatch(/\u001b\[\d+modd/);
    expect((await printed({ tty: true })).out).not.toContain("\u001b");
  });

  it("shows an expired key in red by the service's clock; JSON and CSV keep the service's status", async () => {
    const at = Date.parse("2026-11-21T02:00:00Z");
    const columns = [
      { path: "id", heading: "id" },
      { path: "status", heading: "status", kind: "status", expiry: "expiresAt" },
    ] as const;
    const ends = ["2026-11-21T01:59:59Z", "2026-11-21T02:00:01Z", null, "no time"];
    const keys = [
      ...ends.map((expiresAt) => ({ status: "active", expiresAt })),
      { status: "revoked", expiresAt: ends[0] },
    ];
    const shown = async (more: StageOptions, nowMs: number): Promise<string> => {
      const { output, stdout } = stage(more);
      const list = output.list({ columns, singular: "key", plural: "keys", nowMs });
      await list.page(pageOf(keys.map((key, index) => JSON.stringify({ id: `k${index}`, ...key }))));
      await list.end({ nextPageToken: null, hasMore: false });
      return stdout.text;
    };
    const words = async (nowMs: number, fields?: string[]): Promise<string[]> =>
      (await shown({ fields }, nowMs))
        .split("\n")
        .slice(1, -1)
        .map((line) => line.split(/ +/).at(-1)!);
    expect(await words(at)).toEqual(["expired", "active", "active", "active", "revoked"]);
    expect(await words(at + 60_000, ["status"])).toEqual(["expired", "expired", "active", "active", "revoked"]);
    expect(await shown({ tty: true, env: { NO_COLOR: "" } }, at)).toContain("k0  \u001b[31mexpired\u001b[39m");
    for (const format of ["json", "ndjson", "csv", "yaml"] as const)
      expect(await shown({ format }, at)).not.toContain("expired");
    const { output, stdout } = stage();
    await output.resource(JSON.stringify({ id: "k0", ...keys[0] }), { columns, nowMs: at });
    expect(stdout.text).toMatch(/status +expired/);
  });

  it("below a narrow row says `expired`, and `never` for null", async () => {
    const { output, stdout } = stage({ tty: true, columns: 40 });
    const columns = [
      { path: "id", heading: "id" },
      { path: "used", heading: "last used", kind: "time", none: "never" },
      { path: "end", heading: "expires", kind: "time", none: "never" },
    ] as const;
    const list = output.list({ columns, singular: "key", plural: "keys" });
    const ends = ["2026-11-01T12:00:00Z", null];
    await list.page(pageOf(ends.map((end) => JSON.stringify({ id: "k".padEnd(32, "0"), used: null, end }))));
    await list.end({ nextPageToken: null, hasMore: false });
    expect(stdout.text).toMatch(
      /^ID\n.*\n {2}last used never · expired \d+ days ago\n.*\n {2}last used never · expires never\n/,
    );
  });

  it.each([
    [60, /^ID +STATUS\nk0+ +active\n {2}name n{52}…\n$/],
    [30, /^ID\n.*\nNAME +n{21}…\nSTATUS +active\n$/],
  ])("cuts a long name that has no column at %i columns", async (columns, form) => {
    const { output, stdout } = stage({ tty: true, columns });
    const fields = ["id", "name", "status"].map((path) => ({ path, heading: path }));
    const row = { id: "k".padEnd(40, "0"), name: "n".repeat(100), status: "active" };
    await output.list({ columns: fields, singular: "row", plural: "rows" }).whole([row]);
    expect(stdout.text).toMatch(form);
  });

  it("names hidden columns once in a run, after the table", async () => {
    const { output, stderr } = stage({ tty: true, columns: 120 });
    const columns = ["id", "status"].map((path) => ({ path, heading: path }));
    const page = pageOf(["a", "b"].map((id) => JSON.stringify({ id, status: "active" })));
    for (const before of [
      "",
      "Note: Hidden columns: status (active in every row). To see them: --fields id,status\n",
    ]) {
      const list = output.list({ columns, singular: "row", plural: "rows", isWhole: true });
      await list.page(page);
      expect(stderr.text).toBe(before);
      await list.end({ nextPageToken: null, hasMore: false });
    }
    expect(stderr.text.match(/Hidden/g)).toHaveLength(1);
  });

  it("reports an empty list in words, and prints only its heading on a pipe", async () => {
    expect(await printed({ tty: true, pages: [] })).toMatchObject({ out: "", err: "Note: No entities.\n" });
    expect(await printed({ pages: [] })).toMatchObject({
      out: "ID  STATUS  NAME  CREATED\n",
      err: "Note: No entities.\n",
    });
  });
});

describe("every format", () => {
  const formats: Format[] = ["table", "json", "ndjson", "csv", "yaml"];

  it("keeps the requested fields, in order", async () => {
    const fields = ["big", "id"];
    const out = async (format: Format): Promise<string> => (await printed({ format, fields })).out;
    expect(await out("table")).toBe("BIG                   ID\n12345678901234567890  e1\n-                     e2\n");
    expect(await out("ndjson")).toBe('{"big":12345678901234567890,"id":"e1"}\n{"big":null,"id":"e2"}\n');
    expect(await out("json")).toContain('"data":[{"big":12345678901234567890,"id":"e1"},{"big":null,"id":"e2"}]');
    expect(await out("csv")).toBe("big,id\r\n12345678901234567890,e1\r\n,e2\r\n");
    expect(await out("yaml")).toContain("  - big: 12345678901234567890\n    id: e1\n  - big: null\n    id: e2\n");
  });

  it.each(formats)("accepts documented fields that no row has yet, and those of the first rows: %s", async (format) => {
    const late = [['{"id":"e1"}'], ['{"id":"e2","display_name":"Ann"}']];
    expect((await printed({ format, fields: ["display_name"], pages: late })).err).toBe("");
    expect((await printed({ format, fields: ["name", "big"], pages: [[], [...rows]] })).err).toBe("");
    const warning = 'Warning: No entity has the field "display_name".\n';
    expect((await printed({ format, fields: ["display_name"], pages: [['{"id":"e1"}']], quiet: true })).err).toBe(
      warning,
    );
    expect((await printed({ format, fields: ["status"], pages: [] })).err).toBe("Note: No entities.\n");
  });

  it.each(formats)("refuses an unknown field before it prints anything: %s", async (format) => {
    const after = async (fields: string[], what: "list" | "empty" | "report" | "read" | "made"): Promise<void> => {
      const { output, stdout } = stage({ format, fields });
      try {
        if (what === "read" || what === "made")
          return await output.resource('{"id":"e1"}', { columns: [], isRead: what === "read" });
        const writer = what === "report" ? output.report(view).list : output.list(view);
        await writer.page([]);
        if (what !== "empty") await writer.page(pageOf(rows));
        await writer.end({ nextPageToken: null, hasMore: false });
      } catch (error) {
        expect(stdout.text).toBe("");
        throw error;
      }
    };
    for (const what of ["list", "empty", "read"] as const) {
      await expect(after(["id", "emial", "nome"], what)).rejects.toMatchObject({
        kind: "usage",
        message: expect.stringMatching(/^(No entity has the|The result has no) fields "emial", "nome"\.$/),
      });
      await expect(after(["id", "idd"], what)).rejects.toMatchObject({ details: { meaning: undefined } });
    }
    await expect(after(["display_nam"], "empty")).rejects.toMatchObject({
      details: { meaning: 'Did you mean "display_name"?' },
    });
    await expect(after(["bgi"], "list")).rejects.toMatchObject({ details: { meaning: 'Did you mean "big"?' } });
    // The result of a change is shown whatever fields were requested.
    for (const what of ["report", "made"] as const) await after(["id", "emial"], what);
  });

  it.each(formats)("writes to a file as to a pipe: %s", async (format) => {
    const piped = await printed({ format });
    const { output, stdout } = stage({ format, tty: true, env: { NO_COLOR: "" } });
    let file = "";
    const writer = output.list(view, {
      sink: {
        write: async (data) => {
          file += data.toString();
        },
      },
      rowsBefore: 0,
      format,
    });
    for (const row of rows) await writer.page(pageOf([row]));
    await writer.end({ nextPageToken: null, hasMore: false });
    expect(file).toBe(piped.out);
    expect(stdout.text).toBe("");
  });

  it.each(formats)("accepts rows that are not objects: %s", async (format) => {
    const { out } = await printed({ format, pages: [['"text"', "[1]", "null", "7"]] });
    expect(out).not.toBe("");
  });
});

describe("a list with unknown columns", () => {
  const shown = async (options: StageOptions & { pages: string[][] }) => {
    const { output, stdout, stderr } = stage(options);
    const writer = output.list({ columns: [], singular: "row", plural: "rows" });
    for (const page of options.pages) await writer.page(pageOf(page));
    await writer.end({ nextPageToken: null, hasMore: false });
    return [stdout.text, stderr.text];
  };
  const pages = [[], ['{"a.b":1,"c":"x"}', '{"d":{"e":[1]}}'], ['{"c":"y","later":2}']];

  it("has each key of the first rows as a column in a table", async () => {
    const [out] = await shown({ format: "table", pages });
    expect(out).toBe('A.B  C  D\n1    x  -\n-    -  {"e":[1]}\n-    y  -\n');
  });

  it("has them in CSV, and reports later keys", async () => {
    const [out, err] = await shown({ format: "csv", pages });
    expect(out).toBe('a.b,c,d\r\n1,x,\r\n,,"{""e"":[1]}"\r\n,y,\r\n');
    expect(err).toContain("later");
  });

  it("prints nothing if it is empty", async () => {
    for (const format of ["table", "csv", "json", "ndjson", "yaml"] as const)
      expect((await shown({ format, pages: [[]] }))[1]).toBe("Note: No rows.\n");
    for (const format of ["table", "csv"] as const) expect((await shown({ format, pages: [[]] }))[0]).toBe("");
  });
});
