import type { Context } from "../../context.ts";
import { placesOf, type Destination } from "../../secrets/destination.ts";
import { shell } from "../../next-step.ts";

/**
 * Warns of this machine's other profiles that use one of the credentials, except those that receive the new secret
 * (`to`).
 */
export async function warnOfUsers(context: Context, ids: readonly string[], to?: Destination): Promise<void> {
  const active = await context.profiles.active();
  const receiving =
    to === undefined ? [] : placesOf(to.record).flatMap((at) => (at.kind === "profile" ? [at.name] : []));
  const others = (await context.profiles.store())
    .list()
    .filter(({ name, credential }) => credential !== null && name !== active.name && !receiving.includes(name));
  if (others.length === 0) return;
  const journal = await context.journal();
  for (const id of ids) {
    const entries = await journal.select({ all: true, resource: id });
    const names = new Set([id, ...entries.flatMap((one) => (one.resource_id === id ? [one.detail.client_id] : []))]);
    for (const { name, credential } of others) {
      const isKey = credential!.kind === "api_key";
      const used = credential!.kind === "api_key" ? credential!.key_id : credential!.client_id;
      if (used === undefined || !names.has(used)) continue;
      const step = shell`integ profiles edit ${name} ${isKey ? "--api-key-stdin" : "--client-secret-stdin"}`;
      context.output.warn(`Profile ${name} uses ${id} too, and will be locked out. Give it a new secret: ${step}`);
    }
  }
}
