// Encrypted secrets beside the entries of a team's journal.
import type { EscrowStore } from "../journal.ts";
import { journalFailure } from "./failures.ts";
import type { PostgresParts } from "./schema.ts";
import { durably, type Row } from "./session.ts";

type EscrowParts = Pick<PostgresParts, "session" | "tables" | "shown">;

export function escrowTable({ session, tables: { escrow }, shown }: EscrowParts): EscrowStore {
  const unchanged = "The encrypted secret in the journal is as it was.";
  const asked = (work: Promise<readonly Row[]>, meaning?: string): Promise<readonly Row[]> =>
    work.catch((error: unknown) => {
      throw journalFailure(error, shown, meaning);
    });
  return {
    async ids() {
      return new Set((await asked(session.read(`SELECT entry FROM ${escrow}`))).map(({ entry }) => String(entry)));
    },
    async put(entry, ciphertext) {
      const text = `WITH ${durably} INSERT INTO ${escrow} (entry, ciphertext) SELECT $1, $2 FROM durably
        ON CONFLICT (entry) DO UPDATE SET ciphertext = excluded.ciphertext, made_at = clock_timestamp()`;
      await asked(session.write({ text, values: [entry, ciphertext] }), unchanged);
    },
    async get(entry) {
      const [row] = await asked(session.read(`SELECT ciphertext FROM ${escrow} WHERE entry = $1`, [entry]), unchanged);
      return row && String(row.ciphertext);
    },
    async remove(entry) {
      await asked(session.write({ text: `DELETE FROM ${escrow} WHERE entry = $1`, values: [entry] }), unchanged);
    },
  };
}
