// Where the secrets of unfinished work are kept: on this machine, and encrypted in a team's journal.
import type { SecretKeeping } from "../../secrets/kept.ts";
import type { Context } from "../../context.ts";

export async function keepingOf(context: Context): Promise<SecretKeeping> {
  const { secrets } = context;
  const undelivered = await secrets.undelivered();
  const { escrow } = await context.journal();
  const escrowed = new Set(await escrow?.ids());
  return {
    completeDelivery: (record, facts) => secrets.completeDelivery(record, facts),
    removeReserve: (record, entry, options) => secrets.removeReserve(record, entry, options),
    reread: (record) => secrets.reread(record),
    profileWith: (id) => secrets.profileWith(id),
    place: undelivered.place,
    reserve: async (entry) => undelivered.reserve(entry),
    keep: async (entry, secret) => undelivered.keep(entry, secret),
    async escrow(entry, secret) {
      const ciphertext = escrow && (await secrets.escrow.encrypt(secret));
      if (ciphertext === undefined) return false;
      await escrow?.put(entry, ciphertext);
      escrowed.add(entry);
      return true;
    },
    isKept: (entry) => undelivered.isKept(entry) || escrowed.has(entry),
    async readKept(entry) {
      const ciphertext = undelivered.isKept(entry) ? undefined : await escrow?.get(entry);
      return ciphertext === undefined ? undelivered.read(entry) : secrets.escrow.decrypt(ciphertext);
    },
    async destroyKept(entry, options) {
      undelivered.destroy(entry, options);
      if (escrowed.delete(entry)) await escrow?.remove(entry);
    },
    release: async (entry) => undelivered.release(entry),
  };
}
