import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ListTarget } from "../../src/output/formats/format.ts";
import { view } from "../../src/commands/report/report.ts";
import { actorOf } from "../../src/journal/actor.ts";
import { html } from "../../src/output/formats/html.ts";
import { pageOf } from "../../src/output/row-page.ts";
import { longJournal, writeJournal } from "../support/long-journal.ts";
import { outputFaults } from "../support/check-output.ts";
import { Home, root } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";
import { fillDisk, mountSmallDisk } from "../support/small-disk.ts";
import { isMissing } from "../support/tools.mjs";

const service = await serviceOfFile();
function home(env: Readonly<Record<string, string>> = {}): Home {
  return homeOfTest({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token, ...env });
}

type Row = Readonly<
  Record<"kind" | "id", string> & Partial<Record<"name" | "note" | "proof" | "owner" | "policy_item", string>>
> & {
  readonly last_used_at?: string | null;
};

const rowsIn = (text: string): Row[] => (JSON.parse(text) as { data: Row[] }).data;

async function withClient(at: Home, file = "client.secret"): Promise<string> {
  const created = await at.integ(creationWords(service, "--json", "--secret-file", file, "--new"));
  return (JSON.parse(created.stdout) as { id: string }).id;
}

describe("integ report", () => {
  it("shows every credential with its secret's destination, and names what it cannot know", async () => {
    const at = home();
    const id = await withClient(at);
    const key = ["keys", "create", "--name", "late", "--expires-in", "30d", "--secret-command", "exit 1"];
    expect((await at.integ(key)).code).toBe(12);
    const { stdout, stderr } = await at.integ(["report", "--json"]);
    const rows = rowsIn(stdout);
    expect(rows.find(({ proof }) => /^not delivered: .* integ journal claim/.test(proof ?? ""))?.note).toMatch(
      /^Never used.$/,
    );
    expect(rows[0], stderr).toMatchObject({ kind: "report", owner: "profile env (us)" });
    for (const fact of [service.us.base_url, "journal"]) expect(rows[0]?.note).toContain(fact);
    expect(rows[0]?.note).toMatch(/sha256:[0-9a-f]{64}/);
    expect(rows.find((row) => row.id === id)).toMatchObject({
      kind: "oauth_client",
      owner: service.us.service_account_id,
      delivered_to: [expect.stringContaining("client.secret")],
      proof: "written and synced",
    });
    const { data } = JSON.parse((await at.integ(["keys", "list", "--json"])).stdout) as { data: { id: string }[] };
    expect(rows.filter(({ kind }) => kind === "access_key").map((row) => row.id)).toEqual(data.map((key) => key.id));
    const unknown = rows.filter(({ kind }) => kind === "unknown").map((row) => row.id);
    expect(unknown).toEqual(["oauth_clients", "policy", "exceptions", "changes"]);
    expect(stdout).not.toContain(readFileSync(at.path("client.secret"), "utf8"));
  });

  it("has the changes since a date", async () => {
    const at = home({ INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
    expect((await at.integ(["oauth-clients", "rotate", await withClient(at), "--secret-file", "b"])).code).toBe(0);
    const changes = async (): Promise<Row[]> =>
      rowsIn((await at.integ(["report", "--json", "--since", "2020-01-01"])).stdout).filter((r) => r.kind === "change");
    const rows = await changes();
    expect(rows.map(({ name }) => name)).toEqual(["create", "rotate", "create"].map((verb) => `oauth_client.${verb}`));
    const { user, host } = actorOf(process.env);
    for (const { owner } of rows) expect(owner).toMatch(new RegExp(`^${user}@${host}, profile env`));
    expect(rows[0]?.note).toMatch(new RegExp(`^oac_\\w+, \\S+, part of ${rows[1]?.id}$`));
    renameSync(at.path("state", "journal.ndjson"), at.path("state", "archive.ndjson"));
    expect(await changes()).toEqual(rows);
    const other = { INTEG_BASE_URL: service.eu.base_url, INTEG_ORGANIZATION_ID: service.eu.organization_id };
    const elsewhere = await at.integ(["report", "--json", "--since", "2020-01-01"], { env: other });
    expect(rowsIn(elsewhere.stdout).map(({ kind }) => kind)).not.toContain("change");
    expect(elsewhere.stdout).toContain("Only changes of this journal are included");
    for (const wrong of ["0", "0d", "yesterday", "2026-02-30", "2026-07-01T10:00:00", "2999-01-01"])
      expect((await at.integ(["report", "--since", wrong])).code, wrong).toBe(2);
  });

  it("has these keys in a row of each kind, and says when a key was last used", async () => {
    const at = home();
    const scoped = `service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    secret: { file: a.secret }`;
    const key = "type: service_account\n    scopes: ['push-ingest:*']\n    secret: { file: b.secret }";
    const text = `version: 1\nid: pol_04dea76e76f3a978\noauth_clients:\n  loader:\n    ${scoped}\naccess_keys:\n  ci:\n    ${key}\n`;
    writeFileSync(at.path("integ.yaml"), text);
    const applied = await at.integ(["apply", "--yes"]);
    expect(applied.code, applied.stderr).toBe(0);
    const rows = rowsIn((await at.integ(["report", "--json", "--since", "2020-01-01"])).stdout);
    const { data } = JSON.parse((await at.integ(["keys", "list", "--json"])).stdout) as {
      data: { id: string; lastUsedAt: string | null }[];
    };
    const times = rows.flatMap(({ kind, id, last_used_at }) => (kind === "access_key" ? [[id, last_used_at]] : []));
    expect(times).toEqual(data.map(({ id, lastUsedAt }) => [id, lastUsedAt]));
    expect(times.some(([, time]) => typeof time === "string")).toBe(true);
    const delivered = "delivered_to? proof? policy_item?";
    // The schema requires the keys without a question mark.
    const keys = {
      report: "kind id owner created_at note",
      oauth_client: `kind id owner? permissions? status created_at? ${delivered} note`,
      access_key: `kind id name? owner? permissions? status? created_at? last_used_at? expires_at? ${delivered} note?`,
      policy_item: "kind id owner? permissions status policy_item note",
      change: "kind id name owner status created_at policy_item? note?",
      unknown: "kind id note",
    };
    for (const [kind, names] of Object.entries(keys)) {
      const row = rows.find((one) => one.kind === kind && (kind !== "access_key" || one.policy_item === "ci"))!;
      const faults = (name: string): string[] => {
        const said = { code: 0, stdout: JSON.stringify({ ...row, [name]: undefined }), stderr: "" };
        return outputFaults(["report", "--ndjson"], {}, { said });
      };
      const found = Object.keys(row).map((name) => (faults(name).length > 0 ? name : `${name}?`));
      expect(found.toSorted(), kind).toEqual(names.split(" ").toSorted());
    }
  });

  it("has what moved to the journal's archive", async () => {
    const at = home();
    const id = await withClient(at);
    expect((await at.integ(["oauth-clients", "revoke", id, "--yes"])).code).toBe(0);
    const created = await at.integ(["keys", "create", "--name", "archived", "--secret-file", "key.secret", "--json"]);
    const key = (JSON.parse(created.stdout) as { id: string }).id;
    const rows = async (): Promise<Row[]> =>
      rowsIn((await at.integ(["report", "--json"])).stdout).filter((row) => row.id === id || row.id === key);
    const before = await rows();
    expect(before).toMatchObject([{ status: "revoked" }, { delivered_to: [expect.stringContaining("key.secret")] }]);
    renameSync(at.path("state", "journal.ndjson"), at.path("state", "archive.ndjson"));
    expect(await rows()).toEqual(before);
  });

  it("marks rows from another machine's journal as untrusted, and warns", async () => {
    const [one, other] = [home(), home()];
    const id = await withClient(one);
    await one.integ(["journal", "export", "--out", one.path("journal.ndjson")]);
    expect((await other.integ(["journal", "import", one.path("journal.ndjson")])).code).toBe(0);
    const { stdout, stderr } = await other.integ(["report", "--json", "--since", "2020-01-01"]);
    expect(stderr).toContain("is untrusted");
    const [client, change] = [(row: Row) => row.id === id, (row: Row) => row.kind === "change"].map((is) =>
      rowsIn(stdout).find(is),
    );
    expect(client?.proof).toBe("untrusted: written and synced");
    for (const row of [client, change]) expect(row?.note).toMatch(/^Untrusted: .*not proven/);
    expect((await one.integ(["report", "--json"])).stdout).not.toContain("ntrusted");
  });

  it("has revoked clients, clients that cannot be read, missing items and accepted exceptions", async () => {
    const at = home();
    const [revoked, broken] = [await withClient(at), await withClient(at, "other.secret")];
    expect((await at.integ(["oauth-clients", "revoke", revoked, "--yes"])).code).toBe(0);
    const { data } = JSON.parse((await at.integ(["keys", "list", "--json"])).stdout) as { data: { id: string }[] };
    const waived = { rule: "no_expiry", key: data[0]!.id, until: "2026-12-31", reason: "replaced soon" };
    writeFileSync(at.path("waivers.json"), JSON.stringify({ waivers: [waived, { ...waived, key: "ak_none" }] }));
    const item = `service_account: ${service.us.service_account_id}\n    scopes: [entity:read]\n    secret: { file: a.secret }`;
    writeFileSync(
      at.path("integ.yaml"),
      `version: 1\nid: pol_04dea76e76f3a978\noauth_clients:\n  loader:\n    ${item}\n`,
    );
    await service.fault(`GET /v1/oauth_clients/${broken} status=500`);
    onTestFinished(() => service.calm());
    const ended = await at.integ(["report", "--json", "--waivers", "waivers.json", "--retry-for", "0"]);
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining(`The client ${broken} could not be read`)]);
    const rows = rowsIn(ended.stdout);
    const rowOf = (id: string): Row | undefined => rows.find((row) => row.id === id);
    expect(rowOf(revoked)).toMatchObject({ status: "revoked", owner: service.us.service_account_id });
    expect(rowOf(broken)).toMatchObject({ kind: "unknown", note: expect.stringContaining("could not be read") });
    expect(rowOf("loader")).toMatchObject({ kind: "policy_item", status: "missing", permissions: ["entity:read"] });
    expect(rowOf(data[0]!.id)?.note).toContain("no_expiry: accepted until 2026-12-31: replaced soon.");
    expect(rowOf("ak_none")?.note).toContain("No such key was listed.");
    expect(rows[0]?.note).toMatch(/ with access key .* of organization \S+ at http/);
    const [, ...others] = JSON.parse(ended.stdout).data as unknown[];
    const digest = createHash("sha256").update(JSON.stringify(others)).digest("hex");
    expect(rows[0]?.note).toContain(digest);
    expect(rows.filter(({ note }) => note === "")).toEqual([]);
  });

  it("reports that the keys could not be listed, and shows the rest", async () => {
    const at = homeOfTest(service.env);
    const ended = await at.integ(["report", "--json"]);
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("The access keys could not be listed: ")]);
    expect(rowsIn(ended.stdout).find(({ id }) => id === "access_keys")?.kind).toBe("unknown");
  });

  it("has the same rows in each format, and writes a file completely or not at all", async () => {
    const at = home();
    await withClient(at);
    const ids = rowsIn((await at.integ(["report", "--json"])).stdout)
      .slice(1)
      .map(({ id }) => id);
    for (const name of ["r.html", "r.csv", "r.json", "r.md"]) {
      const ended = await at.integ(["report", "--out", name]);
      expect([ended.code, ended.stdout], ended.stderr).toEqual([0, ""]);
      const text = readFileSync(at.path(name), "utf8").replaceAll("\\", "");
      for (const id of ids) expect(text, name).toContain(id);
    }
    const before = readFileSync(at.path("r.html"));
    // No service is at this address: integ must refuse the commands before it sends a request.
    const env = { INTEG_BASE_URL: "http://127.0.0.1:1" };
    const refused = async (...words: string[]): Promise<string> => {
      const { code, stderr } = await at.integ(["report", ...words], { env });
      expect(code, stderr).toBe(2);
      return stderr;
    };
    expect(await refused("--out", "r.html")).toContain("--out r-2.html");
    expect(await refused("-o", "csv", "--out", "s.html")).toContain("does not fit");
    expect(await refused("-o", "md")).toContain("Did you mean markdown?");
    for (const words of [["report"], ["status"], ["doctor"], ["keys", "audit"], ["policy", "init"]]) {
      const ended = await at.integ([...words, "--fields", "nope"], { env });
      expect([ended.code, ended.stderr]).toEqual([2, expect.stringMatching(/^Error: .*no field "nope"/)]);
    }
    expect(readFileSync(at.path("r.html"))).toEqual(before);
    expect(await refused("--out", "no-folder/r.html")).toContain("mkdir -p no-folder");
    expect(existsSync("/dev/full") && (await at.integ(["report", "--out", "/dev/full"])).code).not.toBe(0);
    expect(readdirSync(at.folder).filter((name) => name.startsWith("r."))).toHaveLength(4);
  });
});

