// The sandbox as a server: what a creation costs with ten thousand clients behind it, and how many pages it serves.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { spread } from "./measure.mjs";

/** Clients that ask at the same time. */
const clients = 4;

/** Seconds of processor of the sandbox alone. @returns lines as of sections.mjs */
export async function sandbox({ workplace, plan }) {
  const { few, many, measured, pages } = plan.sandbox;
  const box = await startSandbox(workplace);
  try {
    let made = 0;
    const makeUntil = async (count) => {
      for (; made < count; made += 1) await madeAndRevoked(box, made);
    };
    await makeUntil(few);
    const small = await secondsOf(box, { count: measured, each: () => madeAndRevoked(box, made++) });
    await makeUntil(many);
    const large = await secondsOf(box, { count: measured, each: () => madeAndRevoked(box, made++) });
    const perPage = await secondsOf(box, { count: pages, each: () => page(box) });
    const name = (count) => `${count.toLocaleString("en")} clients`;
    return [
      { what: `sandbox: create and revoke, ${name(few)}`, against: "itself", seconds: small, ratio: { median: 1 } },
      {
        what: `sandbox: create and revoke, ${name(many)}`,
        against: name(few),
        seconds: large,
        ratio: { median: large.median / small.median },
        bar: { most: 1.3 },
      },
      {
        what: "sandbox: GET of 500 rows",
        against: "630 a second",
        seconds: perPage,
        ratio: { median: 1 / perPage.median / 630 },
        bar: { least: 5 },
        note: `${Math.round(1 / perPage.median)} a second of processor`,
      },
    ];
  } finally {
    await box.stop();
  }
}

async function startSandbox(workplace) {
  // Another section may have made a sandbox of its own.
  const own = { INTEG_STATE_DIR: join(workplace.folder, "sandbox-section") };
  const { command, env } = workplace.integ(["sandbox", "start", "--json", "--entities", "2000"], { env: own });
  const child = spawn(command[0], command.slice(1), { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  const started = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the sandbox ended with ${code}`)));
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      if (text.trimEnd().endsWith("}")) resolve(JSON.parse(text));
    });
  });
  const account = started.us ?? started;
  const authorization = `Basic ${Buffer.from(`apikey:${account.api_key}`).toString("base64")}`;
  return {
    ...account,
    pid: child.pid,
    agent: new Agent({ keepAlive: true, maxSockets: clients }),
    headers: { authorization, "service-version": "2026-07-01" },
    stop: () => {
      const ended = new Promise((resolve) => child.removeAllListeners("exit").once("exit", resolve));
      child.kill();
      return ended;
    },
  };
}

/** Seconds of processor of a process so far, in hundredths. */
function processorOf({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

/** Five parts, each so many: seconds of one. */
async function secondsOf(box, { count, each }) {
  const parts = [];
  for (let part = 0; part < 5; part += 1) {
    const before = processorOf(box);
    let begun = 0;
    const work = async () => {
      for (; begun < count; ) {
        begun += 1;
        await each();
      }
    };
    await Promise.all(Array.from({ length: clients }, work));
    parts.push((processorOf(box) - before) / count);
  }
  return spread(parts);
}

function call({ base_url, agent, headers }, { method, path, body, more = {} }) {
  return new Promise((resolve, reject) => {
    const asked = request(`${base_url}${path}`, { method, agent, headers: { ...headers, ...more } }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode < 300) resolve(text);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    });
    asked.on("error", reject).end(body);
  });
}

async function madeAndRevoked(box, number) {
  const body = JSON.stringify({ service_account_id: box.service_account_id, scopes: ["entity:read"] });
  const more = { "content-type": "application/json", "idempotency-key": `bench-${number}` };
  const { id } = JSON.parse(await call(box, { method: "POST", path: "/v1/oauth_clients", body, more }));
  await call(box, { method: "DELETE", path: `/v1/oauth_clients/${id}` });
}

function page(box) {
  return call(box, { method: "GET", path: "/v1/entities?limit=500" });
}
