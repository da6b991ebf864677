// Encrypted secrets beside the entries of a team's journal.
import type { EscrowStore } from "../journal.ts";
import { journalFailure } from "./failures.ts";
import type { PostgresParts } from "./schema.ts";
import { durably } from "./session.ts";

export function escrowTable({
  session,
  tables,
  shown,
}: Pick<PostgresParts, "session" | "tables" | "shown">): EscrowStore {
  const orFailure =
    (meaning?: string) =>
    (error: unknown): never => {
      throw journalFailure(error, shown, meaning);
    };
  const unchanged = orFailure("The encrypted secret in the journal is as it was.");
  const write = async (text: string, values: readonly unknown[]): Promise<void> => {
    await session.write({ text, values }).catch(unchanged);
  };
  return {
    async ids() {
      const rows = await session.read(`SELECT entry FROM ${tables.escrow}`).catch(orFailure());
      return new Set(rows.map(({ entry }) => String(entry)));
    },
    put: (entry, ciphertext) =>
      write(
        `WITH ${durably} INSERT INTO ${tables.escrow} (entry, ciphertext) SELECT $1, $2 FROM durably
         ON CONFLICT (entry) DO UPDATE SET ciphertext = excluded.ciphertext, made_at = clock_timestamp()`,
        [entry, ciphertext],
      ),
    async get(entry) {
      const text = `SELECT ciphertext FROM ${tables.escrow} WHERE entry = $1`;
      const [row] = await session.read(text, [entry]).catch(unchanged);
      return row && String(row.ciphertext);
    },
    remove: (entry) => write(`DELETE FROM ${tables.escrow} WHERE entry = $1`, [entry]),
  };
}
