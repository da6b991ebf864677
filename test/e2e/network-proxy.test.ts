// Tests proxies and private certificate authorities, with a real CONNECT proxy and a real TLS server.
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Authority, makeAuthority } from "../support/certificates.ts";
import { type ConnectProxy, startConnectProxy } from "../support/connect-proxy.ts";
import { type Ended, Home } from "../support/program.ts";
import { type Service, creationWords, homeOfTest, startService } from "../support/service.ts";
import { startTlsFront, type TlsFront } from "../support/tls-front.ts";
import { isMissing } from "../support/tools.mjs";

let service: Service;
let authority: Authority;
let front: TlsFront;
let proxy: ConnectProxy;
let at: Home;
const place = new Home();

/** Settings for the service behind TLS: they trust its authority, and name no proxy. */
let trusting: Record<string, string>;
const portOf = (url: string): number => Number(new URL(url).port);

beforeAll(async () => {
  if (isMissing("openssl")) return;
  mkdirSync(place.path("ca"));
  authority = makeAuthority(place.path("ca"));
  service = await startService();
  front = await startTlsFront(service.us.base_url, {
    ...authority.sign(["DNS:localhost"]),
    maxVersion: "TLSv1.2",
  });
  proxy = await startConnectProxy();
  trusting = {
    ...service.env,
    INTEG_BASE_URL: `https://localhost:${portOf(front.origin)}`,
    NODE_EXTRA_CA_CERTS: authority.path,
  };
});

beforeEach(() => {
  at = homeOfTest();
  if (proxy) {
    proxy.behavior = "tunnel";
    proxy.asked.length = 0;
    proxy.plain.length = 0;
  }
});

afterAll(async () => {
  place.remove();
  if (isMissing("openssl")) return;
  await Promise.all([front.close(), proxy.close()]);
  await service.stop();
});

const list = ["entities", "list", "--json", "--retry-for", "0", "--timeout", "5s"];

function create(): string[] {
  return creationWords(service, "--secret-file", "secret", "--retry-for", "0", "--timeout", "5s");
}

const proxied = (more: Record<string, string> = {}): Record<string, string> => ({
  ...trusting,
  HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
  ...more,
});

async function clients(): Promise<number> {
  return ((await service.control("GET", "/oauth_clients")) as unknown[]).length;
}

async function expectNothingSent(env: Record<string, string>): Promise<string> {
  const before = await clients();
  const { code, stdout, stderr } = await at.integ(create(), { env });
  expect([code, stdout], stderr).toEqual([11, ""]);
  expect(stderr).toContain("Nothing was sent.");
  expect(await clients()).toBe(before);
  const { data } = JSON.parse((await at.integ(["journal", "list", "--all", "--json"])).stdout) as {
    data: { state: string }[];
  };
  expect(data.map(({ state }) => state)).toEqual(["refused"]);
  return stderr;
}

const rows = ({ stdout }: Ended): number => (JSON.parse(stdout) as { data: unknown[] }).data.length;

