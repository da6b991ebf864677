import { Failure } from "../../errors.ts";
import { profileNotFound } from "../../profiles/names.ts";
import { sandboxRegions } from "../../profiles/resolution.ts";
import { defineVerb } from "../verb.ts";
import { profileRow, profileView, sandboxRow } from "./view.ts";

export const command = defineVerb({
  fields: profileView().columns.map(({ path }) => path),
  configure: (command) => command.argument("[name]", "The profile (default: the active one)"),
  examples: [
    { line: "integ profiles show prod", does: "its address, and where its credential is kept" },
    { line: "integ profiles show --json", does: "the profile that commands would use now" },
  ],
  async run(context, { args: [given] }) {
    const store = await context.profiles.store();
    const name = given ?? (await context.profiles.active()).name;
    const stored = store.get(name);
    const region = sandboxRegions.get(name);
    const view = { ...profileView(stored), isRead: true };
    if (stored) await context.output.resource(profileRow(stored, store.default), view);
    else if (region) await context.output.resource(sandboxRow(name, region, store.default), view);
    else if (name === "env") await context.output.resource(await environmentRow(context), view);
    else throw profileNotFound(name, [...store.list().map((one) => one.name), ...sandboxRegions.keys()]);
  },
});

async function environmentRow(context: Parameters<typeof command.run>[0]): Promise<string> {
  const profile = await context.profiles.named("env");
  // The environment may name an address without a usable credential: `credential` is null then.
  const credential = await profile.credential().catch((error: unknown) => {
    if (error instanceof Failure && error.kind === "auth") return null;
    throw error;
  });
  return JSON.stringify({
    object: "profile",
    name: "env",
    default: false,
    region: profile.region,
    base_url: profile.baseUrl,
    organization_id: profile.organizationId ?? null,
    service_version: profile.serviceVersion ?? null,
    credential: credential && { kind: credential.kind, kept_in: "environment", secret: "••••••••" },
    legacy: null,
    oauth: profile.oauth ?? null,
  });
}