it("leaves no partial report on a full disk", async (context) => {
  const disk = mountSmallDisk(512, context);
  fillDisk(disk, 0);
  for (const name of ["r.html", "r.csv"]) {
    const { code, stderr } = await home().integ(["report", "--out", join(disk, name)]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Nothing of it was written.")]);
  }
  expect(readdirSync(disk)).toEqual(["filling"]);
});

async function listening(body: (path: string) => unknown): Promise<string> {
  const server = createServer(({ url = "" }, response) => response.end(JSON.stringify(body(url))));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => server.close().closeAllConnections());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("3,000 keys take 150 MB at most", async () => {
  const key = { keyType: "service_account", status: "active", scopes: ["*"], createdAt: "2019-01-01T00:00:00Z" };
  const life = { lastUsedAt: null, expiresAt: "2020-01-01T00:00:00Z" };
  const keys = Array.from({ length: 3000 }, (_, n) => ({ ...key, ...life, id: `ak_${n}`, name: `key ${n}` }));
  const at = home({ INTEG_BASE_URL: await listening(() => keys) });
  const env = { NODE_OPTIONS: `--require=${join(root, "bench/peak-memory.cjs")}`, BENCH_PEAK_FILE: at.path("peak") };
  for (const name of ["r.html", "r.csv"]) {
    const { code, stderr } = await at.spawned(["report", "--out", name], { env });
    expect(code, stderr).toBe(0);
    expect(Number(readFileSync(at.path("peak"), "utf8")) * 1024).toBeLessThan(150e6);
    expect(readFileSync(at.path(name), "utf8")).toMatch(/key 2999.*[,>]expired[,<]/s);
  }
}, 60_000);

it("3,000 clients and their changes take 150 MB at most", async () => {
  const life = { status: "active", scopes: ["entity:read"], created_at: "2026-06-01T00:00:00Z" };
  const client = { object: "oauth_client", service_account_id: "sa_1", client_id: "cid_1", ...life };
  const base_url = await listening((path) => (path.includes("oac_") ? { ...client, id: path.split("/").at(-1) } : []));
  const at = home({ INTEG_BASE_URL: base_url });
  const intent = { base_url, organization_id: service.us.organization_id, region: "us" } as const;
  writeJournal(at.path("copy.ndjson"), longJournal(3000, { isSettled: true, intent }));
  expect((await at.spawned(["journal", "import", "copy.ndjson", "--trust", "--yes"])).code).toBe(0);
  renameSync(at.path("state", "journal.ndjson"), at.path("state", "archive.ndjson"));
  const env = { NODE_OPTIONS: `--require=${join(root, "bench/peak-memory.cjs")}`, BENCH_PEAK_FILE: at.path("peak") };
  for (const name of ["r.html", "r.csv"]) {
    const { code, stderr } = await at.spawned(["report", "--since", "2020-01-01", "--out", name], { env });
    expect([code, stderr]).toEqual([0, `Note: The report is in ${name}.\n`]);
    expect(Number(readFileSync(at.path("peak"), "utf8")) * 1024).toBeLessThan(150e6);
    expect(readFileSync(at.path(name), "utf8").match(/oauth_client\.create/g)).toHaveLength(3000);
  }
}, 120_000);

const hostile = `</td><script>document.title="hacked"</script><img src=x onerror='document.title="hacked"'>"&'`;

/** A report in which the first credential has a hostile name, and the second a long name. */
async function page(count: number): Promise<string> {
  let text = "";
  const sink = { write: async (data: string | Buffer) => void (text += data.toString()) };
  const target = { sink, now: () => Date.parse("2026-11-27T00:00:00Z") } as unknown as ListTarget;
  const list = html.list(view, target);
  const rows = Array.from({ length: count }, (_, index) => ({
    kind: "access_key",
    id: `ak_000000000000${index}`,
    name: [hostile, "😀".repeat(14) + "n".repeat(230)][index] ?? `key ${index}`,
    owner: "service-account-owner@us.sandbox.example",
    permissions: ["entity:read", "entity:write", "cohort:read"],
    status: ["active", "active", "active", "revoked", "expired"][index % 5],
    created_at: `2026-0${1 + (index % 9)}-01T00:00:00.000Z`,
    last_used_at: "2026-11-01T00:00:00.000Z",
    expires_at: index % 3 === 0 ? null : `2027-0${1 + (index % 9)}-01T00:00:00.000Z`,
    delivered_to: ["/srv/build/secrets/production/client.secret"],
    proof: "written and synced",
    policy_item: "warehouse-loader",
    note: "n".repeat(200),
  }));
  await list.page(pageOf(rows.map((row) => JSON.stringify(row))));
  await list.end({ nextPageToken: null, hasMore: false });
  return text;
}

const chromium = "chromium";

interface Shown {
  readonly width: number;
  /** Pixels by which the page, and its table (`tableTooWide`), are too wide. */
  readonly tooWide: number;
  readonly tableTooWide: number;
  readonly textHeight: number;
  /** The number of cells with text below their label. */
  readonly misplaced: number;
  readonly hasName: boolean;
  readonly title: string;
  readonly visible: readonly string[];
  /** Ids of all rows, in their order after two clicks on the column of the ids. */
  readonly sorted: readonly string[];
}

const measure = `function measure({contentDocument: page, contentWindow: {innerWidth: width}}) {
  const all = (s) => [...page.querySelectorAll(s)], box = page.querySelector("table").parentNode, {documentElement: whole} = page;
  const ids = (rows) => rows.map((row) => row.cells[1].textContent);
  const shown = {
    width, tooWide: Math.max(0, whole.scrollWidth - width), tableTooWide: box.scrollWidth - box.clientWidth,
    textHeight: Math.floor(Math.min(...all("svg text").map((one) => one.getBoundingClientRect().height))),
    misplaced: all("td span").filter((one) => width < 700 && one.offsetLeft < one.parentNode.offsetLeft + 120).length,
    hasName: page.body.textContent.includes("</td><script>"), title: page.title,
    visible: ids(all("tbody tr").filter((row) => row.checkVisibility() && row.getBoundingClientRect().height > 0)),
  };
  for (const _ of [1, 2]) all("th button")[1].click();
  document.title = JSON.stringify({...shown, sorted: ids(all("tbody tr"))});
}`;

describe("the HTML page", () => {
  it("loads nothing external and escapes names", async () => {
    const text = await page(10);
    expect(text).toContain("default-src 'none'");
    expect(text).not.toMatch(/<img|<link|src=["']?http|url\(/);
    expect(text).toContain(`>${"😀".repeat(14)}${"n".repeat(13)}…<`);
    expect(text.match(/<script/g)).toHaveLength(1);
    expect(text).toContain("<svg");
  });

  it("colors a key that is not valid differently from a valid one, and has a legend", async () => {
    const text = await page(10);
    const colorOf = (key: string): string | undefined =>
      new RegExp(String.raw`fill="(#\w+)"><title>${key}:`).exec(text)?.[1];
    const keys = { valid: "key 2", "not active": "key 8", expired: "key 4", "without an expiry": "key 6" };
    for (const [words, key] of Object.entries(keys))
      expect(text).toContain(`<b style="color:${colorOf(key)}">■</b> ${words}`);
    expect(new Set(Object.values(keys).map(colorOf)).size).toBe(4);
    expect(text).toContain(", revoked</title>");
  });

  it.skipIf(isMissing("Chromium"))(
    "fits a phone and a desktop browser without scripts, prints on few pages, sorts, and runs no script in a name",
    async () => {
      const at = home();
      const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${at.path("chromium")}`];
      const [paper, printed] = [at.path("paper.html"), at.path("paper.pdf")];
      writeFileSync(paper, await page(60));
      execFileSync(chromium, [...flags, `--print-to-pdf=${printed}`, `file://${paper}`], { stdio: "ignore" });
      const pdf = readFileSync(printed, "latin1");
      // Two pages of pictures and eight pages of rows, in landscape.
      expect([pdf.match(/\/Type \/Page\b/g)?.length, pdf.includes("MediaBox [0 0 841")]).toEqual([10, true]);
      // A browser's window cannot be as narrow as a phone, but a frame can. Scripts run only with the frame's permission,
      // and only those that the page's own security policy allows.
      const shown = (width: number, permission = ""): Shown => {
        const file = at.path(`frame-${width}${permission}.html`);
        const escaped = text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
        const frame = `<iframe style="border:0;width:${width}px;height:900px" sandbox="allow-same-origin ${permission}" onload="measure(this)" srcdoc="${escaped}">`;
        writeFileSync(file, `<!doctype html><title></title><script>${measure}</script>${frame}</iframe>`);
        const words = [...flags, "--window-size=1600,1000", "--dump-dom", `file://${file}`];
        const dump = execFileSync(chromium, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
        return JSON.parse(/<title>(.*?)<\/title>/.exec(dump)?.[1] ?? "{}") as Shown;
      };
      const text = await page(10);
      const ids = Array.from({ length: 10 }, (_, index) => `ak_000000000000${index}`);
      for (const width of [400, 1400]) {
        const { textHeight, ...seen } = shown(width);
        const usual = { tooWide: 0, tableTooWide: 0, misplaced: 0, hasName: true, title: "integ: access review" };
        expect(seen).toEqual({ width, ...usual, visible: ids, sorted: ids });
        expect(textHeight).toBeGreaterThanOrEqual(11);
      }
      const { title, sorted } = shown(1400, "allow-scripts");
      expect([title, sorted]).toEqual(["integ: access review", ids.toReversed()]);
    },
    180_000,
  );
});