describe.skipIf(isMissing("openssl"))("a proxy", () => {
  it("carries reads and changes; it learns only the host", async () => {
    const env = proxied();
    const read = await at.integ(list, { env });
    expect([read.code, rows(read)], read.stderr).toEqual([0, 25]);
    const created = await at.integ(create(), { env });
    expect(created.code, created.stderr).toBe(0);
    expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set([`localhost:${portOf(front.origin)}`]));
    expect(proxy.plain).toEqual([]);
    for (const { headers } of proxy.asked)
      expect(Object.keys(headers).filter((name) => !["host", "connection", "proxy-connection"].includes(name))).toEqual(
        [],
      );
  });

  it.each([
    ["https_proxy in lower case", () => ({ HTTPS_PROXY: "", https_proxy: `http://127.0.0.1:${proxy.port}` }), 1],
    ["HTTP_PROXY, which is for plain http", () => ({ HTTPS_PROXY: "", HTTP_PROXY: "http://127.0.0.1:9" }), 0],
    ["NO_PROXY with the host", () => ({ NO_PROXY: "example.com,localhost" }), 0],
    ["NO_PROXY with the host and the port", () => ({ NO_PROXY: `localhost:${portOf(front.origin)}` }), 0],
    ["NO_PROXY with another port", () => ({ NO_PROXY: "localhost:1" }), 1],
    ["NO_PROXY with a domain that only ends alike", () => ({ NO_PROXY: "calhost" }), 1],
    ["NO_PROXY with a star", () => ({ NO_PROXY: "*" }), 0],
    ["no_proxy in lower case", () => ({ no_proxy: "localhost" }), 0],
    ["HTTPS_PROXY that is empty", () => ({ HTTPS_PROXY: "" }), 0],
  ])("%s", async (_what, env, tunnels) => {
    const { code, stderr } = await at.integ(list, { env: proxied(env()) });
    expect([code, proxy.asked.length], stderr).toEqual([0, tunnels]);
  });

  it("gets its own user and password, and no other server does", async () => {
    const [user, password] = ["proxy-user", "pa:ss/w@rd"];
    const address = `http://${user}:${encodeURIComponent(password)}@127.0.0.1`;
    const basic = Buffer.from(`${user}:${password}`).toString("base64");
    const outputs: string[] = [];
    for (const behavior of ["tunnel", 407, "close"] as const) {
      proxy.behavior = behavior;
      const ended = await at.integ([...list, "--debug"], { env: proxied({ HTTPS_PROXY: `${address}:${proxy.port}` }) });
      expect(ended.code, ended.stderr).toBe(behavior === "tunnel" ? 0 : 11);
      outputs.push(ended.stdout, ended.stderr);
    }
    outputs.push((await at.integ(list, { env: proxied({ HTTPS_PROXY: `${address}:9` }) })).stderr);
    outputs.push((await at.integ(list, { env: proxied({ HTTPS_PROXY: `${address}:no-port` }) })).stderr);
    expect(proxy.asked).toHaveLength(3);
    for (const { headers } of proxy.asked) expect(headers["proxy-authorization"]).toBe(`Basic ${basic}`);
    for (const secret of [user, password, encodeURIComponent(password), basic])
      expect(outputs.join("\n")).not.toContain(secret);
  });

  it("that needs a password is reported as such, with the way to set one", async () => {
    proxy.behavior = 407;
    const stderr = await expectNothingSent(proxied());
    expect(stderr).toContain("407");
    expect(stderr).toContain("HTTPS_PROXY=http://<user>:<password>@");
  });

  it("reached over TLS is verified like any other server", async () => {
    const secure = await startConnectProxy(authority.sign(["DNS:localhost"]));
    try {
      const env = proxied({ HTTPS_PROXY: `https://localhost:${secure.port}` });
      const read = await at.integ(list, { env });
      expect([read.code, secure.asked.length], read.stderr).toEqual([0, 1]);
      expect(await expectNothingSent({ ...env, NODE_EXTRA_CA_CERTS: "" })).toContain("NODE_EXTRA_CA_CERTS");
    } finally {
      await secure.close();
    }
  });

  it("carries the exchange of client credentials", async () => {
    const created = await at.integ([...create(), "--secret-format", "env"], { env: proxied() });
    expect(created.code, created.stderr).toBe(0);
    const { client_id, client_secret } = await freshClient();
    const words = ["oauth-clients", "token", "--client-id", client_id, "--client-secret-stdin", "--retry-for", "0"];
    const endpoint = service.us.token_endpoint.replace(service.us.base_url, trusting.INTEG_BASE_URL!);
    proxy.asked.length = 0;
    const env = proxied({ INTEG_TOKEN_ENDPOINT: endpoint });
    const { code, stderr } = await at.integ(words, { env, input: `${client_secret}\n` });
    expect([code, proxy.asked.length > 0], stderr).toEqual([0, true]);
  });
});

async function freshClient(): Promise<{ client_id: string; client_secret: string }> {
  const words = create().filter((word) => word !== "--secret-file" && word !== "secret");
  const { stdout, stderr, code } = await at.integ([...words, "--new", "--json"], { env: trusting });
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as { client_id: string; client_secret: string };
}

describe.skipIf(isMissing("openssl"))("a private certificate authority", () => {
  it("is trusted through NODE_EXTRA_CA_CERTS", async () => {
    const read = await at.integ(list, { env: trusting });
    expect([read.code, rows(read)], read.stderr).toEqual([0, 25]);
  });

  it("that is not trusted: nothing is sent, and the variable is named", async () => {
    const stderr = await expectNothingSent({ ...trusting, NODE_EXTRA_CA_CERTS: "" });
    expect(stderr).toMatch(/unable to (verify|get)/);
    expect(stderr).toMatch(/Fix: Set NODE_EXTRA_CA_CERTS to a file/);
  });

  it("does not authenticate a server of another authority", async () => {
    mkdirSync(at.path("other"));
    expect(
      await expectNothingSent({ ...trusting, NODE_EXTRA_CA_CERTS: makeAuthority(at.path("other")).path }),
    ).toContain("NODE_EXTRA_CA_CERTS");
  });

  it("is not replaced by NODE_TLS_REJECT_UNAUTHORIZED", async () => {
    const env = { ...trusting, NODE_EXTRA_CA_CERTS: "", NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    expect(await expectNothingSent(env)).toContain("NODE_EXTRA_CA_CERTS");
  });

  it("whose file is missing is reported", async () => {
    const stderr = await expectNothingSent({ ...trusting, NODE_EXTRA_CA_CERTS: at.path("nowhere.pem") });
    expect(stderr).toContain("nowhere.pem");
  });
});
